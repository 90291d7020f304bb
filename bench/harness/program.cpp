#include <cstdio>

#include "crenel/core/error.h"
#include "harness/suites.h"

namespace crenel::bench {

int run_program(int argc, char** argv, int (*suite)(const Words&)) {
  Words words(argv, argv + argc);
  words[0] = words[0].substr(words[0].rfind('/') + 1);
  try {
    return suite(words);
  } catch (const Error& e) {
    std::fprintf(stderr, "%s: %s: %s\n", words[0].c_str(), e.code().c_str(), e.what());
    return 2;
  }
}

}  // namespace crenel::bench
