// Level alignment (docs/theory/ckks-primes.md, "Canonical scales"): drop limbs where the target's
// primes are a part of the source's; otherwise one constant product and rational rescale.
#include "ckks/levels.h"

#include "ckks/magnitude.h"
#include "ckks/observer.h"
#include "ckks/polynomial.h"
#include "ckks/scale.h"

namespace crenel::ckks {

bool can_drop_to(const Params& params, u32 from, u32 to) {
  return params.window_begin(to) >= params.window_begin(from) &&
         params.window_end(to) <= params.window_end(from);
}

Ciphertext drop_limbs(const Evaluator::State& s, const Ciphertext& a, u32 level) {
  const auto& from = a.data().poly;
  Metadata meta = a.metadata();
  meta.level = level;
  magnitude::expect_fits(s.params(), meta, "adjust_level");
  auto out = s.poly(a.components(), a.batch(), level);
  const rlwe::ConstView kept = from.view().restrict_to(s.ring().window(level));
  const std::size_t row = out.limbs().size() * s.ring().ring_dim() * sizeof(rlwe::Word);
  s.stream->copy_rows(out.data(), row, kept.data, kept.component_stride * sizeof(rlwe::Word), row,
                      from.shape().polys());
  return s.wrap(std::move(out), meta);
}

LevelStep next_step(const Params& params, u32 level, u32 target) {
  for (u32 l = target + 1; l <= level; ++l)
    if (can_drop_to(params, level, l) && can_drop_to(params, l - 1, target)) return {l, true};
  for (u32 l = target + 1; l < level; ++l)
    if (can_drop_to(params, level, l)) return {l, false};
  return {level, false};
}

double adjusted_scale(const Params& params, const Metadata& meta, u32 level, double scale) {
  if (level > meta.level)
    refuse_level(params, cat("adjust_level to level ", level), meta.level, level,
                 {{"target", level}}, "; only a bootstrap goes up");
  if (scale != 0.0) expect_scale(params, level, scale, "adjust_level to scale");
  const double target_scale = scale == 0.0 ? params.scale(level) : scale;
  if (level == meta.level && !scales_agree(meta.scale, target_scale))
    throw StateError(cat("adjust_level at level ", level, " cannot change the scale from ",
                         meta.scale, " to ", target_scale, ": it needs a level"),
                     {{"scale_a", meta.scale}, {"scale_b", target_scale}});
  return target_scale;
}

Ciphertext Evaluator::adjust_level(const Ciphertext& a, u32 level, double scale) const {
  if (state_->observer)
    return state_->observer->watch(
        "adjust_level",
        [&](const auto& on, const auto& x) { return on.adjust_level(x, level, scale); }, a);
  state_->check(a);
  if (magnitude::known(a.bound())) {  // refuses before the first step
    const MagnitudeModel model(state_->params(), "adjust_level");
    ckks::adjust_level(MagnitudeOps{model}, Magnitude{a.metadata(), a.components()}, level, scale);
  }
  return ckks::adjust_level(CiphertextOps{*this}, a, level, scale);
}

}  // namespace crenel::ckks
