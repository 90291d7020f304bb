// Toy plans of TFHE's kernels, random inputs that fit them, and runs on a device. Keys here are
// random polynomials: kernels know no secrets, and nothing but equality of results is asked.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "device/backend.h"
#include "math/primes.h"
#include "support/random.h"
#include "tfhe/params/plan.h"

namespace crenel::test {

using device::LweSecret;
using device::NoisePath;
using device::TorusPlan;

/// How the polynomials of a key, tables and rows are filled.
enum class TorusFill { random, zero, top, bottom, alternating };

inline constexpr TorusFill kTorusFills[] = {TorusFill::random, TorusFill::zero, TorusFill::top,
                                            TorusFill::bottom, TorusFill::alternating};

inline const char* name_of(TorusFill f) {
  constexpr const char* kNames[] = {"random", "zero", "top", "bottom", "alternating"};
  return kNames[static_cast<int>(f)];
}

/// The largest primes below 2^bits that are 1 modulo 2N.
inline std::vector<u64> torus_primes(u32 count, u32 bits, u32 log_n) {
  auto all = math::ntt_primes(u64(1) << (bits - 1), u64(1) << bits, u64(2) << log_n);
  EXPECT_GE(all.size(), count);
  return {all.rbegin(), all.rbegin() + count};
}

/// A gadget plan over `count` primes below 2^bits.
inline TorusPlan gadget_plan(u32 lwe_dim, u32 glwe_dim, u32 slots, u32 log_n, u32 count, u32 bits,
                             u32 base_log, u32 digits) {
  TorusPlan plan;
  plan.lwe_dim = lwe_dim, plan.glwe_dim = glwe_dim, plan.slots = slots, plan.log_n = log_n;
  plan.log_lwe_modulus = log_n + 1;
  plan.path = NoisePath::gadget;
  plan.primes = torus_primes(count, bits, log_n);
  plan.modulus = plan.key_modulus();
  plan.base_log = base_log, plan.digits = digits;
  plan.log_switch_modulus = 15, plan.switch_base_log = 5, plan.switch_digits = 3;
  return plan;
}

/// A raising plan with Q = 2^log_modulus and T of two primes below 2^bits.
inline TorusPlan raising_plan(u32 lwe_dim, u32 glwe_dim, u32 slots, u32 log_n, u32 log_modulus,
                              u32 bits) {
  TorusPlan plan = gadget_plan(lwe_dim, glwe_dim, slots, log_n, 2, bits, 1, 1);
  plan.path = NoisePath::raising;
  plan.modulus = u64(1) << log_modulus;
  plan.base_log = 0;
  plan.log_switch_modulus = 17, plan.switch_base_log = 6, plan.switch_digits = 3;
  return plan;
}

/// A raising plan whose steps take `group` elements each, of which there are `steps`.
inline TorusPlan group_plan(u32 group, u32 steps, u32 glwe_dim, u32 log_n, u32 log_modulus,
                            u32 bits) {
  TorusPlan plan = raising_plan(group * steps, glwe_dim, 1, log_n, log_modulus, bits);
  plan.group = group;
  plan.secret = LweSecret::binary, plan.arithmetic = device::Arithmetic::approx;
  plan.log_lwe_modulus = log_modulus;
  plan.log_switch_modulus = std::min(log_modulus, log_n + 9);
  plan.switch_base_log = 2, plan.switch_digits = plan.log_switch_modulus / 2;
  return plan;
}

/// The same with so many messages a mask, whose steps add differences or take whole bundles.
inline TorusPlan packed_plan(TorusPlan plan, u32 slots, bool differences) {
  plan.slots = slots, plan.differences = differences;
  return plan;
}

/// Every arithmetic that a plan of this shape has.
inline std::vector<device::Arithmetic> kinds_of_arithmetic(const TorusPlan& plan) {
  std::vector<device::Arithmetic> out{device::Arithmetic::exact, device::Arithmetic::approx};
  // whole digits give exact products modulo one prime
  if (plan.path == NoisePath::gadget && plan.primes.size() == 2)
    out.push_back(device::Arithmetic::split);
  return out;
}

inline std::string describe(const TorusPlan& p) {
  return cat("n = ", p.lwe_dim, ", g = ", p.group, p.differences ? " by differences" : "",
             ", k = ", p.glwe_dim, ", r = ", p.slots, ", N = ", p.ring_dim(), ", q = 2^",
             p.log_lwe_modulus, p.path == NoisePath::gadget ? ", gadget " : ", raising ",
             p.base_log, " x ", p.digits, ", Q = ", p.modulus, ", ", p.primes.size(), " primes, ",
             p.secret == LweSecret::ternary ? "ternary, " : "binary, ",
             tfhe::to_string(tfhe::arithmetic_of(p)));
}

/// Everything that a blind rotation reads, on the host.
struct RotationInput {
  std::vector<i64> key;   ///< [step][key][digit][row][out][N]
  std::vector<u32> rows;  ///< [batch][n + r]
  std::vector<u64> tables, offsets;
  std::vector<u32> index;  ///< empty: table 0 for all
  u32 batch = 0, luts = 0;
  u32 outputs = 1;  ///< extracted rows of each
};

inline u64 fill_word(TorusFill fill, u64 at, u64 modulus, Rng& rng) {
  switch (fill) {
    case TorusFill::zero:
      return 0;
    case TorusFill::top:
      return modulus - 1;
    case TorusFill::bottom:
      return modulus / 2;
    case TorusFill::alternating:
      return at % 2 ? modulus - 1 : 0;
    case TorusFill::random:
      break;
  }
  return rng() % modulus;
}

/// Centred: |x| <= modulus / 2.
inline i64 fill_key(TorusFill fill, u64 at, u64 modulus, Rng& rng) {
  const i64 half = static_cast<i64>(modulus / 2);
  switch (fill) {
    case TorusFill::zero:
      return 0;
    case TorusFill::top:
      return half;
    case TorusFill::bottom:
      return -half;
    case TorusFill::alternating:
      return at % 2 ? half : -half;
    case TorusFill::random:
      break;
  }
  return static_cast<i64>(rng() % modulus) - half;
}

inline RotationInput rotation_input(const TorusPlan& plan, u32 batch, u32 luts, bool indexed,
                                    Rng& rng, TorusFill key = TorusFill::random,
                                    TorusFill rows = TorusFill::random,
                                    TorusFill tables = TorusFill::random) {
  RotationInput in;
  in.batch = batch, in.luts = luts;
  const u64 n = plan.ring_dim(), q = u64(1) << plan.log_read_modulus();
  for (u64 i = 0; i < plan.steps() * plan.key_polys() * n; ++i)
    in.key.push_back(fill_key(key, i, plan.key_modulus(), rng));
  for (u64 i = 0; i < u64(batch) * plan.read_words(); ++i)
    in.rows.push_back(static_cast<u32>(fill_word(rows, i, q, rng)));
  for (u64 i = 0; i < luts * n; ++i) in.tables.push_back(fill_word(tables, i, plan.modulus, rng));
  for (u32 i = 0; i < luts; ++i) in.offsets.push_back(fill_word(tables, i, plan.modulus, rng));
  if (indexed)
    for (u64 i = 0; i < u64(batch) * plan.slots; ++i)
      in.index.push_back(static_cast<u32>(rng() % luts));
  return in;
}

/// Entries -1, 0 and 1.
inline std::vector<i8> torus_secrets(u64 count, Rng& rng) {
  std::vector<i8> out(count);
  for (auto& s : out) s = static_cast<i8>(static_cast<int>(rng() % 3) - 1);
  return out;
}

inline random::Seed torus_seed(Rng& rng) {
  random::Seed seed;
  for (auto& byte : seed) byte = static_cast<u8>(rng());
  return seed;
}

/// A device with the kernels of one plan.
struct TorusWorld {
  TorusWorld(std::shared_ptr<device::Device> d, const TorusPlan& plan)
      : device(std::move(d)),
        stream(device->make_stream()),
        kernels(device::backend_of(*device).make_torus_kernels(plan)) {}

  template <class T>
  device::Buffer upload(const std::vector<T>& values) const {
    auto buffer = stream->allocate(values.size() * sizeof(T));
    stream->copy_in(buffer.data(), values.data(), values.size() * sizeof(T));
    return buffer;
  }
  template <class T>
  std::vector<T> download(const device::Buffer& buffer, u64 count) const {
    std::vector<T> values(count);
    stream->copy_out(values.data(), buffer.data(), count * sizeof(T));
    return values;
  }

  /// The key in the device's order; loaded in pieces of `piece` elements.
  device::Buffer load_key(const std::vector<i64>& key, u32 piece = 3) const {
    const auto& plan = kernels->plan();
    auto out = stream->allocate(kernels->bootstrap_key_bytes());
    const auto polys = upload(key);
    const u64 words = plan.key_polys() * plan.ring_dim();
    for (u32 first = 0; first < plan.steps(); first += piece)
      kernels->load_bootstrap_key(*stream, out.data(), first, std::min(piece, plan.steps() - first),
                                  polys.as<i64>() + first * words);
    stream->synchronize();
    return out;
  }

  std::vector<u64> blind_rotate(const RotationInput& in) const {
    const auto key = load_key(in.key);
    return blind_rotate(in, key);
  }
  std::vector<u64> blind_rotate(const RotationInput& in, const device::Buffer& key) const {
    const auto rows = upload(in.rows);
    const auto tables = upload(in.tables), offsets = upload(in.offsets);
    const auto index = upload(in.index);
    const u64 out_rows = u64(in.batch) * in.outputs;
    const u64 words = out_rows * kernels->plan().extracted_words();
    const auto out = upload(std::vector<u64>(words, 0xdeadbeefdeadbeefu));
    const u32 word_bytes = kernels->extracted_word_bytes();
    kernels->blind_rotate(*stream, {out.data(), kernels->extracted(out_rows), word_bytes},
                          {rows.as<const u32>(), kernels->read(in.batch)}, key.data(),
                          {tables.as<u64>(), offsets.as<u64>(), in.luts,
                           in.index.empty() ? nullptr : index.as<u32>(), in.outputs});
    if (word_bytes == sizeof(u64)) return download<u64>(out, words);
    const auto narrow = download<u32>(out, words);
    return {narrow.begin(), narrow.end()};
  }

  std::shared_ptr<device::Device> device;
  std::shared_ptr<device::Stream> stream;
  std::unique_ptr<device::TorusKernels> kernels;
};

/// The first difference between two results, or "".
template <class T>
std::string first_difference(const std::vector<T>& got, const std::vector<T>& expected) {
  if (got.size() != expected.size()) return cat(got.size(), " words, expected ", expected.size());
  for (u64 i = 0; i < got.size(); ++i)
    if (got[i] != expected[i]) return cat("word ", i, " = ", got[i], ", expected ", expected[i]);
  return "";
}

}  // namespace crenel::test
