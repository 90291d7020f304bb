// The GPUs that "cuda:dry" models. Plain data: what decides the shapes of launches, and how much
// memory there is.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "crenel/core/error.h"
#include "crenel/core/types.h"

namespace crenel::device {

struct DryModel {
  const char* name;  ///< in "cuda:dry-<name>"
  const char* card;
  u32 major, minor;          ///< compute capability
  u32 processors;            ///< multiprocessors
  std::size_t shared_bytes;  ///< shared memory that a block may ask for
  std::size_t l2_bytes;      ///< second-level cache
  u64 memory_bytes;
};

// Multiprocessors, cache and memory by the vendor's descriptions of the cards, shared memory of a
// block by its programming guide; docs/guide/traffic_account.md cites them. Memory of the H200 and
// the H100 as their driver states it; of the others the vendor's GB of 10^9 bytes, of which a
// driver states no less.
inline constexpr DryModel kDryModels[] = {
    {"h200", "NVIDIA H200", 9, 0, 132, 227 << 10, 50 << 20, u64(139) << 30},
    {"h100", "NVIDIA H100", 9, 0, 132, 227 << 10, 50 << 20, u64(79) << 30},
    {"a100", "NVIDIA A100", 8, 0, 108, 163 << 10, 40 << 20, 80'000'000'000},
    {"b200", "NVIDIA B200", 10, 0, 148, 227 << 10, 126 << 20, 180'000'000'000},
    {"rtx5090", "NVIDIA GeForce RTX 5090", 12, 0, 170, 99 << 10, 96 << 20, 32'000'000'000},
};
/// GPUs of one host, "cuda:dry:0" to "cuda:dry:1023".
inline constexpr int kDryGpus = 1024;

/// "cuda:dry" of the first one, "cuda:dry-<name>" of the others, and ":<index>" of one of several.
inline std::string dry_name(const DryModel& model, std::optional<int> index) {
  return cat("cuda:dry", &model == kDryModels ? "" : "-", &model == kDryModels ? "" : model.name,
             index ? cat(":", *index) : "");
}

}  // namespace crenel::device
