// External products by the double-precision transform.
#include <algorithm>
#include <cmath>

#include "backends/cpu/torus/kernels.h"
#include "ring/fft.h"

namespace crenel::backend::cpu {
namespace {

class TransformEngine final : public TorusEngine {
 public:
  TransformEngine(const TorusPlan& plan, const TorusTable& table)
      : plan_(plan), table_(table), lanes_(table.lanes) {
    const ring::NegacyclicFft fft(plan.log_n);
    points_ = fft.points();
    for (const auto& w : fft.twiddles) twiddles_.insert(twiddles_.end(), {w.re, w.im});
    for (const auto& w : fft.roots) cosine_.push_back(w.re);
    fill_lane_twiddles(fft);
    // first vector of each group of four: j = 0 modulo 4
    for (u32 vector = 0; vector < points_ / lanes_; vector += 4)
      for (u32 k = 0; k < lanes_; ++k) exponents_.push_back(fft.exponents[leaf(vector, k)]);
    tables_ = {plan.log_n - 1, twiddles_.data(), lane_twiddles_.data()};
    const bool raising = plan.path == device::NoisePath::raising;
    const double q = static_cast<double>(plan.modulus);
    rounding_ = {
        .log_n = plan.log_n,
        .raising = raising,
        .reduces = device::reduces_product(plan),
        .modulus = plan.modulus,
        .base_log = plan.base_log,
        .digits = plan.digits,
        .piece_log = plan.digit_pieces() == 2 ? device::piece_log(plan) : 0,
        .scale = raising ? q / static_cast<double>(plan.key_modulus()) / points_ : 1.0 / points_,
        .modulus_double = q,
        .modulus_inverse = 1.0 / q};
    piece_ratio_ = std::ldexp(1.0, static_cast<int>(rounding_.piece_log)) / q;
  }

  u64 element_bytes() const override {
    return plan_.digit_pieces() * plan_.key_polys() * points_ * 16;
  }
  u64 row_bytes() const override { return terms() * plan_.ring_dim() * sizeof(double); }
  /// The digits of one polynomial, the buffer of the sums.
  u64 shared_bytes() const override {
    return plan_.operands() * plan_.ring_dim() * sizeof(double) +
           plan_.polys() * 4 * 2 * lanes_ * sizeof(double);
  }

  void load(void* element, const i64* keys, u8* shared) const override {
    const u64 n = plan_.ring_dim(), outs = plan_.polys(), pair = 2 * u64(lanes_);
    const u32 parts = plan_.keys_per_step();
    double* z = reinterpret_cast<double*>(shared);
    const auto coefficient = [&](const i64* first, const i64* second, u64 j, u32 part, u64 piece) {
      if (plan_.group != 0) return first[part * terms() * outs * n + j];
      const i64 k0 = weighted(first[j], piece), k1 = parts == 1 ? 0 : weighted(second[j], piece);
      return part == 0 ? k0 + k1 : k0 - k1;
    };
    for (u32 part = 0; part < parts; ++part)
      for (u64 t = 0; t < terms(); ++t)
        for (u64 o = 0; o < outs; ++o) {
          const u64 operand = t / outs, row = t % outs, pieces = plan_.digit_pieces();
          const i64* first = keys + ((operand / pieces * outs + row) * outs + o) * n;
          const i64* second = first + plan_.digits * outs * outs * n;
          for (u64 half = 0; half < 2; ++half)
            for (u64 c = 0; c < points_; ++c) {
              const u64 j = half * points_ + c;
              const i64 x = coefficient(first, second, j, part, operand % pieces);
              z[c / lanes_ * pair + half * lanes_ + c % lanes_] = static_cast<double>(x);
            }
          table_.forward(static_cast<double*>(element) + ((o * terms() + t) * parts + part) * pair,
                         outs * terms() * parts * pair, z, tables_, nullptr);
        }
  }

  void step(i64* const* acc, const u32* e, u32 rows, const void* element, bool next,
            u8* const* work, u8* shared) const override {
    constexpr u32 kMaxRows = 16;  // above the groups of kernels.cpp
    double* spectra[kMaxRows];
    double* const z = reinterpret_cast<double*>(shared);
    const u64 n = plan_.ring_dim(), polys = plan_.polys(), pair = 2 * u64(lanes_);
    const char* const key = static_cast<const char*>(element);
    // the last step's inverse transforms began to fetch this element, these go on
    Ahead ahead{key + std::min(element_bytes(), rows * polys * ahead_bytes()),
                key + element_bytes(), ahead_bytes()};
    for (u32 r = 0; r < rows; ++r) {
      spectra[r] = reinterpret_cast<double*>(work[r]);
      for (u64 poly = 0; poly < polys; ++poly) {
        table_.decompose(z, n, acc[r] + poly * n, rounding_);
        for (u64 d = 0; d < plan_.operands(); ++d)
          table_.forward(spectra[r] + (d * polys + poly) * pair, terms() * pair, z + d * n, tables_,
                         ahead.take());
      }
    }
    table_.sum({static_cast<const double*>(element), spectra, z + plan_.operands() * n, e, rows,
                static_cast<u32>(terms()), plan_.polys(), points_ / lanes_, 2 * plan_.ring_dim(),
                plan_.secret == device::LweSecret::ternary, plan_.group != 0 ? plan_.sets() : 0,
                plan_.differences, cosine_.data(), exponents_.data()});
    ahead = {key + element_bytes(), key + (next ? 2 : 1) * element_bytes(), ahead_bytes()};
    for (u32 r = 0; r < rows; ++r)
      for (u64 poly = 0; poly < polys; ++poly) {
        table_.inverse(z, spectra[r] + poly * pair, polys * pair, tables_, ahead.take());
        if (!plan_.accumulates()) std::fill_n(acc[r] + poly * n, n, i64(0));
        table_.accumulate(acc[r] + poly * n, z, rounding_);
      }
  }

 private:
  // A walk through memory that is to be fetched, one transform's share after the other.
  struct Ahead {
    const char* at;
    const char* end;
    u64 share;
    const char* take() {
      if (static_cast<u64>(end - at) < share) return nullptr;
      at += share;
      return at - share;
    }
  };

  u64 ahead_bytes() const { return u64(points_) / (lanes_ * lanes_) * kTorusPrefetch; }
  u64 terms() const { return u64(plan_.operands()) * plan_.polys(); }
  // What multiplies a piece of a digit whose key is `key`.
  i64 weighted(i64 key, u64 piece) const {
    if (piece == 0) return key;
    // the quotient is off by 1 at most, and the remainder fits what wraps
    const u64 q = plan_.modulus;
    const double quotient = static_cast<double>(key) * piece_ratio_;
    const u64 multiple = static_cast<u64>(static_cast<i64>(std::nearbyint(quotient))) * q;
    const i64 r = static_cast<i64>((static_cast<u64>(key) << rounding_.piece_log) - multiple);
    const i64 half = static_cast<i64>(q / 2);
    return r > half ? r - static_cast<i64>(q) : r < -half ? r + static_cast<i64>(q) : r;
  }
  // The leaf of ring/fft.h at lane k of a vector.
  u32 leaf(u32 vector, u32 k) const {
    return vector / lanes_ * lanes_ * lanes_ + lanes_ * k + vector % lanes_;
  }

  void fill_lane_twiddles(const ring::NegacyclicFft& fft) {
    const u32 lanes = lanes_, vectors = points_ / lanes;
    for (u32 block = 0; block < vectors / lanes; ++block)
      for (u32 nodes = 1; nodes < lanes; nodes *= 2)  // of the level, in a vector's subtree
        for (u32 node = 0; node < nodes; node += 2) {
          const u64 width = u64(vectors) * nodes;
          for (u32 part = 0; part < 2; ++part)
            for (u32 k = 0; k < lanes; ++k) {
              const auto& w = fft.twiddles[width + (u64(block) * lanes + k) * nodes + node];
              lane_twiddles_.push_back(part == 0 ? w.re : w.im);
            }
        }
  }

  TorusPlan plan_;
  const TorusTable& table_;
  u32 lanes_, points_ = 0;
  std::vector<double> twiddles_, lane_twiddles_, cosine_;
  std::vector<u32> exponents_;
  double piece_ratio_ = 0;  ///< split: 2^piece_log / Q
  TorusFft tables_{};
  TorusRounding rounding_{};
};

}  // namespace

std::unique_ptr<TorusEngine> make_transform_engine(const TorusPlan& plan, Isa isa) {
  // a path needs a block of lanes^2 points and four vectors
  const u32 points = plan.ring_dim() / 2;
  const auto fits = [&](Isa path) {
    const u32 lanes = torus_table(path).lanes;
    return isa_available(path) && points >= lanes * lanes && points >= 4 * lanes;
  };
  while (isa != Isa::scalar && !fits(isa)) isa = static_cast<Isa>(static_cast<u8>(isa) - 1);
  return std::make_unique<TransformEngine>(plan, torus_table(isa));
}

}  // namespace crenel::backend::cpu
