// Levels: dropping limbs, and the way from one to a lower one, of ciphertexts and of error bounds.
#pragma once

#include <cmath>
#include <optional>

#include "ckks/evaluator_state.h"

namespace crenel::ckks {

/// Is the window of level `to` a part of the window of level `from`?
bool can_drop_to(const Params& params, u32 from, u32 to);
/// The same message and scale modulo the smaller modulus; needs can_drop_to.
Ciphertext drop_limbs(const Evaluator::State& s, const Ciphertext& a, u32 level);

/// Where the way to a lower level goes next.
struct LevelStep {
  u32 from;   ///< drop limbs to this level, then rescale by one
  bool last;  ///< what is left then is dropping limbs
};
/// The lowest level, for the least work: best one whose rescale is the only one needed.
LevelStep next_step(const Params& params, u32 level, u32 target);
/// The refusals of adjust_level; the scale to reach (0: the level's canonical one).
double adjusted_scale(const Params& params, const Metadata& meta, u32 level, double scale);

/// Evaluator::adjust_level for whatever `ops` computes on (ckks/paterson_stockmeyer.h).
template <class Ops>
typename Ops::Value adjust_level(const Ops& ops, const typename Ops::Value& a, u32 level,
                                 double scale) {
  using Value = typename Ops::Value;
  const Params& params = ops.params();
  const double target_scale = adjusted_scale(params, ops.metadata(a), level, scale);
  if (level == a.level()) return ops.copy(a);
  if (scales_agree(a.scale(), target_scale) && can_drop_to(params, a.level(), level))
    return ops.drop(a, level);
  const auto [from, last] = next_step(params, a.level(), level);
  std::optional<Value> dropped;
  if (from != a.level()) dropped = ops.drop(a, from);
  const Value& lowered = dropped ? *dropped : a;
  const double next = last ? target_scale : params.scale(from - 1);
  const double constant_scale = next * params.rescale_ratio(from) / lowered.scale();
  if (!(constant_scale >= 0x1p20))
    throw StateError(cat("adjust_level: scale ", lowered.scale(), " at level ", from,
                         " is too large to reach scale ", next, " at level ", from - 1),
                     {{"scale_a", lowered.scale()}, {"scale_b", next}});
  Value stepped = ops.ev.rescale(ops.ev.multiply(lowered, 1.0, constant_scale));
  // The constant is an integer, off by at most half a unit in 2^20: what the message gains is
  // noise.
  ops.set_scale(stepped, next);
  if (stepped.level() == level && last) return stepped;
  return adjust_level(ops, stepped, level, target_scale);
}

}  // namespace crenel::ckks
