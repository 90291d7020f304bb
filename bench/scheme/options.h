// Command line of the scheme benchmark.
#pragma once

#include <optional>

#include "crenel/ckks/params.h"
#include "harness/device_choice.h"

namespace crenel::bench {

struct Options {
  DeviceChoice device;
  /// Names of presets, or "gen:<log_n>:<scale_bits>:<depth>[:<alpha>]".
  std::vector<std::string> params{"boot40"};
  std::vector<u32> limbs{48, 36, 24, 12};  ///< levels are chosen nearest to these
  std::vector<u32> batches{1};
  std::vector<bool> graph{false, true};
  std::vector<std::string> only;  ///< operations whose name contains one of these; empty: all
  std::string json;
  bool quick = false;       ///< seconds instead of minutes, larger spread
  bool plain_keys = false;  ///< no keys for aligned levels
};

/// nullopt: --help was printed.
std::optional<Options> parse_options(const Words& words);
ckks::Params params_of(const std::string& name);

}  // namespace crenel::bench
