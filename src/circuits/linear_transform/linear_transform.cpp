#include "crenel/circuits/linear_transform.h"

#include <algorithm>
#include <cmath>

#include "circuits/linear_transform/keys.h"
#include "circuits/linear_transform/norms.h"
#include "circuits/linear_transform/plaintexts.h"
#include "ckks/evaluator_state.h"
#include "ckks/noise.h"
#include "ckks/norms.h"
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

  void check_vector(const ckks::Metadata& v) const;
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
  // Hoisted, the products with plaintexts are in the extended basis.
  const auto& limbs = options.keys == KeyMode::hoisted ? ring.extended(level) : ring.window(level);
  DiagonalPlaintexts plaintexts(context.state(), matrix, plan, scale, limbs);
  state_.reset(new State{context, norms_of(matrix), std::move(plan), level, scale, options.keys,
                         std::move(plaintexts)});
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

void LinearTransform::State::check_vector(const ckks::Metadata& v) const {
  if (v.level < level)
    ckks::refuse_level(context.params(), "linear_transform", v.level, level, {{"expected", level}},
                       v.level == 0 ? ""
                                    : cat(" (context.linear_transform(matrix, level=", v.level,
                                          ") makes one for it)"));
  if (v.level > level)
    throw StateError(cat("linear transform of a ciphertext at level ", v.level, ", expected ",
                         level, ", where its plaintexts are; adjust_level it"),
                     {{"operation", "linear_transform"}, {"level", v.level}, {"expected", level}});
  if (v.slots != plan.slots)
    throw StateError(cat("linear transform of ", v.slots, " slots, expected ", plan.slots),
                     {{"slots", v.slots}, {"expected", plan.slots}});
}

// Every key switch's error is multiplied by what its vector is; of a giant step, and of all at the
// end, at the scale of the products. The rounding of a diagonal meets the message.
ckks::ErrorBound LinearTransform::operator()(const ckks::ErrorModel& model,
                                             const ckks::ErrorBound& v) const {
  const State& s = *state_;
  const ckks::Params& params = s.context.params();
  if (v.components != 2)
    throw StateError(cat("linear transform of ", v.components, " components, expected 2"),
                     {{"components", v.components}, {"expected", 2}});
  s.check_vector(v.meta);
  const ckks::NormBounds n(params, v.slots());
  const ckks::ErrorBound rounding =
      model.plaintext(s.norms.largest, false, level(), s.plain_scale, v.slots());
  const u64 babies = s.plan.babies.size(), giants = s.plan.giants.size();
  const double diagonals = static_cast<double>(s.norms.diagonals);
  const bool hoisted = s.keys == KeyMode::hoisted;
  ckks::ErrorBound a = v;
  // Before the products: a baby step's switch, of which a minimal one has as many as steps.
  const ckks::Norms step = hoisted ? n.gadget(level()) : double(babies) * n.key_switch(level());
  a = ckks::with_errors(a, 1.0 / v.scale() * step);
  ckks::ErrorBound out = a;
  out.meta.real = false;
  out.message = s.norms.rows * v.message;
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
  out = ckks::with_errors(out, double(giants) / product_scale * n.key_switch(level()));
  out.meta.scale = product_scale;
  const u32 alpha = hoisted ? params.alpha() : 0;
  out.meta = ckks::rescaled_metadata(params, out.meta);
  const ckks::Norms last = n.division(alpha + ckks::noise::dropped_primes(params, level()));
  return model.result(ckks::with_errors(out, 1.0 / out.scale() * last));
}

Ciphertext LinearTransform::operator()(const Evaluator& ev, const Ciphertext& v) const {
  const auto& s = ev.state();
  s.check_components(v, 2, "linear transform");
  s.check_serves(state_->context);
  state_->check_vector(v.metadata());
  s.product_metadata(v.metadata(), state_->plain_scale, false);  // refuses what is too large
  require_rotations(s, state_->plan.rotations, slots());
  return state_->keys == KeyMode::hoisted ? state_->hoisted(ev, v) : state_->minimal(ev, v);
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
  meta.real = false;
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
  meta.real = false;
  meta.scale *= plain_scale;
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
