#include "rns/compose.h"

#include <cmath>

#include "crenel/core/error.h"

namespace crenel::rns {
namespace {

// words = words * factor + addend
void mul_add_word(u32* words, u32& used, u32 factor, u32 addend) {
  u64 carry = addend;
  for (u32 i = 0; i < used; ++i) {
    carry += static_cast<u64>(words[i]) * factor;
    words[i] = static_cast<u32>(carry);
    carry >>= 32;
  }
  if (carry) words[used++] = static_cast<u32>(carry);
}

}  // namespace

CrtComposer::CrtComposer(std::vector<math::Modulus<u32>> moduli) : moduli_(std::move(moduli)) {
  if (moduli_.empty() || moduli_.size() + 4 > kMaxWords)
    throw ParameterError(
        cat("CRT composition of ", moduli_.size(), " primes, expected 1..", kMaxWords - 4));
  Big product;
  product.words[0] = 1;
  product.used = 1;
  product_.push_back(product);
  for (u32 i = 0; i < size(); ++i) {
    std::vector<u32> row;
    for (u32 j = 0; j < i; ++j)
      row.push_back(math::inverse_mod<u32>(moduli_[j].q % moduli_[i].q, moduli_[i]));
    inverse_.push_back(std::move(row));
    mul_add_word(product.words, product.used, moduli_[i].q, 0);
    product_.push_back(product);
  }
}

CrtComposer::Big CrtComposer::compose(const u32* residues, std::size_t stride, u32 count) const {
  u32 digit[kMaxWords];
  for (u32 i = 0; i < count; ++i) {  // Garner: x = d_0 + q_0 (d_1 + q_1 (d_2 + ...))
    const auto& m = moduli_[i];
    u32 v = residues[i * stride];
    for (u32 j = 0; j < i; ++j)
      v = math::mul_mod<u32>(math::sub_mod<u32>(v, digit[j] % m.q, m.q), inverse_[i][j], m);
    digit[i] = v;
  }
  Big x;
  for (u32 i = count; i-- > 0;) mul_add_word(x.words, x.used, moduli_[i].q, digit[i]);
  // x > Q - x: the centred representative is -(Q - x)
  const Big& q = product_[count];
  Big complement;
  complement.used = q.used;
  u64 borrow = 0;
  for (u32 i = 0; i < q.used; ++i) {
    const u64 d = static_cast<u64>(q.words[i]) - x.words[i] - borrow;
    complement.words[i] = static_cast<u32>(d);
    borrow = (d >> 32) & 1;
  }
  for (u32 i = q.used; i-- > 0;) {
    if (x.words[i] == complement.words[i]) continue;
    if (x.words[i] < complement.words[i]) return x;
    complement.negative = true;
    return complement;
  }
  return x;
}

double CrtComposer::to_double(const Big& x) {
  double value = 0.0;
  for (u32 i = x.used; i-- > 0;) value = value * 4294967296.0 + x.words[i];
  return x.negative ? -value : value;
}

double CrtComposer::to_double(const u32* residues, std::size_t stride) const {
  return to_double(compose(residues, stride, size()));
}

std::optional<double> CrtComposer::to_double_checked(const u32* residues, std::size_t stride,
                                                     u32 count) const {
  const Big x = compose(residues, stride, count);
  if (count < size()) {
    const auto& m = moduli_[count];
    u32 r = 0;
    for (u32 i = x.used; i-- > 0;)
      r = math::barrett_reduce<u32>((static_cast<u64>(r) << 32) | x.words[i], m);
    if (x.negative) r = math::neg_mod<u32>(r, m.q);
    if (r != residues[count * stride]) return std::nullopt;
  }
  return to_double(x);
}

}  // namespace crenel::rns
