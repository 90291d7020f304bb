// What evaluation keys take, from parameters and a request alone.
#include "ckks/key_sizes.h"

#include <algorithm>
#include <set>

#include "ckks/objects.h"
#include "ckks/params/chain.h"
#include "rlwe/encapsulation.h"
#include "rlwe/secret/secret_key.h"

namespace crenel::ckks {

namespace {

constexpr u32 kAll = rlwe::SwitchKey::kAny;

// A level as it was asked for; the top level is all of them.
u32 checked_level(const Params& params, std::optional<u32> level, const char* name) {
  if (!level) return kAll;
  if (rlwe::is_short(*level) && chain_of(params).has_level(*level)) return *level;
  if (*level > params.max_level())
    throw ParameterError(cat(name, " ", *level, ", expected a level up to ", params.max_level()),
                         {{name, *level}, {"expected", cat("0..", params.max_level())}});
  return *level == params.max_level() ? kAll : *level;
}

// Bytes of a key for the levels up to `level`: what rlwe::RingContext::extent() has.
u64 key_bytes(const rlwe::Chain& chain, u32 level) {
  const u64 limb = sizeof(rlwe::Word) << chain.log_n;
  if (level == kAll) return 2 * chain.dnum() * chain.primes.size() * limb;
  const auto extent = rlwe::key_extent(chain, level);
  return 2 * extent.digits * u64(extent.limbs.size() + chain.alpha) * limb;
}

// The level of an aligned key that is asked for up to `level`.
u32 checked_aligned(const Params& params, const rlwe::Chain& chain, u32 level, const char* name) {
  checked_level(params, level, name);
  if (const auto highest = chain.highest_aligned(level)) return rlwe::aligned_level(*highest);
  const auto least = [&] {
    for (u32 l = 0; l <= chain.top_level(); ++l)
      if (chain.aligned(l)) return cat("a level from ", l, " on");
    return cat("parameters with aligned levels (Params::highest_aligned)");
  };
  throw ParameterError(cat(name, " ", level, ": no level up to it is aligned, expected ", least()),
                       {{name, level}, {"expected", least()}});
}

}  // namespace

std::map<u64, u32> galois_levels(const Params& params, const KeyRequest& request) {
  const u32 usual = checked_level(params, request.max_level, "max_level");
  std::map<u64, u32> levels;
  const auto want = [&](u64 element, u32 level) {
    u32& highest = levels.try_emplace(element, level).first->second;
    highest = rlwe::both(highest, level);
  };
  for (i64 steps : request.rotations) {
    const auto own = request.rotation_levels.find(steps);
    want(
        ring::galois_element_for_rotation(steps, params.log_n()),
        own == request.rotation_levels.end() ? usual : checked_level(params, own->second, "level"));
  }
  if (request.conjugate) {
    const u64 element = ring::galois_element_for_conjugation(params.log_n());
    want(element, request.conjugation_level
                      ? checked_level(params, request.conjugation_level, "conjugation_level")
                      : usual);
  }
  levels.erase(rlwe::kNoKey);
  return levels;
}

std::vector<u64> turned_elements(const Params& params, const KeyRequest& request) {
  if (!request.encapsulation_rotations.empty() && !request.encapsulation)
    throw ParameterError(
        cat(request.encapsulation_rotations.size(),
            " rotations of encapsulation without encapsulation, expected both or none"),
        {{"encapsulation_rotations", request.encapsulation_rotations.size()},
         {"encapsulation", false}});
  std::set<u64> elements;
  for (i64 steps : request.encapsulation_rotations)
    elements.insert(ring::galois_element_for_rotation(steps, params.log_n()));
  return {elements.begin(), elements.end()};
}

u32 relinearisation_level(const Params& params, const KeyRequest& request) {
  if (request.relinearisation_level)
    return checked_level(params, request.relinearisation_level, "relinearisation_level");
  return checked_level(params, request.max_level, "max_level");
}

std::vector<std::pair<rlwe::KeyId, u32>> switch_keys(const Params& params,
                                                     const KeyRequest& request) {
  std::vector<std::pair<rlwe::KeyId, u32>> keys;
  if (request.relinearisation)
    keys.emplace_back(rlwe::kRelinearisation, relinearisation_level(params, request));
  for (const auto& one : galois_levels(params, request)) keys.push_back(one);
  const auto& steps = request.aligned_rotations;
  if (steps.empty() && !request.aligned_conjugation && !request.aligned_relinearisation)
    return keys;
  const rlwe::Chain chain = chain_of(params);
  std::map<rlwe::KeyId, u32> aligned;
  const auto want = [&](rlwe::KeyId id, u32 level, const char* name) {
    const u32 own = checked_aligned(params, chain, level, name);
    u32& highest = aligned.try_emplace(rlwe::aligned_key(id), own).first->second;
    highest = std::max(highest, own);
  };
  if (request.aligned_relinearisation)
    want(rlwe::kRelinearisation, *request.aligned_relinearisation, "aligned_relinearisation");
  for (const auto& [k, level] : steps) {
    const u64 element = ring::galois_element_for_rotation(k, params.log_n());
    if (element != rlwe::kNoKey) want(element, level, "aligned_rotations");
  }
  if (request.aligned_conjugation)
    want(ring::galois_element_for_conjugation(params.log_n()), *request.aligned_conjugation,
         "aligned_conjugation");
  keys.insert(keys.end(), aligned.begin(), aligned.end());
  return keys;
}

rlwe::SwitchKey make_switch_key(rlwe::SecretKey& secret, rlwe::KeyId id, u32 level) {
  return rlwe::plain_key(id) == rlwe::kRelinearisation
             ? secret.make_relinearisation_key(level)
             : secret.make_galois_key(rlwe::plain_key(id), level);
}

KeyRequest merge(const KeyRequest& a, const KeyRequest& b) {
  KeyRequest both;
  both.relinearisation = a.relinearisation || b.relinearisation;
  both.conjugate = a.conjugate || b.conjugate;
  both.encapsulation = a.encapsulation || b.encapsulation;
  std::set<i64> turned(a.encapsulation_rotations.begin(), a.encapsulation_rotations.end());
  turned.insert(b.encapsulation_rotations.begin(), b.encapsulation_rotations.end());
  both.encapsulation_rotations.assign(turned.begin(), turned.end());
  // Explicit levels throughout: none is all, and above every other.
  const auto level_or = [](std::optional<u32> level, const KeyRequest& r) {
    return level ? level : r.max_level;
  };
  const auto higher = [](std::optional<u32> x, std::optional<u32> y) {
    return x && y ? std::optional(rlwe::both(*x, *y)) : std::nullopt;
  };
  std::map<i64, std::optional<u32>> rotations;
  const auto want = [&](i64 steps, std::optional<u32> level) {
    std::optional<u32>& highest = rotations.try_emplace(steps, level).first->second;
    highest = higher(highest, level);
  };
  bool conjugation = false, relinearisation = false;
  for (const KeyRequest* r : {&a, &b}) {
    for (i64 steps : r->rotations) {
      const auto own = r->rotation_levels.find(steps);
      want(steps, own == r->rotation_levels.end() ? r->max_level : std::optional(own->second));
    }
    if (r->conjugate) {
      const auto level = level_or(r->conjugation_level, *r);
      both.conjugation_level = conjugation ? higher(both.conjugation_level, level) : level;
      conjugation = true;
    }
    if (r->relinearisation) {
      const auto level = level_or(r->relinearisation_level, *r);
      both.relinearisation_level =
          relinearisation ? higher(both.relinearisation_level, level) : level;
      relinearisation = true;
    }
  }
  for (const auto& [steps, level] : rotations) {
    both.rotations.push_back(steps);
    if (level) both.rotation_levels.emplace(steps, *level);
  }
  // None of these is no key: the higher of both, or the one that is there.
  for (const KeyRequest* r : {&a, &b}) {
    both.aligned_conjugation = std::max(both.aligned_conjugation, r->aligned_conjugation);
    both.aligned_relinearisation =
        std::max(both.aligned_relinearisation, r->aligned_relinearisation);
    for (const auto& [steps, level] : r->aligned_rotations) {
      u32& highest = both.aligned_rotations.try_emplace(steps, level).first->second;
      highest = std::max(highest, level);
    }
  }
  return both;
}

KeySizes key_sizes(const Params& params, const KeyRequest& request) {
  const u64 limb = params.ring_dim() * sizeof(rlwe::Word);
  const u64 pair = 2 * params.primes().size() * limb;  // one digit
  KeySizes sizes;
  const rlwe::Chain chain = chain_of(params);
  for (const auto& [id, level] : switch_keys(params, request)) {
    const u64 bytes = key_bytes(chain, level);
    sizes.each = std::max(sizes.each, bytes);
    sizes.bytes += bytes;
    ++sizes.count;
  }
  if (sizes.count == 0) sizes.each = key_bytes(chain, kAll);
  const u64 turned = turned_elements(params, request).size();
  if (request.encapsulation) {
    const u32 base = params.window_end(0) - params.window_begin(0);
    rlwe::expect_encapsulation(base, params.log_q(0), params.alpha());
    sizes.count += 2 + static_cast<u32>(turned);
    sizes.bytes += (1 + turned) * pair + 2 * (base + rlwe::kEncapsulationPrimes) * limb;
  }
  return sizes;
}

void expect_room_for_keys(const Context::State& context, const KeyRequest& request) {
  const KeySizes sizes = key_sizes(context.params, request);
  if (sizes.count == 0) return;
  // The errors of one key, beside the keys.
  const u64 needed = sizes.bytes + sizes.each / 2;
  device::expect_room(context.ring->device(), {.device = needed}, [&] {
    const u64 small =
        request.encapsulation ? 2 + turned_elements(context.params, request).size() : 0;
    const u64 many = sizes.count - small;
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
