// The bridge: both ways across.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "bridge/objects.h"
#include "ckks/levels.h"
#include "ckks/observer.h"
#include "crenel/core/watch.h"
#include "crenel/device/account.h"
#include "tfhe/encoding.h"

namespace crenel::bridge {

using device::Stage;

namespace {

constexpr double kPi = std::numbers::pi;
/// Values apart by less would need a constant of too few bits on the way to a canonical scale.
constexpr double kLeastReach = 1.0 / 16;

struct Values {
  double middle = 0.0, reach = 0.0;
  std::vector<u64> phases;  ///< of sines that give them, modulo kPhaseUnit
};
constexpr u32 kPhaseUnit = u32(1) << 31;

u64 as_phase(double turns) {
  const auto rounded = static_cast<i64>(std::llround(turns * kPhaseUnit));
  return static_cast<u64>(rounded) % kPhaseUnit;  // two's complement
}

Values prepared(std::span<const double> values, std::size_t expected) {
  if (values.size() != expected)
    throw ParameterError(cat(values.size(), " values, expected ", expected),
                         {{"values", values.size()}, {"expected", expected}});
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]) || std::abs(values[i]) > 0x1p30)
      throw ParameterError(cat("value ", i, " is ", values[i], ", expected a number up to 2^30"),
                           {{"index", i}, {"value", values[i]}});
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  Values v{(*low + *high) / 2, (*high - *low) / 2, {}};
  if (!(v.reach >= kLeastReach))
    throw ParameterError(cat("values from ", *low, " to ", *high, ", expected ", 2 * kLeastReach,
                             " between the smallest and the largest; look up larger ones and "
                             "multiply by a constant"),
                         {{"low", *low}, {"high", *high}, {"expected", 2 * kLeastReach}});
  for (double x : values)
    v.phases.push_back(
        as_phase(std::asin(std::clamp((x - v.middle) / v.reach, -1.0, 1.0)) / (2 * kPi)));
  return v;
}

[[noreturn]] void refuse_bound(double bound, double low, double high) {
  throw StateError(cat("bridge of slots up to ", bound, " by their bound, expected within [", low,
                       ", ", high, "]"),
                   {{"bound", bound}, {"low", low}, {"high", high}});
}

void check_range(const ckks::Ciphertext& a, double low, double high) {
  if (a.bound() == ckks::kUnknownBound) return;
  if (-a.bound() < low || a.bound() > high) refuse_bound(a.bound(), low, high);
}

// Steps between hold what no model of slots knows: of Evaluator::checked the evaluator behind it.
const ckks::Evaluator* behind(const ckks::Evaluator* ev) {
  const auto& observer = ev->state().observer;
  return observer ? &observer->evaluator() : ev;
}

// The phase of -x on a circle of this length, modulo 2^log_q.
u32 offset_of(double x, double length, u32 log_q) {
  const double turns = -x / length;
  const double part = (turns - std::floor(turns)) * std::exp2(log_q);
  return static_cast<u32>(static_cast<u64>(std::llround(part)) & ((u64(1) << log_q) - 1));
}

}  // namespace

device::Buffer Bridge::State::extracted(const ckks::Evaluator& caller, const Keys& keys,
                                        const Ct& a, const Circle& c) const {
  const ckks::Evaluator& ev = *behind(&caller);
  auto& stream = ev.stream();
  const auto& params = ckks.params();
  const u32 input = boot->plan.levels.input, up = scale_up(c);
  const double factor = q0() / (c.length * params.scale(0)) / std::exp2(up);
  // Numbers become phases, which may go around: there is no bound on the way.
  Ct low = ev.state().copy(a);
  low.state_bound(ckks::kUnknownBound);
  low = boot->to_coefficients(ev, ev.adjust_level(low, input, params.scale(input) * factor));
  if (up != 0) low = ev.multiply_integer(low, i64(1) << up);
  const Stage stage(stream, "extract");
  const rlwe::Poly under = rings.down(stream, low.data().poly.view(), keys.data().down.view());
  const auto& home = tfhe.state();
  const device::LweShape shape{slots(), home.plan.rest_dim(), 1, log_q()};
  device::Buffer rows = stream.allocate(shape.rows * shape.words() * sizeof(u32));
  const device::LweView view(rows.as<u32>(), shape);
  home.torus->extract(stream, view, {under.data(), ckks.params().log_n(), rings.modulus()},
                      positions.as<const u32>());
  const device::LweTerm term{rows.as<const u32>(), 1};
  home.torus->linear(stream, view, std::span(&term, 1), offset_of(c.zero, c.length, log_q()));
  watch::advance();
  return rows;
}

ckks::Ciphertext Bridge::State::slots_of(const ckks::Evaluator& caller, const Keys& keys,
                                         const u32* rows, double middle, double reach) const {
  const ckks::Evaluator& ev = *behind(&caller);
  std::optional<Stage> stage(std::in_place, ev.stream(), "pack");
  const auto& s = ev.state();
  rlwe::Poly poly = s.poly(2, 1, 0);
  packing(*s.stream, *tfhe.state().torus, keys.data(), rows, poly.view());
  stage.reset();
  ckks::Metadata meta{0, ckks.params().scale(0), slots(), false, ev.keys().secret_key_id()};
  Ct sine = boot->sine_of_coefficients(ev, s.wrap(std::move(poly), meta));
  // sin / 2 pi, read as `reach` times the sine
  sine.data().meta.scale /= 2 * kPi * reach;
  sine.data().meta.real = true;
  Ct out = ev.add(ev.adjust_level(sine, output_level()), std::complex<double>(middle));
  out.data().meta.real = true;
  out.state_bound(std::max(std::abs(middle - reach), std::abs(middle + reach)));
  return out;
}

tfhe::Ciphertext Bridge::to_messages(const ckks::Evaluator& ev, const Keys& keys,
                                     const ckks::Ciphertext& a, const Grid& grid) const {
  const State& s = *state_;
  const auto circle = s.circle(grid);
  s.check(ev, keys, a);
  const u32 p = s.plain_modulus(), points = p / 2;
  check_range(a, grid.low - grid.step / 2, grid.low + (points - 0.5) * grid.step);
  const auto& home = s.tfhe.state();
  auto data = tfhe::empty_ciphertext(home, s.slots(), p, s.log_q());
  data->secret_key = keys.tfhe_secret_key_id();
  data->noise = tfhe::Noise(s.slots(), s.extracted_variance(circle));
  data->payload = s.extracted(ev, keys, a, circle);
  return tfhe::Ciphertext(std::move(data));
}

ckks::Ciphertext Bridge::to_slots(const ckks::Evaluator& ev, const tfhe::Evaluator& tfhe,
                                  const Keys& keys, const tfhe::Ciphertext& a,
                                  std::span<const double> values) const {
  const State& s = *state_;
  const Values v = prepared(values, messages());
  s.check_keys(ev);
  s.check(keys);
  s.check(tfhe, keys);
  expect_same_secret_key(ev.keys().secret_key_id(), keys.ckks_secret_key_id(), "evaluator",
                         "these bridge keys");
  expect_same_secret_key(a.secret_key_id(), keys.tfhe_secret_key_id(), "ciphertext",
                         "these bridge keys");
  const auto& t = tfhe.state();
  t.check(a);
  t.check_size(a, s.slots());
  t.check_plain_modulus(a, s.plain_modulus(), "bridge");
  t.check_log_modulus(a, s.log_q(), "bridge");
  const auto& home = t.home();
  t.judge(a.data().noise, s.log_q(), tfhe::table_margin(t.plan(), s.plain_modulus()), "bridge");
  tfhe::ContentKey key("bridge table");
  key.add(s.plain_modulus()).add(std::span<const u64>(v.phases));
  const auto table = home.tables.get(*home.stream, key, [&] {
    return tfhe::table_words(
        std::vector{tfhe::table_polynomial(home.plan, s.plain_modulus(), v.phases, kPhaseUnit)});
  });
  const device::Buffer rows =
      t.bootstrapped(a.data().payload.as<const u32>(), s.slots(), tfhe::lut_view(t.plan(), *table));
  return s.slots_of(ev, keys, rows.as<const u32>(), v.middle, v.reach);
}

ckks::Ciphertext Bridge::lut(const ckks::Evaluator& ev, const tfhe::Evaluator& tfhe,
                             const Keys& keys, const ckks::Ciphertext& a, const Grid& grid,
                             std::span<const double> values) const {
  prepared(values, messages());
  state_->check(tfhe, keys);
  return to_slots(ev, tfhe, keys, to_messages(ev, keys, a, grid), values);
}

ckks::Ciphertext Bridge::compare(const ckks::Evaluator& ev, const tfhe::Evaluator& tfhe,
                                 const Keys& keys, const ckks::Ciphertext& a, double threshold,
                                 double bound, std::span<const double> values) const {
  const State& s = *state_;
  const Values v = prepared(values, 2);
  const auto circle = s.circle(threshold, bound);
  s.check(ev, keys, a);
  check_range(a, threshold - bound, threshold + bound);
  s.check(tfhe, keys);
  const auto& t = tfhe.state();
  const device::Buffer rows = s.extracted(ev, keys, a, circle);
  // A quarter turn on the upper half of the numbers; the lower half reads its negative.
  const bool rising = values[1] > values[0];
  const auto view = t.function(tfhe::ContentKey("bridge sign").add(u32(rising)), [&] {
    const u64 quarter = tfhe::scaled_to_modulus(rising ? 1 : -1, 4, t.plan().modulus);
    return tfhe::TestPolynomial{std::vector<u64>(t.plan().ring_dim(), quarter), 0};
  });
  const device::Buffer signs = t.bootstrapped(rows.as<const u32>(), s.slots(), view);
  return s.slots_of(ev, keys, signs.as<const u32>(), v.middle, v.reach);
}

}  // namespace crenel::bridge
