// Runs one operation on several devices and compares every byte of memory that it was given.
#pragma once

#include <cstring>
#include <functional>

#include "support/context.h"
#include "support/poly.h"

namespace crenel::test {

using Views = std::vector<PolyView<u32>>;
/// Queues the operation; views are in the order of the polynomials.
using Operation = std::function<void(Context&, const Views&)>;

/// Memory for the words of a polynomial, padding included: what surrounds the view are limbs, too.
inline device::Buffer memory_for(device::Stream& stream, const TestPoly& p) {
  const u32 log_n = p.view.shape.log_n;
  const u64 limbs = p.view.component_stride >> log_n;
  const u64 before = (p.offset % p.view.component_stride) >> log_n;
  if (limbs > ring::kMaxLimbs || limbs == 0) return stream.allocate(p.words.size() * sizeof(u32));
  LimbSet row;
  for (u64 l = 0; l < limbs; ++l)
    row.push_back(l >= before && l - before < p.view.limbs.size()
                      ? p.view.limbs[static_cast<u32>(l - before)]
                      : static_cast<u32>(l));
  return stream.allocate_limbs(
      row, {.rows = p.words.size() / p.view.component_stride, .limb_bytes = sizeof(u32) << log_n});
}

/// Uploads `polys`, runs, downloads all of them again.
inline std::vector<std::vector<u32>> run_on(Context& context, const std::vector<TestPoly>& polys,
                                            const Operation& operation) {
  auto& stream = *context.stream;
  std::vector<device::Buffer> buffers;
  Views views;
  for (const auto& p : polys) {
    buffers.push_back(memory_for(stream, p));
    stream.copy_in(buffers.back().data(), p.words.data(), p.words.size() * sizeof(u32));
    views.push_back(p.at(buffers.back().as<u32>()));
  }
  operation(context, views);
  stream.synchronize();
  std::vector<std::vector<u32>> result;
  for (std::size_t i = 0; i < polys.size(); ++i) {
    result.emplace_back(polys[i].words.size());
    stream.copy_out(result[i].data(), buffers[i].data(), result[i].size() * sizeof(u32));
  }
  return result;
}

/// "batch 0 component 1 limb 2 coefficient 3" of a word of the allocation, or "outside the view".
inline std::string position_of(const TestPoly& p, std::size_t word) {
  const auto& v = p.view;
  for (u32 b = 0; b < v.shape.batch; ++b)
    for (u32 c = 0; c < v.shape.components; ++c) {
      const u64 start = p.offset + b * v.batch_stride + c * v.component_stride;
      if (word < start || word >= start + (u64(v.limbs.size()) << v.shape.log_n)) continue;
      const u64 l = (word - start) >> v.shape.log_n;
      return cat("batch ", b, " component ", c, " limb ", l, " (prime id ", v.limbs[u32(l)],
                 ") coefficient ", (word - start) & (v.ring_dim() - 1));
    }
  return cat("word ", word, " outside the view");
}

inline testing::AssertionResult same_words(const TestPoly& p, const std::vector<u32>& got,
                                           const std::vector<u32>& expected) {
  if (got.size() == expected.size() &&
      (got.empty() || std::memcmp(got.data(), expected.data(), got.size() * sizeof(u32)) == 0))
    return testing::AssertionSuccess();
  std::size_t wrong = 0, first = got.size();
  for (std::size_t i = 0; i < got.size(); ++i)
    if (got[i] != expected[i]) {
      if (wrong++ == 0) first = i;
    }
  return testing::AssertionFailure()
         << wrong << " of " << got.size() << " words differ, first at " << position_of(p, first)
         << ": got " << got[first] << ", expected " << expected[first]
         << "; repeat with CRENEL_SEED=" << run_seed();
}

/// The first `outputs` polynomials may change, the others must not. Every one of `operations` on
/// the candidate must give, byte for byte and around the views too, what `specification` gives on
/// ref.
inline void expect_all_same(Pair& pair, const std::vector<TestPoly>& polys, std::size_t outputs,
                            const std::vector<std::pair<const char*, Operation>>& operations,
                            const Operation& specification) {
  const auto expected = run_on(pair.reference, polys, specification);
  for (const auto& [name, operation] : operations) {
    const auto got = run_on(pair.candidate, polys, operation);
    for (std::size_t i = 0; i < polys.size(); ++i) {
      SCOPED_TRACE(
          cat(name, i < outputs ? ", output " : ", input ", i < outputs ? i : i - outputs));
      EXPECT_TRUE(same_words(polys[i], got[i], i < outputs ? expected[i] : polys[i].words));
    }
  }
}

inline void expect_same(Pair& pair, const std::vector<TestPoly>& polys, std::size_t outputs,
                        const Operation& operation, const Operation& specification) {
  expect_all_same(pair, polys, outputs, {{"operation", operation}}, specification);
}

inline void expect_same(Pair& pair, const std::vector<TestPoly>& polys, std::size_t outputs,
                        const Operation& operation) {
  expect_same(pair, polys, outputs, operation, operation);
}

}  // namespace crenel::test
