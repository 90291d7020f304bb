// The private half of the bridge's keys; for bridge/ and serialize/ only.
#pragma once

#include "ckks/objects.h"
#include "crenel/bridge/bridge.h"
#include "rlwe/ring_switch.h"
#include "tfhe/objects.h"

namespace crenel::bridge {

struct Keys::Data {
  std::string ckks_params_id, tfhe_params_id;
  SecretKeyId ckks_secret_key{}, tfhe_secret_key{};
  std::shared_ptr<const rlwe::RingContext> ring;  ///< where the keys live
  rlwe::RingSwitchKeys keys;
};

/// What Bridge's constructor refuses but for what is wrong with a bootstrap.
void expect_fitting(const ckks::Context& ckks, const tfhe::Context& tfhe);
/// Degree of the TFHE ring, to whose secret keys lead.
inline u32 small_degree(const tfhe::Context& tfhe) { return tfhe.state().plan.rest_dim(); }

}  // namespace crenel::bridge
