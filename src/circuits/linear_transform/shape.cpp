// What is decided of blocks from metadata: plan, level, scales, bounds of values and of errors.
#include <cmath>

#include "circuits/linear_transform/blocks.h"
#include "ckks/evaluator_state.h"
#include "ckks/magnitude.h"
#include "ckks/noise.h"
#include "ckks/norms.h"
#include "ckks/scale.h"

namespace crenel::circuits {
namespace {

using Complex = std::complex<double>;

// Appends the offsets of a matrix; `where` names it in what is refused.
void add_offsets(std::vector<u64>& offsets, const DiagonalMatrix& matrix,
                 const ckks::Params& params, const std::string& where) {
  if (matrix.slots > params.slots())
    throw ParameterError(cat(where, "linear transform of ", matrix.slots,
                             " slots, expected at most ", params.slots()),
                         {{"slots", matrix.slots}, {"max_slots", params.slots()}});
  for (const auto& [offset, values] : matrix.diagonals) {
    if (values.size() != matrix.slots)
      throw ParameterError(cat(where, "diagonal ", offset, " has ", values.size(),
                               " values, expected ", matrix.slots, " (the slots)"),
                           {{"values", values.size()}, {"slots", matrix.slots}});
    for (const Complex& x : values)
      if (!std::isfinite(x.real()) || !std::isfinite(x.imag()))
        throw ParameterError(cat(where, "diagonal ", offset,
                                 " holds what is infinite or no number, expected finite numbers"),
                             {{"offset", offset}});
    offsets.push_back(offset);
  }
}

u32 checked_level(const ckks::Params& params, u32 level) {
  const bool short_level = rlwe::is_short(level);  // of a bootstrap: its plan knows that it is one
  if (level == 0 || (!short_level && level > params.max_level()))
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

// The slots of all blocks; that there is one for every output.
u64 checked_slots(const BlockPointers& blocks) {
  if (blocks.empty() || blocks[0].empty())
    throw ParameterError("transform of no blocks, expected at least one input and one output",
                         {{"outputs", blocks.size()}});
  if (blocks.size() > kMostBlocks || blocks[0].size() > kMostBlocks)
    throw ParameterError(cat("transform of ", blocks.size(), " x ", blocks[0].size(),
                             " blocks, expected at most ", kMostBlocks, " of each"),
                         {{"outputs", blocks.size()}, {"inputs", blocks[0].size()}});
  u64 slots = 0;
  bool found = false;
  for (std::size_t o = 0; o < blocks.size(); ++o) {
    if (blocks[o].size() != blocks[0].size())
      throw ParameterError(
          cat("blocks of output ", o, " are ", blocks[o].size(), ", expected ", blocks[0].size(),
              " (the inputs) as of output 0"),
          {{"output", o}, {"inputs", blocks[o].size()}, {"expected", blocks[0].size()}});
    bool any = false;
    for (std::size_t i = 0; i < blocks[o].size(); ++i) {
      const DiagonalMatrix* block = blocks[o][i];
      if (block == nullptr) continue;
      any = true;
      if (found && block->slots != slots)
        throw ParameterError(
            cat("block (", o, ", ", i, ") has ", block->slots, " slots, expected ", slots,
                " as the blocks before"),
            {{"output", o}, {"input", i}, {"slots", block->slots}, {"expected", slots}});
      slots = block->slots, found = true;
    }
    if (!any)
      throw ParameterError(cat("output ", o, " has no block, expected at least one: it is zero"),
                           {{"output", o}});
  }
  return slots;
}

bool single(const BlockPointers& blocks) { return blocks.size() == 1 && blocks[0].size() == 1; }

}  // namespace

BlockShape shape_of(const ckks::Params& params, const BlockPointers& blocks,
                    const LinearTransformOptions& options, u32 level) {
  BlockShape shape;
  const u64 slots = checked_slots(blocks);
  shape.level = checked_level(params, options.level.value_or(level));
  shape.plain_scale = checked_scale(params, shape.level, options.plain_scale);
  shape.keys = options.keys;
  std::vector<u64> offsets;
  for (std::size_t o = 0; o < blocks.size(); ++o)
    for (std::size_t i = 0; i < blocks[o].size(); ++i)
      if (blocks[o][i] != nullptr) {
        const auto before = offsets.size();
        add_offsets(offsets, *blocks[o][i], params,
                    single(blocks) ? "" : cat("block (", o, ", ", i, "): "));
        if (offsets.size() == before && !single(blocks))
          throw ParameterError(
              cat("block (", o, ", ", i, ") has no diagonal, expected one or no block"),
              {{"output", o}, {"input", i}, {"count", 0}});
      }
  std::ranges::sort(offsets);
  offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
  shape.plan = plan_blocks(blocks, offsets, slots, options.baby_steps, options.keys);
  for (const auto& row : blocks) {
    auto& norms = shape.norms.emplace_back();
    for (const DiagonalMatrix* block : row)
      norms.push_back(block ? std::optional(norms_of(*block)) : std::nullopt);
  }
  return shape;
}

bool BlockShape::real(u32 output) const {
  for (const auto& block : norms[output])
    if (block && !block->real) return false;
  return true;
}

double BlockShape::bound(u32 output, std::span<const double> bounds) const {
  double bound = 0.0;
  bool first = true;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const std::optional<MatrixNorms>& block = norms[output][i];
    if (!block) continue;
    const double part = ckks::magnitude::scaled(bounds[i], block->rows);
    bound = first ? part : ckks::magnitude::sum(bound, part);
    first = false;
  }
  return bound;
}

void check_vector(const ckks::Params& params, const ckks::Metadata& v, const BlockShape& shape,
                  const char* operation, const std::string& maker) {
  const u32 level = shape.level;
  if (v.level < level)
    ckks::refuse_level(
        params, operation, v.level, level, {{"expected", level}},
        v.level == 0 ? "" : cat(" (", maker, "level=", v.level, ") makes one for it)"));
  if (v.level > level)
    throw StateError(cat("linear transform of a ciphertext at level ", v.level, ", expected ",
                         level, ", where its plaintexts are; adjust_level it"),
                     {{"operation", operation}, {"level", v.level}, {"expected", level}});
  if (v.slots != shape.slots())
    throw StateError(cat("linear transform of ", v.slots, " slots, expected ", shape.slots()),
                     {{"slots", v.slots}, {"expected", shape.slots()}});
}

namespace {

// What an input adds to an output, before the giant steps. Every key switch's error is multiplied
// by what its vector is; the rounding of a diagonal meets the message.
ckks::ErrorBound part_of(const BlockShape& s, const MatrixNorms& norms, u64 babies,
                         const ckks::ErrorModel& model, const ckks::ErrorBound& v) {
  const ckks::NormBounds n(model.params(), v.slots());
  const ckks::ErrorBound rounding =
      model.plaintext(norms.largest, false, s.level, s.plain_scale, v.slots());
  const double diagonals = static_cast<double>(norms.diagonals);
  ckks::ErrorBound a = v;
  // Before the products: a baby step's switch, of which a minimal one has as many as steps.
  const ckks::Norms step =
      s.keys == KeyMode::hoisted ? n.gadget(s.level) : double(babies) * n.key_switch(s.level);
  a = ckks::with_errors(a, 1.0 / v.scale() * step);
  ckks::ErrorBound out = a;
  out.message = ckks::magnitude::scaled(v.message, norms.rows);
  out.rms = norms.two() * v.rms + norms.sum * (a.rms - v.rms) +
            diagonals * rounding.rms * (v.message + a.ring);
  out.max = norms.rows * v.max + norms.sum * (a.max - v.max) +
            diagonals * rounding.max * (v.message + a.ring);
  out.ring = norms.rows * v.ring + norms.sum * (a.ring - v.ring) +
             diagonals * rounding.ring * (v.message + a.ring);
  out.variance = norms.two() * norms.two() * v.variance +
                 norms.sum * norms.sum * (a.variance - v.variance) +
                 diagonals * rounding.variance * v.message * v.message;
  return out;
}

}  // namespace

// Errors of giant steps, and of the division at the end, are at the scale of the products. Inputs
// may depend on one another: their bounds are added.
ckks::ErrorBound bound_of(const BlockShape& s, const ckks::ErrorModel& model,
                          std::span<const ckks::ErrorBound> in, u32 output, const char* operation,
                          const std::string& maker) {
  const ckks::Params& params = model.params();
  std::optional<ckks::ErrorBound> sum;
  bool real = s.real(output);
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i].components != 2)
      throw StateError(cat("linear transform of ", in[i].components, " components, expected 2"),
                       {{"components", in[i].components}, {"expected", 2}});
    check_vector(params, in[i].meta, s, operation, maker);
    if (i > 0) ckks::check_metadata(in[0].meta, in[i].meta, true);
    real = real && in[i].meta.real;
    const std::optional<MatrixNorms>& block = s.norms[output][i];
    if (!block) continue;
    const auto part = part_of(s, *block, s.plan.columns[i].babies.size(), model, in[i]);
    if (!sum) {
      sum = part;
      continue;
    }
    sum->message = ckks::magnitude::sum(sum->message, part.message);
    sum->rms += part.rms, sum->max += part.max, sum->ring += part.ring;
    sum->variance += part.variance, sum->failure += part.failure;
  }
  const ckks::NormBounds n(params, in[0].slots());
  ckks::ErrorBound out = sum.value();  // every output has a block
  out.meta.real = real;
  const double product_scale = in[0].scale() * s.plain_scale;
  const double giants = static_cast<double>(s.plan.sums_of(output));
  out = ckks::with_errors(out, giants / product_scale * n.key_switch(s.level));
  out.meta.scale = product_scale;
  out.meta = ckks::rescaled_metadata(params, out.meta);
  return model.result(ckks::with_errors(out, 1.0 / out.scale() * n.division()));
}

}  // namespace crenel::circuits
