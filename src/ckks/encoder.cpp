#include "ckks/encoder.h"

#include "ring/fft.h"

namespace crenel::ckks {
namespace {

using Complex = std::complex<double>;

void permute_bit_reversed(std::vector<Complex>& v) {
  const std::size_t n = v.size();
  for (std::size_t i = 1, j = 0; i < n; ++i) {
    std::size_t bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(v[i], v[j]);
  }
}

// std::complex multiplication checks for NaN; the plain product is what the transform needs.
inline Complex product(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

}  // namespace

Encoder::Encoder(u32 log_n) : log_n_(log_n) {
  const u64 m = u64(2) << log_n;
  roots_.reserve(m);
  // Not by the C library, whose sines differ from host to host: so would ciphertexts.
  for (const ring::Complex z : ring::roots_of_unity(log_n + 1)) roots_.emplace_back(z.re, z.im);
  u32 power = 1;
  for (u64 j = 0; j < m / 4; ++j) {
    power_of_five_.push_back(power);
    power = (power * 5) & static_cast<u32>(m - 1);
  }
}

// The "special FFT" of Cheon-Kim-Kim-Song: coefficients w_k = m_k + i m_{k + n} of the folded
// polynomial to values at zeta^(5^j); butterflies of span `len` use 4*len-th roots.
void Encoder::transform(std::vector<Complex>& v) const {
  permute_bit_reversed(v);
  const u64 m = u64(2) << log_n_;
  for (u64 len = 2; len <= v.size(); len *= 2) {
    const u64 half = len / 2, order = len * 4, step = m / order;
    for (u64 i = 0; i < v.size(); i += len)
      for (u64 j = 0; j < half; ++j) {
        const Complex u = v[i + j];
        const Complex w =
            product(v[i + j + half], roots_[(power_of_five_[j] & (order - 1)) * step]);
        v[i + j] = u + w;
        v[i + j + half] = u - w;
      }
  }
}

void Encoder::inverse_transform(std::vector<Complex>& v) const {
  const u64 m = u64(2) << log_n_;
  for (u64 len = v.size(); len >= 2; len /= 2) {
    const u64 half = len / 2, order = len * 4, step = m / order;
    for (u64 i = 0; i < v.size(); i += len)
      for (u64 j = 0; j < half; ++j) {
        const Complex u = v[i + j] + v[i + j + half];
        const Complex w = v[i + j] - v[i + j + half];
        const u64 index = (order - (power_of_five_[j] & (order - 1))) * step;
        v[i + j] = u;
        v[i + j + half] = product(w, roots_[index & (m - 1)]);
      }
  }
  permute_bit_reversed(v);
  for (auto& x : v) x /= static_cast<double>(v.size());
}

std::vector<double> Encoder::to_coefficients(std::span<const Complex> slots) const {
  std::vector<Complex> folded(slots.begin(), slots.end());
  inverse_transform(folded);
  const u64 n = u64(1) << log_n_, gap = n / 2 / slots.size();
  std::vector<double> coefficients(n, 0.0);
  for (u64 k = 0; k < folded.size(); ++k) {
    coefficients[k * gap] = folded[k].real();
    coefficients[n / 2 + k * gap] = folded[k].imag();
  }
  return coefficients;
}

std::vector<Complex> Encoder::to_slots(std::span<const double> coefficients, u64 slots) const {
  const u64 n = u64(1) << log_n_, gap = n / 2 / slots;
  std::vector<Complex> folded(slots);
  for (u64 k = 0; k < slots; ++k)
    folded[k] = {coefficients[k * gap], coefficients[n / 2 + k * gap]};
  transform(folded);
  return folded;
}

}  // namespace crenel::ckks
