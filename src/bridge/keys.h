// The private half of the bridge's keys; for bridge/ and serialize/ only.
#pragma once

#include "bridge/rings.h"
#include "ckks/objects.h"
#include "rlwe/ring_switch.h"
#include "tfhe/objects.h"

namespace crenel::bridge {

/// Of packing in one ring: into it, and its merges.
struct MergeKeys {
  rlwe::SwitchKey up;                  ///< from the secret of the ring before, in a subring
  std::vector<rlwe::SwitchKey> turns;  ///< of merging_element(ring, level), from the first level on
};

struct Keys::Data {
  std::string ckks_params_id, tfhe_params_id;
  SecretKeyId ckks_secret_key{}, tfhe_secret_key{};
  std::shared_ptr<const rlwe::RingContext> ring;  ///< where the key down lives
  std::shared_ptr<const Rings> rings;             ///< where the others do
  rlwe::SwitchKey down;
  MergeKeys middle, last;  ///< middle: under a secret of its own, that nobody keeps

  template <class Visitor>
  void for_each(Visitor visit) const {
    visit(down);
    for (const MergeKeys* keys : {&middle, &last}) {
      visit(keys->up);
      for (const rlwe::SwitchKey& key : keys->turns) visit(key);
    }
  }
};

/// Levels of merges that a ring has keys for: from the first, so many.
struct MergeLevels {
  u32 first = 0, count = 0;
};
inline MergeLevels middle_levels(const Rings& rings) { return {2, rings.middle->log_n() - 1}; }
inline MergeLevels last_levels(const Rings& rings) {
  return {rings.middle->log_n() + 1, rings.last->log_n() - rings.middle->log_n()};
}

/// What Bridge's constructor refuses but for what is wrong with a bootstrap.
void expect_fitting(const ckks::Context& ckks, const tfhe::Context& tfhe);
/// Degree of the TFHE ring, to whose secret keys lead.
inline u32 small_degree(const tfhe::Context& tfhe) { return tfhe.state().plan.rest_dim(); }

}  // namespace crenel::bridge
