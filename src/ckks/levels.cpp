// Level alignment (docs/theory/ckks-primes.md, "Canonical scales"): drop limbs where the target's
// primes are a part of the source's; otherwise one constant product and rational rescale.
#include "ckks/levels.h"

#include <cmath>
#include <optional>

#include "ckks/evaluator_state.h"
#include "ckks/scale.h"

namespace crenel::ckks {

bool can_drop_to(const Params& params, u32 from, u32 to) {
  return params.window_begin(to) >= params.window_begin(from) &&
         params.window_end(to) <= params.window_end(from);
}

Ciphertext drop_limbs(const Evaluator::State& s, const Ciphertext& a, u32 level) {
  const auto& from = a.data().poly;
  auto out = s.poly(a.components(), a.batch(), level);
  const rlwe::ConstView kept = from.view().restrict_to(s.ring().window(level));
  const std::size_t row = out.limbs().size() * s.ring().ring_dim() * sizeof(rlwe::Word);
  s.stream->copy_rows(out.data(), row, kept.data, kept.component_stride * sizeof(rlwe::Word), row,
                      from.shape().polys());
  Metadata meta = a.metadata();
  meta.level = level;
  return s.wrap(std::move(out), meta);
}

namespace {

struct Step {
  u32 from;   // drop limbs to this level, then rescale by one
  bool last;  // what is left then is dropping limbs
};

// The lowest level, for the least work: best one whose rescale is the only one needed.
Step next_step(const Params& params, u32 level, u32 target) {
  for (u32 l = target + 1; l <= level; ++l)
    if (can_drop_to(params, level, l) && can_drop_to(params, l - 1, target)) return {l, true};
  for (u32 l = target + 1; l < level; ++l)
    if (can_drop_to(params, level, l)) return {l, false};
  return {level, false};
}

}  // namespace

Ciphertext Evaluator::adjust_level(const Ciphertext& a, u32 level, double scale) const {
  const State& s = *state_;
  s.check(a);
  const auto& params = s.params();
  if (level > a.level())
    throw StateError(
        cat("adjust_level from ", a.level(), " up to ", level, ", expected a lower level"),
        {{"level", cat(a.level())}, {"target", cat(level)}});
  if (scale != 0.0) expect_scale(params, level, scale, "adjust_level to scale");
  const double target_scale = scale == 0.0 ? params.scale(level) : scale;
  if (level == a.level()) {
    if (!scales_agree(a.scale(), target_scale))
      throw StateError(cat("adjust_level at level ", level, " cannot change the scale from ",
                           a.scale(), " to ", target_scale, ": it needs a level"),
                       {{"scale_a", cat(a.scale())}, {"scale_b", cat(target_scale)}});
    return s.copy(a);
  }
  if (scales_agree(a.scale(), target_scale) && can_drop_to(params, a.level(), level))
    return drop_limbs(s, a, level);
  const auto [from, last] = next_step(params, a.level(), level);
  std::optional<Ciphertext> dropped;
  if (from != a.level()) dropped = drop_limbs(s, a, from);
  const Ciphertext& lowered = dropped ? *dropped : a;
  const double next = last ? target_scale : params.scale(from - 1);
  const double constant_scale = next * params.rescale_ratio(from) / lowered.scale();
  if (!(constant_scale >= 0x1p20))
    throw StateError(cat("adjust_level: scale ", lowered.scale(), " at level ", from,
                         " is too large to reach scale ", next, " at level ", from - 1),
                     {{"scale_a", cat(lowered.scale())}, {"scale_b", cat(next)}});
  Ciphertext stepped = rescale(multiply(lowered, 1.0, constant_scale));
  // The constant is an integer, off by at most half a unit in 2^20: what the message gains is
  // noise.
  stepped.data().meta.scale = next;
  if (stepped.level() == level && last) return stepped;
  return adjust_level(stepped, level, target_scale);
}

}  // namespace crenel::ckks
