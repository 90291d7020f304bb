// Two clients of one secret: keys for some levels beside the whole ones that they are a part of.
#pragma once

#include "ckks/objects.h"
#include "support/ckks_world.h"

namespace crenel::test {

// Two clients with one secret, one id and one order of randomness: what the second is asked for is
// cut out of what the first is asked for.
class Twins {
 public:
  Twins(const ckks::Params& params, const std::string& device, u64 seed)
      : context(params, device), whole(make(seed)), cut(make(seed)) {}

  const rlwe::RingContext& ring() const { return *context.state().ring; }

  ckks::Context context;
  SecretKeyId id = random::draw_secret_key_id();
  ckks::Client whole, cut;

 private:
  ckks::Client make(u64 seed) {
    random::Seed bytes{};
    Rng rng(seed);
    for (auto& b : bytes) b = static_cast<u8>(rng());
    return ckks::Client(std::make_shared<ckks::Client::State>(
        ckks::Client::State{context,
                            rlwe::SecretKey(context.state().ring, random::SecretSource(bytes),
                                            context.params().spec().hamming_weight),
                            id}));
  }
};

}  // namespace crenel::test
