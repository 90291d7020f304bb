#include "circuits/linear_transform/raised_transform.h"

#include <cmath>

#include "ckks/evaluator_state.h"

namespace crenel::circuits {
namespace {

std::vector<u64> offsets_of(const DiagonalMatrix& matrix) {
  if (matrix.diagonals.empty() || matrix.diagonals.size() > kMostRaisedDiagonals)
    throw ParameterError(
        cat("first factor after OverModRaise of ", matrix.diagonals.size(),
            " diagonals, expected 1 to ", kMostRaisedDiagonals),
        {{"diagonals", matrix.diagonals.size()}, {"expected", cat("1..", kMostRaisedDiagonals)}});
  std::vector<u64> offsets;
  for (const auto& [offset, values] : matrix.diagonals) offsets.push_back(offset);
  return offsets;
}

DiagonalPlaintexts encoded(const ckks::Context& context, const DiagonalMatrix& matrix,
                           std::span<const u64> steps, u32 level) {
  const DiagonalMatrix* const column[] = {&matrix};
  const BlockRow row[] = {{.output = 0, .giant = 0}};
  return {context.state(),
          column,
          row,
          steps,
          matrix.slots,
          std::exp2(log_over_scale(context.params())),
          context.state().ring->extended(level)};
}

}  // namespace

double log_over_scale(const ckks::Params& params) {
  double bits = 0.0;
  const std::size_t first = params.primes().size() - params.alpha();
  for (u32 k = 0; k < rlwe::kOverPrimes; ++k)
    bits += std::log2(static_cast<double>(params.primes()[first + k]));
  return bits;
}

bool supports_over_mod_raise(const ckks::Params& params) {
  return rlwe::supports_over_mod_raise(params.log_n(), params.log_q(0), params.alpha(),
                                       params.log_p());
}

u64 raised_plaintext_bytes(const ckks::Context& context, const DiagonalMatrix& matrix, u32 level) {
  const DiagonalMatrix* const column[] = {&matrix};
  return DiagonalPlaintexts::bytes_of(column, 1, matrix.diagonals.size(),
                                      context.state().ring->extended(level).size());
}

RaisedTransform::RaisedTransform(const ckks::Context& context, const DiagonalMatrix& matrix,
                                 u32 level)
    : context_(context),
      level_(level),
      steps_(offsets_of(matrix)),
      plaintexts_(encoded(context, matrix, steps_, level)) {
  const auto& ring = *context.state().ring;
  factor_ = rlwe::over_scalars(ring, rlwe::with_over_primes(ring, ring.window(level)));
}

// The sum in the extended basis, and the raised polynomials.
u64 RaisedTransform::working_bytes(u32 batch) const {
  const auto& ring = *context_.state().ring;
  return u64(4) * batch * ring.extended(level_).size() * ring.ring_dim() * sizeof(rlwe::Word);
}

rlwe::Poly RaisedTransform::operator()(const ckks::Evaluator& ev, const rlwe::Raised& v) const {
  const auto& s = ev.state();
  const auto& ring = s.ring();
  std::vector<u64> elements;
  std::vector<rlwe::KeyId> ids;
  for (u64 step : steps_) {
    elements.push_back(ring::galois_element_for_rotation(static_cast<i64>(step), ring.log_n()));
    ids.push_back(rlwe::turned_key(elements.back()));
  }
  s.expect_keys(ids, level_, "bootstrap");
  rlwe::Poly sum(*s.stream, {ring.log_n(), 2, v.a.shape().batch}, ring.extended(level_),
                 ring::Domain::eval);
  const rlwe::View out[] = {sum.view()};
  {
    const auto keys = s.lease(ids);
    // No a: it is under another secret than the result, and every step has its key.
    s.kernels().hoisted_plain_sums(*s.stream, out, v.a.view(), v.b.view(), {}, keys.views(),
                                   elements, plaintexts_.grid(), factor_, 0);
  }
  return s.switcher().mod_down(sum, level_, nullptr);
}

}  // namespace crenel::circuits
