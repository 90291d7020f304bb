#include "ckks/monomial.h"

#include <algorithm>
#include <bit>
#include <numbers>

#include "ckks/encode.h"
#include "ckks/evaluator_state.h"
#include "ckks/observer.h"
#include "crenel/ckks/error_model.h"
#include "device/room.h"

namespace crenel::ckks {
namespace {

/// log2 of the largest power of two that divides every exponent and N.
u32 common_log(std::span<const u64> powers, u32 log_n) {
  u32 common = log_n;
  for (u64 p : powers)
    if (p != 0) common = std::min(common, static_cast<u32>(std::countr_zero(p)));
  return common;
}

/// log2 of the words of one limb: at least the two halves that complex constants have.
u32 log_words_of(std::span<const u64> powers, u32 log_n) {
  return std::max(1u, log_n - common_log(powers, log_n));
}

}  // namespace

u64 reduced_power(i64 power, u32 log_n) {
  return static_cast<u64>(power) & ((u64(2) << log_n) - 1);  // two's complement: modulo 2N
}

Metadata monomial_metadata(Metadata a, u64 power, u32 log_n) {
  const u64 ring_dim = u64(1) << log_n;
  if (power % ring_dim == 0) return a;
  a.real = false;
  const u64 common = u64(1) << std::countr_zero(power);
  a.slots = std::max(a.slots, ring_dim / 2 / std::min(common, ring_dim / 2));
  return a;
}

u64 MonomialGrid::bytes_of(std::span<const u64> powers, u32 limbs, u32 log_n) {
  return powers.size() * (u64(limbs) << log_words_of(powers, log_n)) * sizeof(rlwe::Word);
}

MonomialGrid::MonomialGrid(const rlwe::RingContext& ring, std::span<const u64> powers, u32 babies,
                           const rlwe::LimbSet& limbs)
    : limbs_(limbs),
      log_words_(log_words_of(powers, ring.log_n())),
      babies_(babies),
      present_(powers.size(), 1) {
  const u64 n = ring.ring_dim(), bytes = bytes_of(powers, limbs.size(), ring.log_n());
  device::expect_room(ring.device(), {.device = bytes}, [&] {
    return core::MemoryRequest{.what = cat(powers.size(), " monomials"),
                               .advice = "multiply with fewer powers, or with multiples of N / 2n"};
  });
  auto& stream = ring.stream();
  words_ = stream.allocate_limbs(
      limbs, {.rows = powers.size(), .limb_bytes = sizeof(rlwe::Word) << log_words_});
  const u64 words = u64(1) << log_words_, run = n >> log_words_, entry = limbs.size() * words;
  std::vector<i64> coefficients(n);
  for (std::size_t k = 0; k < powers.size(); ++k) {
    const u64 at = powers[k] % n;
    coefficients[at] = powers[k] < n ? 1 : -1;
    const rlwe::Poly full = to_polynomials(ring, stream, coefficients, 1, limbs);
    coefficients[at] = 0;
    stream.copy_rows(words_.as<rlwe::Word>() + k * entry, sizeof(rlwe::Word), full.data(),
                     run * sizeof(rlwe::Word), sizeof(rlwe::Word), entry);
  }
  stream.synchronize();
}

device::PlainGrid MonomialGrid::grid(const rlwe::LimbSet& limbs) const {
  device::PlainGrid grid;
  const int first = limbs.empty() ? 0 : limbs_.find(limbs[0]);
  grid.data = words_.as<const rlwe::Word>() + (u64(first) << log_words_);
  grid.limbs = limbs;
  grid.log_words = log_words_;
  grid.babies = babies_;
  grid.giants = static_cast<u32>(present_.size()) / babies_;
  grid.present = present_.data();
  return grid;
}

const MonomialGrid& Monomials::get(const rlwe::RingContext& ring, u64 power) {
  const auto lock = watch::lock(mutex_);
  auto& found = made_[power];
  if (!found)
    found = std::make_unique<const MonomialGrid>(ring, std::span(&power, 1), 1,
                                                 rlwe::LimbSet::range(0, ring.chain().chain_limbs));
  return *found;
}

Ciphertext Evaluator::multiply_monomial(const Ciphertext& a, i64 power) const {
  const State& s = *state_;
  const u32 log_n = s.params().log_n();
  if (s.observer)
    return s.observer->watch(
        "multiply_monomial",
        [&](const auto& on, const auto& x) {
          using On = std::decay_t<decltype(on)>;
          if constexpr (std::is_same_v<On, ClearModel>) {
            return on.multiply_monomial(x, reduced_power(power, log_n), log_n);
          } else {
            auto out = on.multiply_monomial(x, power);
            // More slots show errors that decrypted fewer do not, and an exact message has none.
            if constexpr (std::is_same_v<On, ErrorModel>)
              if (out.slots() != a.slots()) out.max += 0x1p-12 * std::max(1.0, out.message);
            return out;
          }
        },
        a);
  s.check(a);
  const u64 p = reduced_power(power, log_n), quarter = s.ring().ring_dim() / 2;
  if (p == 0) return s.copy(a);
  const auto& window = s.ring().window(a.level());
  auto out = s.poly(a.components(), a.batch(), a.level());
  if (p % quarter == 0) {  // i^k
    const u64 k = p / quarter;
    s.kernels().mul_scalar(*s.stream, out.view(), a.data().poly.view(),
                           s.ring().integer_scalars(window, k == 2 ? -1 : 0,
                                                    k == 1   ? 1
                                                    : k == 3 ? -1
                                                             : 0));
  } else {
    const device::PlainGrid grid = s.context.state().monomials.get(s.ring(), p).grid(window);
    const rlwe::View to = out.view();
    const rlwe::ConstView from = a.data().poly.view();
    s.kernels().plain_multiply_sum(*s.stream, std::span(&to, 1), std::span(&from, 1), grid);
  }
  return s.wrap(std::move(out), monomial_metadata(a.metadata(), p, log_n));
}

// Every slot of the whole ring is multiplied by a number of absolute value 1. Where there are more
// slots afterwards, they are values of the whole polynomial.
ErrorBound ErrorModel::multiply_monomial(const ErrorBound& a, i64 power) const {
  const u64 p = reduced_power(power, params_.log_n());
  const Metadata meta = monomial_metadata(a.meta, p, params_.log_n());
  ErrorBound out = with_slots(a, meta.slots);
  out.meta = meta;
  return result(std::move(out));
}

ClearSlots ClearModel::multiply_monomial(const Slots& a, u64 power, u32 log_n) const {
  const u64 order = u64(2) << log_n;
  Slots out = with_slots(a, monomial_metadata({0, 1.0, a.slots, false, {}}, power, log_n).slots);
  u64 five = 1;  // 5^j
  for (u64 j = 0; j < out.slots; ++j, five = five * 5 % order) {
    const double turn = static_cast<double>(power * five % order) / static_cast<double>(order);
    const Complex root = std::polar(1.0, 2.0 * std::numbers::pi * turn);
    for (u64 row = j; row < out.values.size(); row += out.slots) out.values[row] *= root;
  }
  return out;
}

}  // namespace crenel::ckks
