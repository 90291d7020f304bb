#include "device/fhecore/plan.h"

#include "crenel/core/error.h"

namespace crenel::device {
namespace {

using fhecore::column_constants;
using fhecore::ColumnConstants;
using fhecore::kCols;
using fhecore::kDepth;
using fhecore::kRows;
using ring::bit_reverse;

constexpr u64 kProducts = u64(kRows) * kCols * kDepth;

u64 divide_up(u64 a, u64 b) { return (a + b - 1) / b; }

// psi^e of one prime, any e >= 0.
struct Powers {
  const ring::PrimeTables& prime;
  const std::vector<math::ShoupConstant<u32>>& roots;  // of psi or of its inverse
  u32 log_n;

  u32 operator()(u64 e) const {
    const u64 n = u64(1) << log_n;
    const u32 value = roots[bit_reverse(static_cast<u32>(e & (n - 1)), log_n)].value;
    return (e & n) != 0 ? prime.modulus.q - value : value;
  }
};

// Entry (i, j) of the matrix of `block`: the exponent of psi that takes element j to output i. The
// block is a polynomial modulo X^(R t) - psi^(R t (2 brev(block) + 1)); output i is its remainder
// modulo X^t - psi^(t (2 brev(R block + i) + 1)).
u64 exponent(const FhecorePass& p, u32 block, u32 i, u32 j) {
  if (p.twiddles) return (u64(2) * bit_reverse(i, p.log_radix) * j) << p.log_blocks;
  const u32 log_blocks = p.log_blocks + p.log_radix;
  const u64 point = 2 * u64(bit_reverse((block << p.log_radix) + i, log_blocks)) + 1;
  return (point * j) << p.log_stride;
}

void append_pass(FhecoreTransform::Direction& to, const FhecorePass& p, const Powers& power,
                 bool inverse) {
  const auto& m = power.prime.modulus;
  const u32 radix = 1u << p.log_radix, side = p.side();
  const u32 scale = inverse ? math::inverse_mod<u32>(radix % m.q, m) : 1;
  const u32 blocks = p.twiddles ? 1 : 1u << p.log_blocks;
  const std::size_t start = to.matrices.size();
  to.matrices.resize(start + p.matrix_words(), 0);
  for (u32 block = 0; block < blocks; ++block) {
    u32* matrix = to.matrices.data() + start + u64(block) * side * side;
    for (u32 i = 0; i < radix; ++i)
      for (u32 j = 0; j < radix; ++j) {
        const u32 value = math::mul_mod<u32>(power(exponent(p, block, i, j)), scale, m);
        for (u32 run = 0; run < side; run += radix) {
          const u32 row = run + (inverse ? j : i), col = run + (inverse ? i : j);
          matrix[row * side + col] = value;
        }
      }
  }
  if (!p.twiddles) return;
  for (u32 block = 0; block < (1u << p.log_blocks); ++block) {
    const u64 point = 2 * u64(bit_reverse(block, p.log_blocks)) + 1;
    for (u32 j = 0; j < radix; ++j)
      to.twiddles.push_back(math::make_shoup<u32>(power(point * j), m.q));
  }
}

fhecore::FragmentConstants equal_columns(u64 modulus) {
  ColumnConstants columns[kCols];
  for (auto& c : columns) c = column_constants<32>(modulus);
  return fhecore::to_fragment(columns);
}

void refuse_size(u32 log_n, const char* expected) {
  throw ParameterError(cat("log_n = ", log_n, ", expected ", expected), {{"log_n", log_n}});
}

}  // namespace

const char* name_of(FhecoreDecomposition decomposition) {
  return decomposition == FhecoreDecomposition::radix16 ? "16^4" : "256x256";
}

FhecoreDecomposition fhecore_decomposition(const std::string& name) {
  for (const auto d : {FhecoreDecomposition::radix16, FhecoreDecomposition::radix256})
    if (name == name_of(d)) return d;
  throw ParameterError(cat("decomposition \"", name, "\", expected \"16^4\" or \"256x256\""),
                       {{"decomposition", name}});
}

std::vector<FhecorePass> fhecore_passes(u32 log_n, FhecoreDecomposition decomposition) {
  std::vector<u32> radices;
  if (decomposition == FhecoreDecomposition::radix256) {
    if (log_n != 16) refuse_size(log_n, "16 for the decomposition 256x256");
    radices = {8, 8};
  } else {
    if (log_n < 8 || log_n > 17) refuse_size(log_n, "8..17 for the decomposition 16^4");
    // The small radix first: with it at the end, the strides of the pass before would be below 16
    // and a second pass would need twiddles.
    if (log_n % 4 != 0) radices.push_back(log_n % 4);
    radices.resize(radices.size() + log_n / 4, 4);
  }
  return fhecore_passes(radices);
}

std::vector<FhecorePass> fhecore_passes(const std::vector<u32>& log_radices) {
  std::vector<FhecorePass> passes;
  u32 log_n = 0, done = 0;
  u64 words = 0;
  for (const u32 log_radix : log_radices) log_n += log_radix;
  for (const u32 log_radix : log_radices) {
    FhecorePass p;
    p.log_n = log_n;
    p.log_radix = log_radix;
    p.log_blocks = done;
    done += log_radix;
    p.log_stride = log_n - done;
    p.twiddles = p.log_stride == 0;
    p.matrix_at = words;
    words += p.matrix_words();
    passes.push_back(p);
  }
  return passes;
}

FhecoreTransform make_fhecore_transform(std::shared_ptr<const ring::Ring> ring,
                                        std::vector<FhecorePass> passes) {
  FhecoreTransform t;
  t.ring = std::move(ring);
  t.passes = std::move(passes);
  for (const auto& p : t.passes) t.matrix_words += p.matrix_words();
  for (u32 id = 0; id < t.ring->prime_count(); ++id) {
    const auto& prime = t.ring->prime(id);
    const Powers power{prime, prime.roots, t.ring->log_n()};
    const Powers inverse{prime, prime.inverse_roots, t.ring->log_n()};
    for (const auto& p : t.passes) {
      append_pass(t.forward, p, power, false);
      append_pass(t.inverse, p, inverse, true);
    }
    t.constants.push_back(equal_columns(prime.modulus.q));
  }
  return t;
}

FhecoreConversion make_fhecore_conversion(const rns::Moduli& moduli, rns::BaseConversion table) {
  FhecoreConversion c;
  const u32 sources = table.source.size(), destinations = table.destination.size();
  if (sources == 0 || destinations == 0)
    throw ParameterError(
        cat("base conversion from ", sources, " to ", destinations, " limbs, expected at least 1"),
        {{"sources", sources}, {"destinations", destinations}});
  if (table.rounded())
    throw ParameterError("base conversion with a rounded quotient, expected one that keeps it",
                         {{"quotient", "rounded"}, {"expected", "kept"}});
  for (u32 j = 0; j < sources; ++j) c.source_moduli.push_back(moduli[table.source[j]].q);
  c.depth_tiles = static_cast<u32>(divide_up(sources, kDepth));
  c.halves = static_cast<u32>(divide_up(destinations, kCols));
  const u32 width = kCols * c.halves;
  c.matrix.resize(u64(kDepth) * c.depth_tiles * width, 0);
  c.offset.resize(width, 0);
  for (u32 h = 0; h < c.halves; ++h) {
    ColumnConstants columns[kCols];
    for (u32 j = 0; j < kCols; ++j) {
      const u32 i = h * kCols + j;
      columns[j] = column_constants<32>(i < destinations ? moduli[table.destination[i]].q : 1);
      if (i >= destinations) continue;
      c.offset[i] = table.offset[i];
      for (u32 k = 0; k < sources; ++k) c.matrix[k * width + i] = table.matrix[i * sources + k];
    }
    c.constants.push_back(fhecore::to_fragment(columns));
  }
  c.table = std::move(table);
  return c;
}

FhecoreWork fhecore_transform_work(u32 log_n, FhecoreDecomposition decomposition) {
  FhecoreWork w;
  for (const auto& p : fhecore_passes(log_n, decomposition)) {
    const u64 tiles = u64(p.strips()) * p.depth_tiles() * p.depth_tiles();
    w.counts.fhe_sync += tiles;
    w.counts.setc += p.warps();
    if (p.twiddles) w.counts.multiplications += u64(1) << log_n;
    w.useful_products += u64(1) << (log_n + p.log_radix);
  }
  w.counts.fhec = 2 * w.counts.fhe_sync;
  w.offered_products = w.counts.fhec * kProducts;
  w.depth_use = w.use();
  w.column_use = 1;
  return w;
}

FhecoreWork fhecore_conversion_work(u32 log_n, u32 sources, u32 destinations) {
  if (log_n < 4 || log_n > 17) refuse_size(log_n, "4..17");
  if (sources == 0 || destinations == 0)
    throw ParameterError(
        cat("base conversion from ", sources, " to ", destinations, " limbs, expected at least 1"),
        {{"sources", sources}, {"destinations", destinations}});
  const u64 tiles = u64(1) << (log_n - 4), depth = divide_up(sources, kDepth);
  const u64 halves = divide_up(destinations, kCols);
  FhecoreWork w;
  w.counts.fhe_sync = tiles * depth * divide_up(destinations, 2 * kCols);
  w.counts.fhec = tiles * depth * halves;
  w.counts.setc = divide_up(tiles, kFhecoreCoefficientTiles) * halves;
  w.counts.multiplications = u64(sources) << log_n;
  w.useful_products = (u64(sources) * destinations) << log_n;
  w.offered_products = w.counts.fhec * kProducts;
  w.depth_use = double(sources) / (depth * kDepth);
  w.column_use = double(destinations) / (halves * kCols);
  return w;
}

}  // namespace crenel::device
