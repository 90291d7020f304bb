// Products with switching keys.
#include <algorithm>
#include <cstring>

#include "backends/cpu/parallel.h"
#include "backends/cpu/poly/kernels.h"
#include "backends/cpu/poly/permutation.h"

namespace crenel::backend::cpu {

namespace {

using ConstView = ring::PolyView<const u32>;

// Pointers to one piece of a limb of all digits and key polynomials.
struct Rows {
  const u32* digit[rns::kMaxLimbs];
  const u32* key0[rns::kMaxLimbs];
  const u32* key1[rns::kMaxLimbs];

  Rows(const ConstView& digits, u32 b, u32 l, const ConstView& key, u32 first_entry, u64 at) {
    const u32 in_key = static_cast<u32>(key.limbs.find(digits.limbs[l]));
    for (u32 d = 0; d < digits.shape.components; ++d) {
      digit[d] = digits.limb(b, d, l) + at;
      key0[d] = key.limb(first_entry + d, 0, in_key) + at;
      key1[d] = key.limb(first_entry + d, 1, in_key) + at;
    }
  }
};

}  // namespace

void CpuPolyKernels::do_key_multiply(Stream&, View out, ConstView digits, const Key& key,
                                     u32 first_digit) {
  // Batch entries are the inner loop: a piece of the key, at most 16 KiB a row, is read from memory
  // once.
  const u64 n = out.ring_dim(), piece = std::min<u64>(n, 4096), pieces = n / piece;
  const u32 count = digits.shape.components;
  const ConstView pairs = key.resolved();
  const u32 first_entry = key.entry(first_digit);
  parallel_for(
      pieces * out.limbs.size(), out.words() * count,
      [&](u64 i) {
        const u32 l = static_cast<u32>(i / pieces);
        const u64 at = i % pieces * piece;
        for (u32 b = 0; b < out.shape.batch; ++b) {
          const Rows rows(digits, b, l, pairs, first_entry, at);
          isa_.fused->key_multiply({out.limb(b, 0, l) + at,
                                    out.limb(b, 1, l) + at,
                                    rows.digit,
                                    rows.key0,
                                    rows.key1,
                                    count,
                                    piece,
                                    nullptr,
                                    {}},
                                   prime(out.limbs[l]));
        }
      },
      4);
}

void CpuPolyKernels::do_hoisted_rotate_sum(Stream& stream, View out, ConstView digits, ConstView b,
                                           ConstView a, std::span<const Key> keys,
                                           std::span<const u64> elements, const Scalars& special,
                                           u32 first_digit) {
  const u64 n = out.ring_dim();
  const u32 count = digits.shape.components, window = b.limbs.size(), limbs = out.limbs.size();
  std::vector<Permutation> maps;
  maps.reserve(elements.size());
  for (u64 e : elements) maps.push_back(permutation(stream, e, true));
  parallel_for(u64(limbs) * out.shape.batch, out.words() * count * elements.size(), [&](u64 i) {
    const u32 l = static_cast<u32>(i % limbs), entry = static_cast<u32>(i / limbs);
    const Prime& p = prime(out.limbs[l]);
    u32* const out0 = out.limb(entry, 0, l);
    u32* const out1 = out.limb(entry, 1, l);
    const u32* const lifted = l < window ? b.limb(entry, 0, l) : nullptr;
    const Shoup lift = l < window ? shoup(special.low[l], out.limbs[l]) : Shoup{};
    std::memset(out0, 0, n * sizeof(u32));
    std::memset(out1, 0, n * sizeof(u32));
    for (std::size_t r = 0; r < elements.size(); ++r) {
      if (elements[r] != 1) {
        const Rows rows(digits, entry, l, keys[r].resolved(), keys[r].entry(first_digit), 0);
        isa_.fused->key_multiply_scatter(
            {out0, out1, rows.digit, rows.key0, rows.key1, count, n, lifted, lift}, maps[r].view(),
            p);
      } else if (lifted) {
        isa_.arithmetic->mul_add_scalar(out0, lifted, n, lift, p.q);
        isa_.arithmetic->mul_add_scalar(out1, a.limb(entry, 0, l), n, lift, p.q);
      }
    }
  });
}

}  // namespace crenel::backend::cpu
