// Linear transforms of bootstrapping and what stands beside them.
#pragma once

#include "world.h"

namespace crenel::bench {

/// One stage of CoeffToSlot or SlotToCoeff: 8 baby steps (the first is no rotation), `giants` giant
/// steps, plaintexts without and with repetition.
inline void bench_transform(World& w, Table& table, u32 limbs, u32 giants) {
  constexpr u32 kBabies = 8;
  if (!table.wants("hoisted_plain_sums") && !table.wants("plain_multiply_sum")) return;
  auto& k = *w.kernels;
  auto& s = *w.stream;
  const LimbSet all = LimbSet::range(0, kChain + kSpecial), window = LimbSet::range(0, limbs);
  const LimbSet extended = window.concat(LimbSet::range(kChain, kChain + kSpecial));
  const u32 digits = (limbs + kAlpha - 1) / kAlpha, log_n = w.ring->log_n();
  const View raised = w.make(digits, extended, Domain::eval);
  const View input = w.make(2, window, Domain::eval);
  std::vector<View> out, steps;
  std::vector<device::KeyView> keys(kBabies);
  std::vector<u64> elements{1};
  for (u32 g = 0; g < giants; ++g) out.push_back(w.make(2, extended, Domain::eval));
  for (u32 b = 1; b < kBabies; ++b) {
    keys[b] = w.make(2, all, Domain::eval, kChain / kAlpha);
    elements.push_back(ring::galois_element_for_rotation(i64(b) << (log_n / 2), log_n));
  }
  const View words = w.make(kBabies, extended, Domain::eval, giants);
  const std::vector<u8> present(std::size_t(giants) * kBabies, 1);
  device::LimbScalars special;
  for (u32 i = 0; i < limbs; ++i) special.low[i] = special.high[i] = 12345 + i;

  const double e = extended.size(), d = digits;
  for (const u32 log_words : {log_n, log_n - 5}) {
    const std::string full = log_words == log_n ? "" : "_periodic";
    const device::PlainGrid plain{words.data, extended, log_words, giants, kBabies, present.data()};
    const double plain_limbs = giants * kBabies * e / (1u << (log_n - log_words));
    const double sums = plain_limbs + 2 * giants * e;
    table.run(w, ("hoisted_plain_sums" + full).c_str(), limbs,
              (kBabies - 1) * 2 * d * e + d * e + 2.0 * limbs + sums, [&] {
                k.hoisted_plain_sums(s, out, raised, input.components(0, 1), input.components(1, 1),
                                     keys, elements, plain, special, 0);
              });
  }
  w.memory.resize(w.memory.size() - kBabies);  // the keys and the plaintexts
  if (!table.wants("plain_multiply_sum")) return;
  for (u32 b = 0; b < kBabies; ++b) steps.push_back(w.make(2, extended, Domain::eval));
  const View words2 = w.make(kBabies, extended, Domain::eval, giants);
  const std::vector<ring::PolyView<const u32>> in(steps.begin(), steps.end());
  const device::PlainGrid plain{words2.data, extended, log_n, giants, kBabies, present.data()};
  table.run(w, "plain_multiply_sum", limbs, 2 * kBabies * e + giants * kBabies * e + 2 * giants * e,
            [&] { k.plain_multiply_sum(s, out, in, plain); });
}

inline void bench_sums(World& w, Table& table, u32 limbs, u32 giants) {
  auto& k = *w.kernels;
  auto& s = *w.stream;
  bench_transform(w, table, limbs, giants);
  w.memory.clear();
  const LimbSet window = LimbSet::range(0, limbs);
  const View out = w.make(2, window, Domain::eval);
  std::vector<ring::PolyView<const u32>> in;
  std::vector<device::LimbScalars> scalars(16);
  for (auto& term : scalars) {
    in.push_back(w.make(2, window, Domain::eval));
    for (u32 i = 0; i < limbs; ++i) term.low[i] = term.high[i] = 54321 + i;
  }
  const double l = limbs;
  for (const u32 terms : {2u, 16u}) {
    const std::string name = cat("linear_combination_", terms);
    table.run(w, name.c_str(), limbs, 2 * (terms + 1) * l, [&] {
      k.linear_combination(s, out, std::span(in).first(terms), std::span(scalars).first(terms),
                           &scalars[0]);
    });
  }
  const ring::PolyView<const u32> addend = in[1].components(0, 1);
  table.run(w, "automorphism_add", limbs, 7 * l,
            [&] { k.automorphism_add(s, out, in[0], 5, &addend); });
  const View two = w.make(2, LimbSet::range(0, 2), Domain::coeff);
  const device::Buffer values = s.allocate(two.words() * sizeof(u32));
  table.run(w, "lift_signed", 2, 8, [&] { k.lift_signed(s, values.as<i64>(), two); });
  w.memory.clear();
}

}  // namespace crenel::bench
