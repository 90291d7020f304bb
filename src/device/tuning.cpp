#include "crenel/device/tuning.h"

#include <algorithm>
#include <mutex>

#include "crenel/core/error.h"
#include "crenel/core/fork_mutex.h"
#include "device/backend.h"

namespace crenel::device {
namespace {

// In the order of the enumeration. The least part is a limb of one polynomial of the largest ring.
constexpr TunableInfo kInfos[kTunables] = {
    {"part_bytes",
     "bytes that base conversion, column and row pass write of each ciphertext before the next "
     "part",
     u64(1) << 19, u64(1) << 40},
    {"row_polys", "polynomials that a block of a row pass transforms in turn, at most", 1, 64},
    {"row_blocks", "blocks of a row pass below which they take fewer polynomials each", 1,
     u64(1) << 20},
    {"conversion_start",
     "what a block of a base conversion without the column pass costs before its first "
     "destination, "
     "in destinations",
     0, 1024},
    {"conversion_outputs", "destinations of a block of a base conversion, at most", 8, 64},
    {"sums_walk", "1: warps of a block of hoisted sums go along the walk of the rotations", 0, 1},
    {"folded_matrices",
     "matrices of a base conversion with the column pass, whose first twiddles they contain; "
     "0: one, reduced by Montgomery",
     0, 4},
    {"conversion_early",
     "1: a base conversion may start while the inverse transform before it ends, where it finds "
     "room",
     0, 1},
    {"conversion_granule",
     "destinations that a block's share of a base conversion with the column pass is a multiple "
     "of; "
     "8: the whole steps that it works in",
     1, 8},
    {"conversion_pairs",
     "1: two blocks of a base conversion with the column pass that share their sources bring them "
     "together, where all blocks run at once",
     0, 1},
    {"passes_early",
     "passes that may start while the launch before them ends. 1: a pass over rows after a base "
     "conversion that fills the GPU, and a column pass beside the rows before it where both fit; "
     "2: all of these",
     0, 2},
    {"discard_read",
     "1: what a launch is the last one to read leaves the cache without a way to the memory", 0, 1},
    {"switch_rows",
     "ciphertexts from which a TFHE key switch of sets of one secret bit a step is tiled", 1,
     u64(1) << 30},
    {"switch_blocks", "blocks a multiprocessor that such a key switch is split for", 1, 256},
};

// What queues launches: the device, or each of its parts.
std::vector<Backend*> launchers(Device& device) {
  std::vector<Backend*> found;
  for (const auto& part : device.parts()) found.push_back(dynamic_cast<Backend*>(part.get()));
  if (found.empty()) found.push_back(dynamic_cast<Backend*>(&device));
  for (const Backend* each : found)
    if (each == nullptr || !each->has_tuning())
      throw UnsupportedError(
          cat("device ", device.info().name, " has no tuning, expected a CUDA device"),
          {{"device", device.info().name}, {"expected", "cuda"}});
  return found;
}

// Parts are set, and read, all together.
ForkMutex& together() {
  static ForkMutex mutex;
  return mutex;
}

// What `of` says of every launcher.
template <class Of>
Tuning common(const Device& device, const Of& of) {
  const auto all = launchers(const_cast<Device&>(device));  // which are read
  const std::scoped_lock lock(together());
  const Tuning found = of(*all[0]);
  for (const Backend* each : all) {
    const Tuning other = of(*each);
    const auto at = std::mismatch(found.begin(), found.end(), other.begin());
    if (at.first == found.end()) continue;
    const char* name = kInfos[at.first - found.begin()].name;
    throw StateError(cat("parts of device ", device.info().name, " differ in ", name, ": ",
                         *at.first, " of ", all[0]->info().name, ", ", *at.second, " of ",
                         each->info().name, ", expected the same of all"),
                     {{"device", each->info().name}, {name, cat(*at.second)}});
  }
  return found;
}

}  // namespace

const TunableInfo& info_of(Tunable tunable) { return kInfos[u32(tunable)]; }

Tunable tunable_of(const std::string& name) {
  std::string known;
  for (u32 i = 0; i < kTunables; ++i) {
    if (name == kInfos[i].name) return static_cast<Tunable>(i);
    known += cat(i == 0 ? "" : ", ", kInfos[i].name);
  }
  throw ParameterError(cat("tuning of \"", name, "\", expected one of ", known),
                       {{"tunable", name}, {"expected", known}});
}

void Backend::begin_with(const Tuning& defaults) {
  defaults_ = defaults;
  for (u32 i = 0; i < kTunables; ++i) tuning_[i].store(defaults[i], std::memory_order_relaxed);
}

Tuning Backend::tuning() const {
  Tuning found;
  for (u32 i = 0; i < kTunables; ++i) found[i] = tuned(static_cast<Tunable>(i));
  return found;
}

Tuning tuning(const Device& device) {
  return common(device, [](const Backend& each) { return each.tuning(); });
}

Tuning default_tuning(const Device& device) {
  return common(device, [](const Backend& each) { return *each.defaults(); });
}

void set_tuning(Device& device, const Tuning& wanted) {
  const auto all = launchers(device);
  for (u32 i = 0; i < kTunables; ++i) {
    const TunableInfo& info = kInfos[i];
    if (wanted[i] < info.least || wanted[i] > info.most)
      throw ParameterError(
          cat(info.name, " is ", wanted[i], ", expected ", info.least, " to ", info.most),
          {{info.name, cat(wanted[i])}, {"expected", cat(info.least, " to ", info.most)}});
  }
  const std::scoped_lock lock(together());
  for (Backend* each : all)
    for (u32 i = 0; i < kTunables; ++i)
      each->tuning_[i].store(wanted[i], std::memory_order_relaxed);
}

}  // namespace crenel::device
