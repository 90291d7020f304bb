// What evaluation keys take, from parameters and a request alone.
#include "ckks/key_sizes.h"

#include <set>

#include "ckks/objects.h"
#include "rlwe/encapsulation.h"

namespace crenel::ckks {

std::set<u64> galois_elements(const Params& params, const KeyRequest& request) {
  std::set<u64> elements;
  for (i64 steps : request.rotations)
    elements.insert(ring::galois_element_for_rotation(steps, params.log_n()));
  if (request.conjugate) elements.insert(ring::galois_element_for_conjugation(params.log_n()));
  elements.erase(rlwe::kNoKey);
  return elements;
}

KeySizes key_sizes(const Params& params, const KeyRequest& request) {
  const u64 limb = params.ring_dim() * sizeof(rlwe::Word);
  const u64 pair = 2 * params.primes().size() * limb;  // one digit
  KeySizes sizes;
  sizes.each = params.dnum() * pair;
  sizes.count = static_cast<u32>(galois_elements(params, request).size());
  if (request.relinearisation) ++sizes.count;
  sizes.bytes = sizes.count * sizes.each;
  if (request.encapsulation) {
    const u32 base = params.window_end(0) - params.window_begin(0);
    rlwe::expect_encapsulation(base, params.log_q(0), params.alpha());
    sizes.count += 2;
    sizes.bytes += pair + 2 * (base + rlwe::kEncapsulationPrimes) * limb;
  }
  return sizes;
}

void expect_room_for_keys(const Context::State& context, const KeyRequest& request) {
  const KeySizes sizes = key_sizes(context.params, request);
  if (sizes.count == 0) return;
  // The errors of one key, beside the keys.
  const u64 needed = sizes.bytes + sizes.each / 2;
  device::expect_room(context.ring->device(), {.device = needed}, [&] {
    const u64 many = sizes.count - (request.encapsulation ? 2 : 0);
    const std::string& name = context.params.name();
    return core::MemoryRequest{
        .what = cat(sizes.count, " evaluation keys", name.empty() ? "" : " of ", name),
        .count = many,
        .each = sizes.each,
        .units = "keys",
        .advice =
            "ask for fewer rotations (bootstrap=\"minimal\" needs the fewest), or make them "
            "on a machine with more memory and load them with staged_bytes="};
  });
}

}  // namespace crenel::ckks
