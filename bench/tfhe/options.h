// What the command line asked for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "crenel/core/types.h"
#include "crenel/tfhe/params.h"

namespace crenel::bench {

struct TfheOptions {
  std::string device = "auto", set = "bool128", operation, json;
  std::optional<tfhe::Arithmetic> arithmetic;  ///< none: the set's own
  u32 slots = 1;
  u32 batch = 1024;
  u64 verify = 0;      ///< gates of the check with fresh messages and bootstrapped inputs
  u32 floor_bits = 0;  ///< 0: half of the message's
  bool transfers = false;
  bool once = false;  ///< two calls and no timing, for profilers
  bool quick = false;
  bool latency = true;  ///< time a single row as well
};

/// Exits with status 2 and the usage where an argument is not understood.
TfheOptions parse_tfhe_options(int argc, char** argv);

}  // namespace crenel::bench
