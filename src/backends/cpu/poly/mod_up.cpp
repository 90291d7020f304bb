// ModUp, alone and on its way to the product with a key.
#include <algorithm>
#include <cstring>

#include "backends/cpu/parallel.h"
#include "backends/cpu/poly/kernels.h"

namespace crenel::backend::cpu {

struct CpuPolyKernels::Raise {
  Raise(const Prepared<rns::ModUp>& prepared, u32 limbs) : table(*prepared), digit_of(limbs) {
    for (u32 d = 0; d < digits(); ++d) {
      const auto& digit = table.digits[d];
      std::fill_n(digit_of.begin() + digit.first, digit.count, d);
      fast.push_back(&prepared.conversions->at(d).on_device<ConvertTable>());
    }
  }
  u32 digits() const { return static_cast<u32>(table.digits.size()); }
  bool own(u32 digit, u32 limb) const { return limb < digit_of.size() && digit_of[limb] == digit; }

  const rns::ModUp& table;
  std::vector<u32> digit_of;  ///< of the limbs of the input
  std::vector<const ConvertTable*> fast;
};

// Two parallel loops: inverse transforms of all limbs; conversions of all digits.
void CpuPolyKernels::raise_digits(Stream& stream, const Raise& raise, View out,
                                  ConstView in) const {
  const u64 n = ring().ring_dim(), stride = z_stride();
  const u32 limbs = in.limbs.size(), digits = raise.digits();
  const auto buffer = stream.allocate(limbs * stride * sizeof(u32));
  u32* const z = buffer.as<u32>();
  for (u32 b = 0; b < out.shape.batch; ++b) {
    parallel_for(limbs, 16 * limbs * n, [&](u64 i) {
      const u32 l = static_cast<u32>(i), d = raise.digit_of[l];
      const auto& digit = raise.table.digits[d];
      const u32 j = l - digit.first;
      inverse_row(z + i * stride, in.limb(b, 0, l), in.limbs[l], raise.fast[d]->intt_scale[j],
                  raise.fast[d]->intt_scale_root[j], digit.conversion.half[j]);
    });
    const u64 pieces = convert_pieces();
    parallel_for(digits * pieces, 16 * out.words() / out.shape.batch, [&](u64 i) {
      const u32 d = static_cast<u32>(i / pieces);
      const auto& digit = raise.table.digits[d];
      // the output is the window followed by others: the digit's own limbs are in between
      u32* rows[rns::kMaxLimbs];
      for (u32 k = 0; k < raise.fast[d]->targets.size(); ++k)
        rows[k] = out.limb(b, d, k < digit.first ? k : k + digit.count);
      convert_piece(*raise.fast[d], z + digit.first * stride, rows, i % pieces);
    });
  }
}

// Forward transforms are limb-major: the digits share the twiddles of a prime.
void CpuPolyKernels::do_mod_up(Stream& stream, View out, ConstView in,
                               const Prepared<rns::ModUp>& table) {
  const Raise raise(table, in.limbs.size());
  const u32 digits = raise.digits(), limbs = out.limbs.size();
  raise_digits(stream, raise, out, in);
  parallel_for(
      u64(out.shape.batch) * limbs * digits, 16 * out.words(),
      [&](u64 i) {
        const u32 d = static_cast<u32>(i % digits), l = static_cast<u32>(i / digits % limbs),
                  b = static_cast<u32>(i / digits / limbs);
        u32* const row = out.limb(b, d, l);
        if (raise.own(d, l))
          std::memcpy(row, in.limb(b, 0, l), in.ring_dim() * sizeof(u32));
        else
          forward_row(row, row, out.limbs[l]);
      },
      digits);
}

// A limb's digits meet the key where their transforms leave them, in cache; own limbs of digits
// are those of the input.
void CpuPolyKernels::do_key_switch_extended(Stream& stream, View out, ConstView in,
                                            const Prepared<rns::ModUp>& table, const Key& key,
                                            u32 first_digit, const ConstView* addend,
                                            const Scalars* factor) {
  const Raise raise(table, in.limbs.size());
  const u32 digits = raise.digits(), limbs = out.limbs.size(), batch = out.shape.batch;
  ring::PolyShape shape = in.shape;
  shape.components = digits;
  const auto buffer = stream.allocate((u64(digits) * batch * limbs * sizeof(u32)) << shape.log_n);
  const View raised(buffer.as<u32>(), shape, out.limbs, Domain::eval);
  raise_digits(stream, raise, raised, in);
  const ConstView pairs = key.resolved();
  const u32 first_entry = key.entry(first_digit);
  parallel_for(limbs, 16 * raised.words(), [&](u64 i) {
    const u32 l = static_cast<u32>(i), in_key = static_cast<u32>(pairs.limbs.find(out.limbs[l]));
    const u32* digit[rns::kMaxLimbs];
    const u32* keys[2][rns::kMaxLimbs];
    for (u32 d = 0; d < digits; ++d)
      for (u32 c = 0; c < 2; ++c) keys[c][d] = pairs.limb(first_entry + d, c, in_key);
    // batch entries are the inner loop: they share the key
    for (u32 b = 0; b < batch; ++b) {
      for (u32 d = 0; d < digits; ++d) {
        u32* const row = raised.limb(b, d, l);
        if (!raise.own(d, l)) forward_row(row, row, out.limbs[l]);
        digit[d] = raise.own(d, l) ? in.limb(b, 0, l) : row;
      }
      isa_.fused->key_multiply({out.limb(b, 0, l),
                                out.limb(b, 1, l),
                                digit,
                                keys[0],
                                keys[1],
                                digits,
                                in.ring_dim(),
                                nullptr,
                                {}},
                               prime(out.limbs[l]));
      if (addend != nullptr && l < in.limbs.size()) add_scaled(out, *addend, *factor, b, l);
    }
  });
}

void CpuPolyKernels::add_scaled(View out, ConstView addend, const Scalars& factor, u32 b,
                                u32 l) const {
  const u64 half = out.ring_dim() / 2;
  const u32 id = out.limbs[l];
  for (u32 c = 0; c < addend.shape.components; ++c)
    for (const u64 at : {u64(0), half})
      isa_.arithmetic->mul_add_scalar(out.limb(b, c, l) + at, addend.limb(b, c, l) + at, half,
                                      shoup(at == 0 ? factor.low[l] : factor.high[l], id),
                                      prime(id).q);
}

}  // namespace crenel::backend::cpu
