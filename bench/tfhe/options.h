// What the command line of the TFHE suite asked for.
#pragma once

#include <optional>

#include "crenel/tfhe/params.h"
#include "harness/arguments.h"

namespace crenel::bench {

struct TfheOptions {
  std::string device = "auto", set = "bool128", operation, json;
  std::optional<tfhe::Arithmetic> arithmetic;  ///< none: the set's own
  u32 slots = 1;
  u32 step = 0;  ///< 0: the set's own
  u32 batch = 1024;
  u64 verify = 0;      ///< gates or look-ups of the check, on bootstrapped inputs
  u32 floor_bits = 0;  ///< 0: half of the message's
  bool transfers = false;
  bool once = false;  ///< two calls and no timing, for profilers
  bool quick = false;
  bool no_latency = false;  ///< do not time a single row as well
};

/// nullopt: --help was printed.
std::optional<TfheOptions> parse_tfhe_options(const Words& words);

}  // namespace crenel::bench
