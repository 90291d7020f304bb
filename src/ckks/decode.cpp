#include "ckks/decode.h"

#include <atomic>
#include <cmath>

#include "core/team.h"
#include "crenel/core/watch.h"
#include "rns/compose.h"

namespace crenel::ckks {
namespace {

using Complex = std::complex<double>;

// So far below the largest double that sums over 2^17 of them are finite.
constexpr double kLargest = 0x1p900;

// Composes every coefficient from all limbs of `poly`, or, with `checked`, from all but the last
// and compares with the last. False when a comparison fails.
bool compose_all(const rlwe::RingContext& ring, const rlwe::Poly& poly, bool checked,
                 core::SecretVector<double>& out) {
  const u64 n = ring.ring_dim();
  const u32 limbs = poly.limbs().size();
  std::vector<math::Modulus<u32>> moduli;
  for (u32 i = 0; i < limbs; ++i) moduli.push_back(ring.modulus(poly.limbs()[i]));
  const rns::CrtComposer composer(moduli);
  core::SecretVector<u32> words(poly.words());
  poly.stream().copy_out_secret(words.data(), poly.data(), poly.bytes());
  out.resize(n * poly.shape().batch);
  std::atomic<bool> agrees{true};
  constexpr u64 kPiece = u64(1) << 14;
  for (u64 first = 0; first < out.size(); first += kPiece) {
    watch::point();
    core::loop_in_parts(std::min<u64>(kPiece, out.size() - first), [&](u64 at) {
      const u64 i = first + at;
      const u32* residues = words.data() + (i / n) * limbs * n + i % n;
      if (!checked || limbs == 1) {
        out[i] = composer.to_double(residues, n);
      } else if (const auto value = composer.to_double_checked(residues, n, limbs - 1)) {
        out[i] = *value;
      } else {
        agrees.store(false, std::memory_order_relaxed);
      }
    });
  }
  return agrees.load();
}

std::vector<Complex> slots_of(const Context::State& state, core::SecretVector<double>& coefficients,
                              const Metadata& meta) {
  const u64 n = state.ring->ring_dim();
  std::vector<Complex> out;
  for (u64 first = 0; first < coefficients.size(); first += n) {
    watch::point();
    const std::span<double> row(coefficients.data() + first, n);
    bool moderate = true;  // and not NaN
    for (double& c : row) {
      c /= meta.scale;
      moderate &= std::abs(c) < kLargest;
    }
    if (!moderate)
      throw StateError(
          "decoding of a polynomial that holds no message: coefficients over scale exceed 2^900",
          {{"scale", meta.scale}, {"expected", "coefficients over scale below 2^900"}});
    const auto slots = state.encoder.to_slots(row, meta.slots);
    out.insert(out.end(), slots.begin(), slots.end());
  }
  return out;
}

}  // namespace

u32 limbs_to_decode(const Context::State& state, const Metadata& meta) {
  const auto& window = state.ring->window(meta.level);
  const double wanted = std::log2(meta.scale) + 40.0;
  double bits = 0.0;
  u32 count = 0;
  while (count < window.size() && bits < wanted)
    bits += std::log2(state.ring->modulus(window[count++]).q);
  return std::min(count + 1, window.size());
}

std::vector<Complex> decode_coefficients(const Context::State& state, const rlwe::Poly& poly,
                                         const Metadata& meta) {
  core::SecretVector<double> coefficients;
  compose_all(*state.ring, poly, false, coefficients);
  return slots_of(state, coefficients, meta);
}

std::optional<std::vector<Complex>> try_decode_coefficients(const Context::State& state,
                                                            const rlwe::Poly& poly,
                                                            const Metadata& meta) {
  core::SecretVector<double> coefficients;
  if (!compose_all(*state.ring, poly, true, coefficients)) return std::nullopt;
  return slots_of(state, coefficients, meta);
}

double measured_bound(const Context::State& state, const rlwe::Poly& poly, const Metadata& meta) {
  const rlwe::ConstView few = poly.view().limb_window(0, limbs_to_decode(state, meta));
  rlwe::Poly coefficients(poly.stream(), poly.shape(), few.limbs, ring::Domain::coeff, true);
  state.ring->kernels().intt(poly.stream(), coefficients.view(), few);
  const auto slots = try_decode_coefficients(state, coefficients, meta);
  return slots ? largest_slot(*slots) : kUnknownBound;
}

}  // namespace crenel::ckks
