// What the tests of circuits share: matrices in the clear, keys for exactly what a circuit asks
// for, bits of ciphertexts.
#pragma once

#include <set>

#include "ckks/objects.h"
#include "crenel/circuits/linear_transform.h"
#include "crenel/ckks/serialize.h"
#include "support/ckks_world.h"

namespace crenel::test {

/// M v for every row of m.slots values, straight from the definition.
inline Values apply(const circuits::DiagonalMatrix& m, const Values& v) {
  Values out(v.size());
  for (u64 row = 0; row < v.size(); row += m.slots)
    for (const auto& [k, diagonal] : m.diagonals)
      for (u64 i = 0; i < m.slots; ++i) out[row + i] += diagonal[i] * v[row + (i + k) % m.slots];
  return out;
}

/// Largest sum of |entries| over the rows: how far M can enlarge a vector.
inline double row_norm(const circuits::DiagonalMatrix& m) {
  std::vector<double> sums(m.slots);
  for (const auto& [k, diagonal] : m.diagonals)
    for (u64 i = 0; i < m.slots; ++i) sums[i] += std::abs(diagonal[i]);
  return *std::max_element(sums.begin(), sums.end());
}

/// Diagonals with these offsets, every value repeated after `period` (0: none).
inline circuits::DiagonalMatrix random_diagonals(Rng& rng, u64 slots, std::span<const u64> offsets,
                                                 u64 period = 0) {
  circuits::DiagonalMatrix m{slots, {}};
  for (u64 k : offsets) {
    Values v = random_values(rng, slots);
    for (u64 i = 0; i < slots && period != 0; ++i) v[i] = v[i % period];
    m.diagonals[k] = std::move(v);
  }
  return m;
}

inline circuits::DiagonalMatrix random_dense(Rng& rng, u64 rows, u64 columns, u64 slots) {
  return circuits::DiagonalMatrix::from_dense(random_values(rng, rows * columns), rows, columns,
                                              slots);
}

/// Options of a transform: those that tests choose.
inline circuits::LinearTransformOptions with(circuits::KeyMode keys, std::optional<u32> level = {},
                                             u64 baby_steps = 0) {
  circuits::LinearTransformOptions o;
  o.level = level, o.keys = keys, o.baby_steps = baby_steps;
  return o;
}

/// An evaluator with these rotation keys and no others.
inline ckks::Evaluator evaluator_with(World& w, const std::vector<i64>& rotations) {
  return w.context.evaluator(w.client.evaluation_keys({rotations, false, false}));
}

/// The names of a comma-separated list, such as the missing keys of an error.
inline std::multiset<std::string> names_in(const std::string& list) {
  std::multiset<std::string> names;
  std::stringstream stream(list);
  for (std::string name; std::getline(stream, name, ',');) {
    name.erase(0, name.find_first_not_of(' '));
    names.insert(name);
  }
  return names;
}

/// The names of all keys that are missing.
inline std::multiset<std::string> names_in(const KeyMissingError& error) {
  std::multiset<std::string> names = names_in(error.field("rotations"));
  names.merge(names_in(error.field("key")));
  return names;
}

}  // namespace crenel::test
