// What the command line of the bootstrapping suite asked for.
#pragma once

#include <optional>

#include "crenel/circuits/bootstrapping.h"
#include "harness/arguments.h"

namespace crenel::bench {

struct BootOptions {
  std::string device = "auto", params = "boot40", json;
  circuits::BootstrapOptions options;
  u32 runs = 3;        ///< fresh random messages whose errors make the statistics
  u32 batch = 1;       ///< ciphertexts a call
  bool kinds = false;  ///< other kinds of messages too, against the model
  bool once = false;   ///< two eager bootstraps and no timing, for profilers
  bool quick = false;  ///< fewer repetitions
};

/// nullopt: --help was printed.
std::optional<BootOptions> parse_boot_options(const Words& words);

}  // namespace crenel::bench
