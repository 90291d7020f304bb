// The megakernel: start, all n steps of the blind rotation, sample extraction and modulus switch of
// a group of rows in one block, accumulators on chip from first to last. The rows of a group go
// through the steps together, so that a thread uses every word of the key that it reads for BT
// rows.
#pragma once

#include "backends/cuda/torus/device/multiply_rows.cuh"
#include "backends/cuda/torus/device/passes.cuh"

namespace crenel::backend::cuda::torus {

/// E(x) of device/torus/kernels.h: from modulus q to 2N.
__device__ __forceinline__ u32 rotation_exponent(u32 x, u32 log_q, u32 log_n) {
  const u32 log_two_n = log_n + 1;
  if (log_q <= log_two_n) return x << (log_two_n - log_q) & ((1u << log_two_n) - 1);
  const u32 drop = log_q - log_two_n;
  return ((x >> (drop - 1)) + 1) >> 1 & ((1u << log_two_n) - 1);
}

/// floor((x Q_KS + floor(Q / 2)) / Q) modulo Q_KS, x < Q.
__device__ __forceinline__ u64 switch_modulus(u64 x, const RotateArgs& args) {
  const u64 mask = (u64(1) << args.log_switch_modulus) - 1;
  const unsigned __int128 scaled =
      (static_cast<unsigned __int128>(x) << args.log_switch_modulus) + args.modulus / 2;
  return static_cast<u64>(scaled / args.modulus) & mask;
}

/// Row at rest of slot `member` of the block's group; rows past the end repeat the last one.
__device__ __forceinline__ u32 row_of(const RotateArgs& args, u32 member) {
  const u32 row = blockIdx.x * args.group + member;
  return row < args.batch ? row : args.batch - 1;
}

/// ACC = (0, ..., 0, X^-E(b_j) v_j).
template <class Rules>
__device__ __forceinline__ void start(const RotateArgs& args, const Rules& rules,
                                      typename Rules::Acc* acc, u32 stride) {
  const u32 n = 1u << args.log_n;
  for (u32 t = threadIdx.x; t < args.group * args.polys << args.log_n; t += blockDim.x) {
    const u32 poly = t >> args.log_n, m = t & (n - 1);
    const u32 member = poly / args.polys, out = poly % args.polys;
    typename Rules::Acc value = 0;
    if (out >= args.glwe_dim) {
      const u32 slot = out - args.glwe_dim, row = row_of(args, member);
      const u32 b = args.in[u64(row) * (args.lwe_dim + args.slots) + args.lwe_dim + slot];
      const u32 table = args.index == nullptr ? 0 : args.index[u64(row) * args.slots + slot];
      const u32 from = (m + rotation_exponent(b, args.log_lwe_modulus, args.log_n)) & (2 * n - 1);
      const u64 v = args.luts[(u64(table) << args.log_n) + (from & (n - 1))];
      value = rules.centred(from < n || v == 0 ? v : args.modulus - v);
    }
    acc[poly * stride + m] = value;
  }
}

/// Sample extraction and modulus switch.
template <class Rules>
__device__ __forceinline__ void finish(const RotateArgs& args, const Rules& rules,
                                       const typename Rules::Acc* acc, u32 stride) {
  const u32 n = 1u << args.log_n, words = (args.glwe_dim << args.log_n) + args.slots;
  for (u32 t = threadIdx.x; t < args.group * args.outputs * words; t += blockDim.x) {
    const u32 output = t / words, w = t % words, member = output / args.outputs;
    const u32 row = blockIdx.x * args.group + member;
    if (row >= args.batch) return;
    const u32 i = (output - member * args.outputs) * (n / args.outputs);  // the coefficient
    const typename Rules::Acc* const from = acc + member * args.polys * stride;
    u64 x;
    if (w < args.glwe_dim << args.log_n) {
      const u32 j = w & (n - 1);
      x = rules.canonical(from[(w >> args.log_n) * stride + ((i - j) & (n - 1))]);
      if (j > i && x != 0) x = args.modulus - x;
    } else {
      const u32 slot = w - (args.glwe_dim << args.log_n);
      const u32 table = args.index == nullptr ? 0 : args.index[u64(row) * args.slots + slot];
      x = rules.canonical(from[(args.glwe_dim + slot) * stride + i]) + args.offsets[table];
      if (x >= args.modulus) x -= args.modulus;
    }
    args.out[(u64(blockIdx.x) * args.group * args.outputs + output) * words + w] =
        switch_modulus(x, args);
  }
}

/// Polys: those of the accumulator as a constant, 0: of run time.
template <class Field, class Rules, class Shape, bool Ternary, u32 Polys>
__global__ void __launch_bounds__(Shape::Threads, Shape::Blocks)
    blind_rotate(const __grid_constant__ RotateArgs args) {
  begin_kernel();
  using Element = typename Field::Element;
  using Acc = typename Rules::Acc;
  constexpr u32 OG = Shape::OG, BT = Shape::BT, LP = Shape::LP;
  extern __shared__ __align__(16) u8 shared[];
  const u32 lp = LP != 0 ? LP : args.log_points;
  constexpr Swizzle swizzle =
      LP != 0 ? PassPlan(LP != 0 ? LP : 1, Shape::RMax).swizzle() : kSingleLevels;
  const u32 polys = Polys != 0 ? Polys : args.polys;
  constexpr u32 Operands = Rules::kOperands;
  const u32 operands = Operands != 0 ? Operands : args.operands;
  const u32 all = polys * args.group;
  const u32 stages = Shape::Staged ? 1 : operands;
  const u64 work_bytes = u64(stages * all) * sizeof(Element) << lp;
  const bool spilled = LP == 0 && args.spill != nullptr;
  Element* const work =
      reinterpret_cast<Element*>(spilled ? args.spill + blockIdx.x * work_bytes : shared);
  Acc* const acc = reinterpret_cast<Acc*>(shared + (spilled ? 0 : work_bytes));
  const u32 acc_stride = (1u << (LP != 0 ? LP + Field::kHalves : args.log_n)) + Shape::Pad;
  u8* const tables = reinterpret_cast<u8*>(acc + u64(all) * acc_stride);
  const Field field(args, tables + 16 * ((args.group + 3) / 4));
  u32* const exponents = reinterpret_cast<u32*>(tables);
  const Rules rules{args};

  start(args, rules, acc, acc_stride);
  __syncthreads();

  // Where this thread multiplies: a point of the tile, OG outputs, BT rows of the group.
  const u32 tile = 1u << args.log_tile;
  const u32 point = threadIdx.x & (tile - 1), part = threadIdx.x >> args.log_tile;
  const u32 outs = polys / OG;
  const u32 out = part % outs * OG, member = part / outs * BT;
  const bool active = member < args.group;
  const u32 words = args.lwe_dim + args.slots;
  const u64 digit_words = u64((Ternary ? 2 : 1) * polys * polys) << lp;
  const auto* key = static_cast<const typename Field::Key*>(args.key) + (u64(out) << lp);

  for (u32 i = 0; i < args.lwe_dim; ++i, key += digit_words * operands) {
    if (threadIdx.x < args.group)
      exponents[threadIdx.x] = rotation_exponent(
          args.in[u64(row_of(args, threadIdx.x)) * words + i], args.log_lwe_modulus, args.log_n);
    typename Field::Sum sums[Shape::Tiles][OG][BT];
    const auto clear = [&](auto& sum) {
#pragma unroll
      for (u32 o = 0; o < OG; ++o)
#pragma unroll
        for (u32 b = 0; b < BT; ++b) sum[o][b] = Field::zero();
    };
    // Outputs take the inputs' place once every thread has read them.
    const auto write = [&](const auto& sum, u32 f) {
      if (!active) return;
      const u32 exponent = field.exponent_of(f), at = place<Element>(f, swizzle);
#pragma unroll
      for (u32 b = 0; b < BT; ++b)
#pragma unroll
        for (u32 o = 0; o < OG; ++o)
          work[(((member + b) * polys + out + o) << lp) + at] =
              field.template finish<Ternary>(sum[o][b], exponents[member + b], exponent);
    };
    // The operands of a member lie one after the other.
    const auto multiply = [&](auto& sum, u32 f, u32 terms, u32 d) {
      if (active)
        multiply_rows<Field, Shape, Ternary, Shape::Staged ? Polys : Operands * Polys>(
            field, terms, polys, lp, sum,
            work + ((member * terms) << lp) + place<Element>(f, swizzle),
            key + digit_words * d + f);
    };
    if constexpr (Shape::Staged) {
#pragma unroll
      for (u32 t = 0; t < Shape::Tiles; ++t) clear(sums[t]);
      for (u32 d = 0; d < operands; ++d) {
        if (d != 0) __syncthreads();
        forward<Field, LP, Shape::RMax>(field, work, all, lp, [&](u32 poly) {
          return field.points_of(acc + poly * acc_stride, d);
        });
#pragma unroll
        for (u32 t = 0; t < Shape::Tiles; ++t) multiply(sums[t], point + t * tile, polys, d);
      }
      __syncthreads();
#pragma unroll
      for (u32 t = 0; t < Shape::Tiles; ++t) write(sums[t], point + t * tile);
    } else {
      const u32 terms = operands * polys;
      // several operands are cut from what one thread stored
      if (operands != 1) __syncthreads();
      forward<Field, LP, Shape::RMax>(field, work, terms * args.group, lp, [&](u32 index) {
        u32 poly = index, d = 0;
        if (operands != 1) {
          const u32 owner = index / terms, term = index % terms;
          d = term / polys;
          poly = owner * polys + term % polys;
        }
        return field.points_of(acc + poly * acc_stride, d);
      });
      for (u32 f = point; f < 1u << lp; f += tile) {
        clear(sums[0]);
        multiply(sums[0], f, terms, 0);
        __syncthreads();
        write(sums[0], f);
      }
    }
    __syncthreads();
    inverse<Field, LP, Shape::RMax>(field, work, all, lp,
                                    [&](u32 poly, u32 base, u32 stride, const auto& v) {
                                      field.store(acc + poly * acc_stride, base, stride, v);
                                    });
  }
  __syncthreads();
  finish(args, rules, acc, acc_stride);
}

}  // namespace crenel::backend::cuda::torus
