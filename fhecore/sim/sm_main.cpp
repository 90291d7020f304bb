// sm_model TRACE PARAMETERS: runs the model and prints one line of JSON.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

#include "sm_model.h"

namespace {

std::string content(const char* path) {
  std::ifstream file(path);
  if (!file) throw crenel::fhecore::sim::SimError(std::string(path) + ": cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

int main(int argc, char** argv) {
  using namespace crenel::fhecore::sim;
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s TRACE PARAMETERS\n", argv[0]);
    return 2;
  }
  try {
    const Trace trace = read_trace(content(argv[1]));
    std::cout << to_json(trace, simulate(trace, read_params(content(argv[2])))) << '\n';
  } catch (const SimError& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
