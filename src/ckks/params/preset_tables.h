// Named parameter sets; the tables are generated from params/*.toml by tools/gen_params.py.
#pragma once

#include <span>
#include <string_view>

#include "crenel/ckks/params.h"

namespace crenel::ckks {

/// One file of params/. The spans live as long as the program.
struct PresetTable {
  std::string_view name;
  std::string_view description;
  std::string_view provenance;
  u32 log_n, log_scale, normal_top_level, hamming_weight;
  std::span<const u64> main, terminal, auxiliary;
  std::span<const LevelModulus> levels;
  // What the file promises about the set; tests compare.
  u32 expected_limbs;
  double expected_log_pq;
  double expected_scale_deviation;
};

/// All named sets, sorted by name.
std::span<const PresetTable> preset_tables();

}  // namespace crenel::ckks
