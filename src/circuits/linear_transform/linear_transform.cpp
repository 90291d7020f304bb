#include "crenel/circuits/linear_transform.h"

#include "circuits/linear_transform/blocks.h"
#include "ckks/evaluator_state.h"
#include "ckks/magnitude.h"

namespace crenel::circuits {

using ckks::Ciphertext;
using ckks::Evaluator;
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

namespace {

constexpr const char* kOperation = "linear_transform";
constexpr const char* kMaker = "context.linear_transform(matrix, ";

BlockPointers one(const DiagonalMatrix& matrix) { return {{&matrix}}; }

}  // namespace

struct LinearTransform::State {
  Blocks blocks;

  const BlockShape& shape() const { return blocks.shape(); }
};

LinearTransform::LinearTransform(const ckks::Context& context, const DiagonalMatrix& matrix,
                                 const LinearTransformOptions& options) {
  const auto& params = context.params();
  state_.reset(new State{Blocks(
      context, one(matrix), shape_of(params, one(matrix), options, params.normal_top_level()))});
}

u64 plaintext_bytes_of(const ckks::Context& context, const DiagonalMatrix& matrix,
                       const LinearTransformOptions& options) {
  const auto& params = context.params();
  return plaintext_bytes_of(*context.state().ring, one(matrix),
                            shape_of(params, one(matrix), options, params.normal_top_level()));
}

LinearTransform::LinearTransform(LinearTransform&&) noexcept = default;
LinearTransform& LinearTransform::operator=(LinearTransform&&) noexcept = default;
LinearTransform::~LinearTransform() = default;

u32 LinearTransform::level() const { return state_->shape().level; }
u64 LinearTransform::slots() const { return state_->shape().slots(); }
const std::vector<i64>& LinearTransform::rotations() const {
  return state_->shape().plan.steps.rotations;
}
u64 LinearTransform::baby_steps() const { return state_->shape().plan.steps.babies.size(); }
u64 LinearTransform::giant_steps() const { return state_->shape().plan.steps.giants.size(); }
u64 LinearTransform::plaintext_bytes() const { return state_->blocks.bytes(); }
u64 LinearTransform::working_bytes(u32 batch) const { return state_->blocks.working_bytes(batch); }

ckks::ErrorBound LinearTransform::operator()(const ckks::ErrorModel& model,
                                             const ckks::ErrorBound& v) const {
  return bound_of(state_->shape(), model, std::span(&v, 1), 0, kOperation, kMaker);
}

ckks::ErrorBound linear_transform_bound(const ckks::ErrorModel& model, const DiagonalMatrix& matrix,
                                        const ckks::ErrorBound& v,
                                        const LinearTransformOptions& options) {
  const BlockShape shape = shape_of(model.params(), one(matrix), options, v.level());
  return bound_of(shape, model, std::span(&v, 1), 0, kOperation, kMaker);
}

Ciphertext LinearTransform::operator()(const Evaluator& ev, const Ciphertext& v) const {
  const auto& s = ev.state();
  const BlockShape& shape = state_->shape();
  if (s.observer)
    return s.observer->watch(
        "linear transform",
        [&](const auto& on, const auto& x) {
          if constexpr (std::is_same_v<std::decay_t<decltype(on)>, ckks::ClearModel>)
            return state_->blocks.clear(std::span(&x, 1))[0];
          else
            return (*this)(on, x);
        },
        v);
  s.check_components(v, 2, "linear transform");
  s.check_serves(state_->blocks.context());
  check_vector(s.params(), v.metadata(), shape, kOperation, kMaker);
  const double given = v.bound(), bound = shape.bound(0, std::span(&given, 1));
  ckks::magnitude::bounded(  // refuses what is too large
      s.params(), s.product_metadata(v.metadata(), shape.plain_scale, false), bound,
      "linear transform");
  const Ciphertext* in = &v;
  Ciphertext out = std::move(state_->blocks.apply(ev, std::span(&in, 1))[0]);
  out.data().meta.bound = bound;
  return out;
}

}  // namespace crenel::circuits
