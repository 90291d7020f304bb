#include "crenel/circuits/linear_transform.h"

#include <algorithm>
#include <cmath>

#include "circuits/linear_transform/keys.h"
#include "circuits/linear_transform/norms.h"
#include "circuits/linear_transform/plaintexts.h"
#include "ckks/batch_request.h"
#include "ckks/evaluator_state.h"
#include "ckks/magnitude.h"
#include "ckks/noise.h"
#include "ckks/norms.h"
#include "ckks/observer.h"
#include "ckks/scale.h"

namespace crenel::circuits {

using ckks::Ciphertext;
using ckks::Evaluator;
using rlwe::ConstView;
using rlwe::Poly;
using rlwe::View;
using Complex = std::complex<double>;

DiagonalMatrix DiagonalMatrix::from_dense(std::span<const Complex> values, u64 rows, u64 columns,
                                          u64 slots) {
  if (rows == 0 || columns == 0 || values.size() != rows * columns)
    throw ParameterError(cat(values.size(), " values for a matrix of ", rows, " x ", columns),
                         {{"values", values.size()}, {"expected", rows * columns}});
  if (rows > slots || columns > slots)
    throw ParameterError(cat("matrix of ", rows, " x ", columns, ", expected at most ", slots,
                             " (the slots) of each"),
                         {{"rows", rows}, {"columns", columns}, {"slots", slots}});
  DiagonalMatrix m{slots, {}};
  for (u64 i = 0; i < rows; ++i)
    for (u64 j = 0; j < columns; ++j) {
      const Complex v = values[i * columns + j];
      if (v == Complex(0.0)) continue;
      auto& diagonal = m.diagonals[(j + slots - i) % slots];
      if (diagonal.empty()) diagonal.resize(slots);
      diagonal[i] = v;
    }
  if (m.diagonals.empty()) m.diagonals[0].resize(slots);
  return m;
}

struct LinearTransform::State {
  ckks::Context context;
  MatrixNorms norms;
  Bsgs plan;
  u32 level;
  double plain_scale;
  KeyMode keys;
  DiagonalPlaintexts plaintexts;

  /// M v in the clear, of the diagonals as they were encoded.
  ckks::ClearSlots clear(const ckks::ClearSlots& v) const;
  Ciphertext hoisted(const Evaluator& ev, const Ciphertext& v) const;
  Ciphertext minimal(const Evaluator& ev, const Ciphertext& v) const;
};

namespace {

std::vector<u64> offsets_of(const DiagonalMatrix& matrix, const ckks::Params& params) {
  if (matrix.slots > params.slots())
    throw ParameterError(
        cat("linear transform of ", matrix.slots, " slots, expected at most ", params.slots()),
        {{"slots", matrix.slots}, {"max_slots", params.slots()}});
  std::vector<u64> offsets;
  for (const auto& [offset, values] : matrix.diagonals) {
    if (values.size() != matrix.slots)
      throw ParameterError(cat("diagonal ", offset, " has ", values.size(), " values, expected ",
                               matrix.slots, " (the slots)"),
                           {{"values", values.size()}, {"slots", matrix.slots}});
    for (const Complex& x : values)
      if (!std::isfinite(x.real()) || !std::isfinite(x.imag()))
        throw ParameterError(cat("diagonal ", offset,
                                 " holds what is infinite or no number, expected finite numbers"),
                             {{"offset", offset}});
    offsets.push_back(offset);
  }
  return offsets;
}

u32 checked_level(const ckks::Params& params, const LinearTransformOptions& options) {
  const u32 level = options.level.value_or(params.normal_top_level());
  if (level == 0 || level > params.max_level())
    throw ParameterError(
        cat("linear transform at level ", level, ", expected 1 to ", params.max_level(),
            ": it consumes one; bootstrap the vectors, or take parameters of "
            "more depth, where none is left"),
        {{"level", level}, {"max_level", params.max_level()}});
  return level;
}

const rlwe::LimbSet& plaintext_limbs(const rlwe::RingContext& ring, u32 level, KeyMode keys) {
  // Hoisted, the products with plaintexts are in the extended basis.
  return keys == KeyMode::hoisted ? ring.extended(level) : ring.window(level);
}

// Of the sums of the giant steps, and of the digits that they are made of.
u64 hoisted_bytes(const rlwe::RingContext& ring, const Bsgs& plan, u32 level, u32 batch) {
  const u64 polys = 2 * plan.giants.size() + ring.digit_count(level);
  return polys * batch * ring.extended(level).size() * ring.ring_dim() * sizeof(rlwe::Word);
}

double checked_scale(const ckks::Params& params, u32 level, double scale) {
  if (scale == 0.0)
    return params.scale(level - 1) * params.rescale_ratio(level) / params.scale(level);
  ckks::expect_scale(params, level, scale, "plaintext scale");
  return scale;
}

}  // namespace

LinearTransform::LinearTransform(const ckks::Context& context, const DiagonalMatrix& matrix,
                                 const LinearTransformOptions& options) {
  const auto& params = context.params();
  const u32 level = checked_level(params, options);
  const double scale = checked_scale(params, level, options.plain_scale);
  Bsgs plan = plan_bsgs(offsets_of(matrix, params), matrix.slots, options.baby_steps, options.keys);
  const auto& ring = *context.state().ring;
  const auto& limbs = plaintext_limbs(ring, level, options.keys);
  DiagonalPlaintexts plaintexts(context.state(), matrix, plan, scale, limbs);
  state_.reset(new State{context, norms_of(matrix), std::move(plan), level, scale, options.keys,
                         std::move(plaintexts)});
}

u64 plaintext_bytes_of(const ckks::Context& context, const DiagonalMatrix& matrix,
                       const LinearTransformOptions& options) {
  const auto& params = context.params();
  const u32 level = checked_level(params, options);
  const Bsgs plan =
      plan_bsgs(offsets_of(matrix, params), matrix.slots, options.baby_steps, options.keys);
  return DiagonalPlaintexts::bytes_of(
      matrix, plan, plaintext_limbs(*context.state().ring, level, options.keys).size());
}

LinearTransform::LinearTransform(LinearTransform&&) noexcept = default;
LinearTransform& LinearTransform::operator=(LinearTransform&&) noexcept = default;
LinearTransform::~LinearTransform() = default;

u32 LinearTransform::level() const { return state_->level; }
u64 LinearTransform::slots() const { return state_->plan.slots; }
const std::vector<i64>& LinearTransform::rotations() const { return state_->plan.rotations; }
u64 LinearTransform::baby_steps() const { return state_->plan.babies.size(); }
u64 LinearTransform::giant_steps() const { return state_->plan.giants.size(); }
u64 LinearTransform::plaintext_bytes() const { return state_->plaintexts.bytes(); }
u64 LinearTransform::working_bytes(u32 batch) const {
  if (state_->keys != KeyMode::hoisted) return 0;
  return hoisted_bytes(*state_->context.state().ring, state_->plan, level(), batch);
}

namespace {

/// What the bound of a transform depends on.
struct BoundTask {
  const MatrixNorms& norms;
  const Bsgs& plan;
  u32 level;
  double plain_scale;
  KeyMode keys;
};

void check_vector(const ckks::Params& params, const ckks::Metadata& v, u32 level, u64 slots) {
  if (v.level < level)
    ckks::refuse_level(params, "linear_transform", v.level, level, {{"expected", level}},
                       v.level == 0 ? ""
                                    : cat(" (context.linear_transform(matrix, level=", v.level,
                                          ") makes one for it)"));
  if (v.level > level)
    throw StateError(cat("linear transform of a ciphertext at level ", v.level, ", expected ",
                         level, ", where its plaintexts are; adjust_level it"),
                     {{"operation", "linear_transform"}, {"level", v.level}, {"expected", level}});
  if (v.slots != slots)
    throw StateError(cat("linear transform of ", v.slots, " slots, expected ", slots),
                     {{"slots", v.slots}, {"expected", slots}});
}

// Every key switch's error is multiplied by what its vector is; of a giant step, and of all at the
// end, at the scale of the products. The rounding of a diagonal meets the message.
ckks::ErrorBound bound_of(const BoundTask& s, const ckks::ErrorModel& model,
                          const ckks::ErrorBound& v) {
  const ckks::Params& params = model.params();
  if (v.components != 2)
    throw StateError(cat("linear transform of ", v.components, " components, expected 2"),
                     {{"components", v.components}, {"expected", 2}});
  check_vector(model.params(), v.meta, s.level, s.plan.slots);
  const ckks::NormBounds n(params, v.slots());
  const ckks::ErrorBound rounding =
      model.plaintext(s.norms.largest, false, s.level, s.plain_scale, v.slots());
  const u64 babies = s.plan.babies.size(), giants = s.plan.giants.size();
  const double diagonals = static_cast<double>(s.norms.diagonals);
  const bool hoisted = s.keys == KeyMode::hoisted;
  ckks::ErrorBound a = v;
  // Before the products: a baby step's switch, of which a minimal one has as many as steps.
  const ckks::Norms step = hoisted ? n.gadget(s.level) : double(babies) * n.key_switch(s.level);
  a = ckks::with_errors(a, 1.0 / v.scale() * step);
  ckks::ErrorBound out = a;
  out.meta.real = v.meta.real && s.norms.real;
  out.message = ckks::magnitude::scaled(v.message, s.norms.rows);
  out.rms = s.norms.two() * v.rms + s.norms.sum * (a.rms - v.rms) +
            diagonals * rounding.rms * (v.message + a.ring);
  out.max = s.norms.rows * v.max + s.norms.sum * (a.max - v.max) +
            diagonals * rounding.max * (v.message + a.ring);
  out.ring = s.norms.rows * v.ring + s.norms.sum * (a.ring - v.ring) +
             diagonals * rounding.ring * (v.message + a.ring);
  out.variance = s.norms.two() * s.norms.two() * v.variance +
                 s.norms.sum * s.norms.sum * (a.variance - v.variance) +
                 diagonals * rounding.variance * v.message * v.message;
  const double product_scale = v.scale() * s.plain_scale;
  out = ckks::with_errors(out, double(giants) / product_scale * n.key_switch(s.level));
  out.meta.scale = product_scale;
  const u32 alpha = hoisted ? params.alpha() : 0;
  out.meta = ckks::rescaled_metadata(params, out.meta);
  const ckks::Norms last = n.division(alpha + ckks::noise::dropped_primes(params, s.level));
  return model.result(ckks::with_errors(out, 1.0 / out.scale() * last));
}

}  // namespace

ckks::ErrorBound LinearTransform::operator()(const ckks::ErrorModel& model,
                                             const ckks::ErrorBound& v) const {
  const State& s = *state_;
  return bound_of({s.norms, s.plan, s.level, s.plain_scale, s.keys}, model, v);
}

ckks::ErrorBound linear_transform_bound(const ckks::ErrorModel& model, const DiagonalMatrix& matrix,
                                        const ckks::ErrorBound& v,
                                        const LinearTransformOptions& options) {
  const ckks::Params& params = model.params();
  const u32 level = checked_level(params, {.level = options.level.value_or(v.level())});
  const double scale = checked_scale(params, level, options.plain_scale);
  const Bsgs plan =
      plan_bsgs(offsets_of(matrix, params), matrix.slots, options.baby_steps, options.keys);
  return bound_of({norms_of(matrix), plan, level, scale, options.keys}, model, v);
}

Ciphertext LinearTransform::operator()(const Evaluator& ev, const Ciphertext& v) const {
  const auto& s = ev.state();
  if (s.observer)
    return s.observer->watch(
        "linear transform",
        [&](const auto& on, const auto& x) {
          if constexpr (std::is_same_v<std::decay_t<decltype(on)>, ckks::ClearModel>)
            return state_->clear(x);
          else
            return (*this)(on, x);
        },
        v);
  s.check_components(v, 2, "linear transform");
  s.check_serves(state_->context);
  check_vector(s.params(), v.metadata(), level(), slots());
  const double bound = ckks::magnitude::scaled(v.bound(), state_->norms.rows);
  ckks::magnitude::bounded(  // refuses what is too large
      s.params(), s.product_metadata(v.metadata(), state_->plain_scale, false), bound,
      "linear transform");
  require_rotations(s, state_->plan.rotations, slots());
  Ciphertext out =
      state_->keys == KeyMode::hoisted ? state_->hoisted(ev, v) : state_->minimal(ev, v);
  out.data().meta.bound = bound;
  return out;
}

ckks::ClearSlots LinearTransform::State::clear(const ckks::ClearSlots& v) const {
  ckks::ClearSlots out = v;
  std::fill(out.values.begin(), out.values.end(), Complex(0.0));
  for (u32 g = 0; g < plan.giants.size(); ++g)
    for (u32 b = 0; b < plan.babies.size(); ++b) {
      const auto diagonal = plaintexts.values(context.state(), plain_scale, g, b);
      if (diagonal.empty()) continue;
      for (std::size_t i = 0; i < out.values.size(); ++i) {
        const u64 row = i / v.slots * v.slots,
                  j = i - row;  // stored rotated back by the giant step
        out.values[i] += diagonal[(j + plan.giants[g]) % diagonal.size()] *
                         v.values[row + (j + plan.giants[g] + plan.babies[b]) % v.slots];
      }
    }
  return out;
}

// Double hoisting: baby steps stay in the extended basis (b times P), where they meet the
// plaintexts; a giant step divides its `a` by P and switches it again; all is summed in the
// extended basis, and divided once, together with the rescale.
Ciphertext LinearTransform::State::hoisted(const Evaluator& ev, const Ciphertext& v) const {
  const auto& s = ev.state();
  const auto& ring = s.ring();
  const auto ks = s.switcher();
  const ConstView in = v.data().poly.view(), b = in.components(0, 1), a = in.components(1, 1);
  std::vector<u64> elements;
  for (u64 step : plan.babies)
    elements.push_back(s.rotation_element(static_cast<i64>(step), plan.slots));
  const u32 batch = v.batch(), giants = static_cast<u32>(plan.giants.size());
  const u64 needed = hoisted_bytes(ring, plan, level, batch);
  device::expect_room(*s.stream, {.device = needed},
                      [&] { return ckks::batch_request("a linear transform", batch, needed); });
  Poly sums(*s.stream, {ring.log_n(), 2, giants * batch}, ring.extended(level), ring::Domain::eval);
  std::vector<View> rows;
  for (u32 g = 0; g < giants; ++g) rows.push_back(sums.view().rows(g * batch, batch));
  {
    const Poly digits = ks.mod_up(a, level);
    const auto keys = s.lease(elements);
    s.kernels().hoisted_plain_sums(*s.stream, rows, digits.view(), b, a, keys.views(), elements,
                                   plaintexts.grid(), ring.special_scalars(level),
                                   ring.first_digit(level));
  }
  // Giant step 0, where there is one, is the first row and needs no key: the others join it.
  const bool zero_first = plan.giants[0] == 0;
  Poly joined;
  if (!zero_first) {
    joined = Poly(*s.stream, {ring.log_n(), 2, batch}, ring.extended(level), ring::Domain::eval);
    s.stream->fill_zero(joined.data(), joined.bytes());
  }
  const View acc = zero_first ? rows[0] : joined.view();
  const u32 first = zero_first ? 1 : 0;
  if (giants > first) {
    Poly divided(*s.stream, {ring.log_n(), 1, (giants - first) * batch}, ring.window(level),
                 ring::Domain::eval);
    const ConstView others = sums.view().rows(first * batch, (giants - first) * batch);
    s.kernels().divide(*s.stream, divided.view(), others.components(1, 1), ring.mod_down(level));
    for (u32 g = first; g < giants; ++g) {
      const u64 element = s.rotation_element(static_cast<i64>(plan.giants[g]), plan.slots);
      const Poly switched = ks.switch_key(divided.view().rows((g - first) * batch, batch),
                                          s.lease(element)[0], level);
      const ConstView row_b = ConstView(rows[g]).components(0, 1);
      s.kernels().automorphism_add(*s.stream, acc, switched.view(), element, &row_b);
    }
  }
  ckks::Metadata meta = v.metadata();
  meta.real = meta.real && norms.real;
  meta.scale = s.rescaled(meta.scale * plain_scale, level);
  meta.level = level - 1;
  Poly out(*s.stream, {ring.log_n(), 2, batch}, ring.window(level - 1), ring::Domain::eval);
  s.kernels().divide(*s.stream, out.view(), acc, ring.mod_down_rescale(level));
  return s.wrap(std::move(out), meta);
}

// Min-KS (ARK): baby step b + 1 is baby step b rotated by the stride; giant steps are summed from
// the last one down, rotating the sum by one giant step at a time.
Ciphertext LinearTransform::State::minimal(const Evaluator& ev, const Ciphertext& v) const {
  const auto& s = ev.state();
  const auto& ring = s.ring();
  const u32 batch = v.batch(), giants = static_cast<u32>(plan.giants.size());
  const i64 stride = static_cast<i64>(plan.stride);
  std::vector<Ciphertext> babies;
  babies.push_back(s.copy(v));
  while (babies.size() < plan.babies.size()) babies.push_back(ev.rotate(babies.back(), stride));
  std::vector<ConstView> in;
  for (const auto& baby : babies) in.push_back(baby.data().poly.view());
  Poly sums(*s.stream, {ring.log_n(), 2, giants * batch}, ring.window(level), ring::Domain::eval);
  std::vector<View> rows;
  for (u32 g = 0; g < giants; ++g) rows.push_back(sums.view().rows(g * batch, batch));
  s.kernels().plain_multiply_sum(*s.stream, rows, in, plaintexts.grid());
  babies.clear();
  ckks::Metadata meta = v.metadata();
  meta.real = meta.real && norms.real;
  meta.scale *= plain_scale;
  meta.bound = ckks::kUnknownBound;  // of parts of the sum, which was checked as a whole
  const auto row = [&](u32 g) {
    Poly p = s.poly(2, batch, level);
    s.stream->copy(p.data(), rows[g].data, p.bytes());
    return s.wrap(std::move(p), meta);
  };
  Ciphertext sum = row(giants - 1);
  for (u32 g = giants - 1; g-- > 0;)
    sum = ev.add(ev.rotate(sum, stride * static_cast<i64>(plan.baby_steps)), row(g));
  return ev.rescale(sum);
}

}  // namespace crenel::circuits
