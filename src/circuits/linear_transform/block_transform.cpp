#include "crenel/circuits/block_transform.h"

#include "circuits/linear_transform/blocks.h"
#include "ckks/evaluator_state.h"
#include "ckks/magnitude.h"

namespace crenel::circuits {

using ckks::Ciphertext;
using ckks::Evaluator;

namespace {

constexpr const char* kBlockOperation = "block_transform";
constexpr const char* kBlockMaker = "ckks.BlockTransform(context, blocks, ";

BlockPointers pointers_to(const BlockMatrix& blocks) {
  BlockPointers pointers;
  for (const auto& row : blocks) {
    auto& to = pointers.emplace_back();
    for (const auto& block : row) to.push_back(block ? &*block : nullptr);
  }
  return pointers;
}

void expect_inputs(const BlockShape& shape, std::size_t found) {
  if (found != shape.inputs())
    throw StateError(
        cat("transform of ", found, " inputs, expected ", shape.inputs()),
        {{"operation", kBlockOperation}, {"inputs", found}, {"expected", shape.inputs()}});
}

}  // namespace

struct BlockTransform::State {
  Blocks blocks;

  const BlockShape& shape() const { return blocks.shape(); }
  /// Bounds of the outputs of inputs that fit; refuses all others.
  std::vector<double> checked(const Evaluator::State& s,
                              std::span<const Ciphertext* const> in) const;
};

BlockTransform::BlockTransform(const ckks::Context& context, const BlockMatrix& blocks,
                               const LinearTransformOptions& options) {
  const auto& params = context.params();
  const BlockPointers pointers = pointers_to(blocks);
  state_.reset(new State{
      Blocks(context, pointers, shape_of(params, pointers, options, params.normal_top_level()))});
}

BlockTransform::BlockTransform(BlockTransform&&) noexcept = default;
BlockTransform& BlockTransform::operator=(BlockTransform&&) noexcept = default;
BlockTransform::~BlockTransform() = default;

u32 BlockTransform::inputs() const { return state_->shape().inputs(); }
u32 BlockTransform::outputs() const { return state_->shape().outputs(); }
u32 BlockTransform::level() const { return state_->shape().level; }
u64 BlockTransform::slots() const { return state_->shape().slots(); }
const std::vector<i64>& BlockTransform::rotations() const {
  return state_->shape().plan.steps.rotations;
}
u64 BlockTransform::baby_steps() const { return state_->shape().plan.steps.babies.size(); }
u64 BlockTransform::giant_steps() const { return state_->shape().plan.steps.giants.size(); }
u64 BlockTransform::plaintext_bytes() const { return state_->blocks.bytes(); }
u64 BlockTransform::working_bytes(u32 batch) const { return state_->blocks.working_bytes(batch); }

std::vector<double> BlockTransform::State::checked(const Evaluator::State& s,
                                                   std::span<const Ciphertext* const> in) const {
  s.check_serves(blocks.context());
  std::vector<double> given, bounds;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const Ciphertext& v = *in[i];
    s.check_components(v, 2, kBlockOperation);
    check_vector(s.params(), v.metadata(), shape(), kBlockOperation, kBlockMaker);
    s.check_pair(*in[0], v, true);
    given.push_back(v.bound());
  }
  const auto product = s.product_metadata(in[0]->metadata(), shape().plain_scale, false);
  for (u32 o = 0; o < shape().outputs(); ++o) {
    bounds.push_back(shape().bound(o, given));
    ckks::magnitude::bounded(s.params(), product, bounds.back(), kBlockOperation);
  }
  return bounds;
}

std::vector<Ciphertext> BlockTransform::operator()(const Evaluator& ev,
                                                   std::span<const Ciphertext> in) const {
  std::vector<const Ciphertext*> pointers;
  for (const Ciphertext& v : in) pointers.push_back(&v);
  return (*this)(ev, std::span<const Ciphertext* const>(pointers));
}

std::vector<Ciphertext> BlockTransform::operator()(const Evaluator& ev,
                                                   std::span<const Ciphertext* const> in) const {
  const auto& s = ev.state();
  expect_inputs(state_->shape(), in.size());
  if (s.observer)
    return s.observer->watch(
        kBlockOperation,
        [&](const auto& on, const auto& x) {
          if constexpr (std::is_same_v<std::decay_t<decltype(on)>, ckks::ClearModel>)
            return state_->blocks.clear(x);
          else
            return (*this)(on, x);
        },
        in);
  const std::vector<double> bounds = state_->checked(s, in);
  std::vector<Ciphertext> out = state_->blocks.apply(ev, in);
  for (std::size_t o = 0; o < out.size(); ++o) out[o].data().meta.bound = bounds[o];
  return out;
}

namespace {

std::vector<ckks::ErrorBound> bounds_of(const BlockShape& shape, const ckks::ErrorModel& model,
                                        std::span<const ckks::ErrorBound> in) {
  expect_inputs(shape, in.size());
  std::vector<ckks::ErrorBound> out;
  for (u32 o = 0; o < shape.outputs(); ++o)
    out.push_back(bound_of(shape, model, in, o, kBlockOperation, kBlockMaker));
  return out;
}

}  // namespace

std::vector<ckks::ErrorBound> BlockTransform::operator()(
    const ckks::ErrorModel& model, std::span<const ckks::ErrorBound> in) const {
  return bounds_of(state_->shape(), model, in);
}

std::vector<ckks::ErrorBound> block_transform_bounds(const ckks::ErrorModel& model,
                                                     const BlockMatrix& blocks,
                                                     std::span<const ckks::ErrorBound> inputs,
                                                     const LinearTransformOptions& options) {
  const u32 level = inputs.empty() ? model.params().normal_top_level() : inputs[0].level();
  return bounds_of(shape_of(model.params(), pointers_to(blocks), options, level), model, inputs);
}

u64 plaintext_bytes_of(const ckks::Context& context, const BlockMatrix& blocks,
                       const LinearTransformOptions& options) {
  const auto& params = context.params();
  const BlockPointers pointers = pointers_to(blocks);
  return plaintext_bytes_of(*context.state().ring, pointers,
                            shape_of(params, pointers, options, params.normal_top_level()));
}

}  // namespace crenel::circuits
