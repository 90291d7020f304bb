#include "harness/suites.h"

int main(int argc, char** argv) {
  return crenel::bench::run_program(argc, argv, crenel::bench::run_tfhe);
}
