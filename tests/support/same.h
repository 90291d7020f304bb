// Runs one operation on several devices and compares every byte of memory that it was given.
#pragma once

#include <cstring>
#include <functional>

#include "support/context.h"
#include "support/poly.h"

namespace crenel::test {

template <class W>
using Views = std::vector<PolyView<W>>;
/// Queues the operation; views are in the order of the polynomials.
template <class W>
using Operation = std::function<void(Context<W>&, const Views<W>&)>;

/// Uploads `polys`, runs, downloads all of them again.
template <class W>
std::vector<std::vector<W>> run_on(Context<W>& context, const std::vector<TestPoly<W>>& polys,
                                   const Operation<W>& operation) {
  auto& stream = *context.stream;
  std::vector<device::Buffer> buffers;
  Views<W> views;
  for (const auto& p : polys) {
    buffers.push_back(stream.allocate(p.words.size() * sizeof(W)));
    stream.copy_in(buffers.back().data(), p.words.data(), p.words.size() * sizeof(W));
    views.push_back(p.at(buffers.back().template as<W>()));
  }
  operation(context, views);
  stream.synchronize();
  std::vector<std::vector<W>> result;
  for (std::size_t i = 0; i < polys.size(); ++i) {
    result.emplace_back(polys[i].words.size());
    stream.copy_out(result[i].data(), buffers[i].data(), result[i].size() * sizeof(W));
  }
  return result;
}

/// "batch 0 component 1 limb 2 coefficient 3" of a word of the allocation, or "outside the view".
template <class W>
std::string position_of(const TestPoly<W>& p, std::size_t word) {
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

template <class W>
testing::AssertionResult same_words(const TestPoly<W>& p, const std::vector<W>& got,
                                    const std::vector<W>& expected) {
  if (got.size() == expected.size() &&
      (got.empty() || std::memcmp(got.data(), expected.data(), got.size() * sizeof(W)) == 0))
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
template <class W>
void expect_all_same(Pair<W>& pair, const std::vector<TestPoly<W>>& polys, std::size_t outputs,
                     const std::vector<std::pair<const char*, Operation<W>>>& operations,
                     const Operation<W>& specification) {
  const auto expected = run_on<W>(pair.reference, polys, specification);
  for (const auto& [name, operation] : operations) {
    const auto got = run_on<W>(pair.candidate, polys, operation);
    for (std::size_t i = 0; i < polys.size(); ++i) {
      SCOPED_TRACE(
          cat(name, i < outputs ? ", output " : ", input ", i < outputs ? i : i - outputs));
      EXPECT_TRUE(same_words<W>(polys[i], got[i], i < outputs ? expected[i] : polys[i].words));
    }
  }
}

template <class W>
void expect_same(Pair<W>& pair, const std::vector<TestPoly<W>>& polys, std::size_t outputs,
                 const Operation<W>& operation, const Operation<W>& specification) {
  expect_all_same<W>(pair, polys, outputs, {{"operation", operation}}, specification);
}

template <class W>
void expect_same(Pair<W>& pair, const std::vector<TestPoly<W>>& polys, std::size_t outputs,
                 const Operation<W>& operation) {
  expect_same<W>(pair, polys, outputs, operation, operation);
}

}  // namespace crenel::test
