#include "rlwe/shared_keys.h"

#include "crenel/device/optimisations.h"
#include "device/apart.h"

namespace crenel::rlwe {
namespace {

void share(SwitchKey& key, u32 groups) {
  key.pairs = key.pairs.shared_between_groups();
  key.shared_by = groups;
}

}  // namespace

void share_between_groups(EvaluationKeySet& set) {
  if (!set.relinearisation || !set.encapsulation) return;
  device::Stream& stream = set.relinearisation->pairs.stream();
  const u32 groups = device::entry_groups(stream);
  if (groups < 2 ||
      !device::optimisations(stream.device()).has(device::Optimisation::entries_apart))
    return;
  share(*set.relinearisation, groups);
  if (const auto aligned = set.aligned.find(kRelinearisation); aligned != set.aligned.end())
    share(aligned->second, groups);
}

}  // namespace crenel::rlwe
