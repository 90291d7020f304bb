// Sums of products with plaintexts.
#include <algorithm>
#include <vector>

#include "backends/cuda/launch.cuh"
#include "backends/cuda/poly/host/convert_view.h"
#include "backends/cuda/poly/host/kernels.h"
#include "backends/cuda/poly/host/shared_sums.h"

namespace crenel::backend::cuda {
namespace {

using Grid = device::PlainGrid;
using View = ring::PolyView<u32>;

// One launch: giant steps [first, first + args.giants) and the columns of some baby steps.
struct Launch {
  PlainArgs args;
  bool few;   ///< giant steps, four values a thread; otherwise two
  bool full;  ///< a plaintext word a value
  u32 steps;
  u32 baby[kLaunchBabies];
  GridColumn column[kLaunchBabies];
  u64 products;  ///< entries
};

// The limbs of the keys of one launch, each set of them once.
class KeyForms {
 public:
  u32 count() const { return count_; }
  const rns::LimbSet& limbs(u32 form) const { return *limbs_[form]; }
  /// Its number, kLaunchKeyForms where there is no room for another.
  u32 add(const rns::LimbSet& limbs) {
    for (u32 f = 0; f < count_; ++f)
      if (*limbs_[f] == limbs) return f;
    if (count_ == kLaunchKeyForms) return kLaunchKeyForms;
    limbs_[count_] = &limbs;
    return count_++;
  }
  void clear() { count_ = 0; }

 private:
  const rns::LimbSet* limbs_[kLaunchKeyForms];
  u32 count_ = 0;
};

// f(launch) for launches that cover the grid; a column without entries in a launch is left out. The
// first launch of some giant steps writes the outputs, also where no entry is there. takes(b): a
// launch takes baby step b beside those that it took, or is over; begin() begins another.
template <class Takes, class Begin, class F>
void for_launches(const Grid& plain, std::span<const View> out, u32 log_n, const Takes& takes,
                  const Begin& begin, const F& f) {
  const u32 shift = log_n - plain.log_words;
  for (u32 first = 0, count = 0; first < plain.giants; first += count) {
    count = std::min(kManyGiants, plain.giants - first);
    Launch l = {};
    // Threads of four values would meet two words where each is repeated once.
    l.few = count <= kFewGiants && shift != 1;
    l.full = shift == 0;
    for (u32 g = 0; g < count; ++g) l.args.out[g] = poly(out[first + g]);
    l.args.data = plain.entry(first, 0);
    l.args.giant_stride = plain.babies * plain.entry_words();
    l.args.log_words = plain.log_words;
    l.args.giants = count;
    const auto flush = [&] {
      f(static_cast<const Launch&>(l));
      l.args.add = 1, l.steps = 0, l.products = 0;
      begin();
    };
    begin();
    for (u32 b = 0; b < plain.babies; ++b) {
      GridColumn column = {b * plain.entry_words(), 0};
      for (u32 g = 0; g < count; ++g) column.giants |= u32(plain.has(first + g, b)) << g;
      if (column.giants == 0) continue;
      if (l.steps == kLaunchBabies) flush();
      if (!takes(b)) {
        flush();
        takes(b);
      }
      l.baby[l.steps] = b;
      l.column[l.steps++] = column;
      for (u32 g = 0; g < count; ++g) l.products += column.giants >> g & 1;
    }
    if (l.steps != 0 || l.args.add == 0) flush();
  }
}

template <u32 Giants>
constexpr u32 kTile = kPlainThreads * (kPlainSums / (2 * Giants));

// Values of a block.
u32 tile_of(const Launch& l) { return l.few ? kTile<kFewGiants> : kTile<kManyGiants>; }

dim3 grid_of(const Launch& l, u64 ring_dim, u32 y, u32 limbs) {
  return {divide_up(ring_dim, tile_of(l)), y, limbs};
}

// What the products and the outputs of a launch move: `values` of one component, and the plaintexts
// once for each of `readers` blocks a tile, at least a sector each.
void count_products(device::LaunchRecord& r, const Launch& l, const Grid& plain, u32 log_n,
                    u64 values, u32 components, u32 readers, u32 tile) {
  const u32 words = tile >> (log_n - plain.log_words);
  const u64 tile_bytes = std::max<u64>(words * sizeof(u32), traffic::kSector);
  const u64 limb_bytes =
      l.full ? sizeof(u32) << log_n : divide_up(u64(1) << log_n, tile) * tile_bytes;
  const u64 plain_bytes = l.products * plain.limbs.size() * readers * limb_bytes;
  const u64 out_bytes = l.args.giants * components * values * sizeof(u32);
  r.limbs = plain.limbs.size();
  r.read_bytes += plain_bytes + (l.args.add ? out_bytes : 0);
  if (l.full)
    r.streamed_bytes += plain_bytes;
  else
    r.repeated_bytes += plain_bytes;  // short, and read for every run of equal values
  r.written_bytes += out_bytes;
  r.multiply_adds += l.products * components * values;
}

// What a launch of hoisted sums states; `switched` of its steps have keys.
device::LaunchRecord hoisted_record(const Launch& l, const Grid& plain,
                                    const ring::PolyShape& shape, u32 window, u32 switched) {
  device::LaunchRecord r;
  r.kernel = "hoisted_sums";
  r.work = traffic::Work::key_multiply;
  r.polys = 2 * shape.batch * l.args.giants;
  const u64 values = (u64(plain.limbs.size()) << shape.log_n) * shape.batch;
  const u64 lifted = (u64(window) << shape.log_n) * shape.batch;
  const u64 products = u64(switched) * shape.components * 2 * values;
  const u64 lifts = (switched + 2 * (l.steps - switched)) * lifted;
  const u64 once = values * shape.components + (switched == l.steps ? 1 : 2) * lifted;
  r.streamed_bytes = products * sizeof(u32);
  r.read_bytes = (products + products / 2 + lifts) * sizeof(u32);
  r.repeated_bytes = (products / 2 + lifts - std::min(products / 2 + lifts, once)) * sizeof(u32);
  r.multiply_adds = products + lifts;
  count_products(r, l, plain, shape.log_n, values, 2, shape.batch, tile_of(l));
  return r;
}

// The same of a batch whose blocks share what they read. Of a digit a block asks for `granules`
// granules: the others are in the first-level cache when it comes to them.
device::LaunchRecord shared_record(const Launch& l, const Grid& plain, const ring::PolyShape& shape,
                                   u32 window, u32 switched, const SharedSums& shared,
                                   u32 granules) {
  device::LaunchRecord r;
  r.kernel = "shared_sums";
  r.work = traffic::Work::key_multiply;
  r.polys = 2 * shape.batch * l.args.giants;
  constexpr u32 kWarps = kPlainThreads / 32;
  const u64 values = (u64(plain.limbs.size()) << shape.log_n) * shape.batch;
  const u64 lifted = (u64(window) << shape.log_n) * shape.batch;
  const u64 products = u64(switched) * shape.components * values;
  const u64 lifts = (switched + 2 * (l.steps - switched)) * lifted;
  const u64 key_bytes = 2 * products / shape.batch * sizeof(u32);
  const u64 once =
      (values * shape.components + (switched == l.steps ? 1 : 2) * lifted) * sizeof(u32);
  const u64 digit_bytes = (products + lifts) * granules / (kWarps * l.steps) * sizeof(u32);
  r.streamed_bytes = key_bytes;
  r.read_bytes = key_bytes * shared.groups + digit_bytes;
  r.repeated_bytes = r.read_bytes - key_bytes - std::min(digit_bytes, once);
  r.multiply_adds = 2 * products + lifts;
  count_products(r, l, plain, shape.log_n, values, 2, shared.groups, 32 * shared.values);
  return r;
}

void launch_shared(Stream& stream, const Launch& l, const Grid& plain, const HoistedArgs& hoisted,
                   const ring::PolyShape& shape, u32 switched, const SharedSums& shared) {
  std::vector<u64> elements;
  for (u32 s = 0; s < l.steps; ++s) elements.push_back(hoisted.step[s].element);
  SharedSumArgs args = {hoisted, shape.batch, shared.groups, shared.each, kNoWalk};
  if (cuda_stream(stream).tuned(Tunable::sums_walk) != 0)
    args.log_stride = log_stride_of(elements, shape.log_n, shared.values);
  const auto cost = [&] {
    return shared_record(l, plain, shape, hoisted.window, switched, shared,
                         distinct_granules(elements, shape.log_n, shared.values, args.log_stride));
  };
  const u32 tiles = divide_up(shape.ring_dim(), kPlainThreads * shared.values);
  launch(stream, cost, shared.kernel, dim3(tiles * shared.groups, 1, plain.limbs.size()),
         kPlainThreads, 0, args);
}

auto sums_kernel(const Launch& l) {
  if (l.few) return l.full ? plain_sums<kFewGiants, true> : plain_sums<kFewGiants, false>;
  return l.full ? plain_sums<kManyGiants, true> : plain_sums<kManyGiants, false>;
}

template <u32 Digits>
auto hoisted_kernel(const Launch& l) {
  if (l.few)
    return l.full ? hoisted_sums<kFewGiants, true, Digits>
                  : hoisted_sums<kFewGiants, false, Digits>;
  return l.full ? hoisted_sums<kManyGiants, true, Digits>
                : hoisted_sums<kManyGiants, false, Digits>;
}

auto hoisted_kernel(const Launch& l, u32 digits) {
  switch (digits) {
    case 1:
      return hoisted_kernel<1>(l);
    case 2:
      return hoisted_kernel<2>(l);
    case 3:
      return hoisted_kernel<3>(l);
    case 4:
      return hoisted_kernel<4>(l);
    case 5:
      return hoisted_kernel<5>(l);
    default:
      return hoisted_kernel<0>(l);
  }
}

}  // namespace

void CudaPolyKernels::do_plain_multiply_sum(Stream& stream, std::span<const View> out,
                                            std::span<const ConstView> in, const Grid& plain) {
  if (out.empty()) return;
  const ring::PolyShape shape = out[0].shape;
  const u32 limbs = plain.limbs.size(), pairs = (shape.components + 1) / 2;
  const auto takes = [](u32) { return true; };
  for_launches(
      plain, out, shape.log_n, takes, [] {},
      [&](const Launch& l) {
        PlainSumArgs args = {};
        args.primes = tables_.primes;
        args.plain = l.args;
        args.log_n = shape.log_n;
        args.components = shape.components;
        args.steps = l.steps;
        args.prime = prime_bytes(plain.limbs);
        for (u32 s = 0; s < l.steps; ++s) {
          args.in[s] = poly(in[l.baby[s]]);
          args.column[s] = l.column[s];
        }
        const auto cost = [&] {
          device::LaunchRecord r;
          r.kernel = "plain_sums";
          r.work = traffic::Work::elementwise;
          r.polys = shape.polys() * l.args.giants;
          const u64 values = (u64(limbs) << shape.log_n) * shape.batch;
          r.read_bytes = l.steps * shape.components * values * sizeof(u32);
          count_products(r, l, plain, shape.log_n, values, shape.components, shape.batch * pairs,
                         tile_of(l));
          return r;
        };
        launch(stream, cost, sums_kernel(l),
               grid_of(l, shape.ring_dim(), shape.batch * pairs, limbs), kPlainThreads, 0, args);
      });
}

void CudaPolyKernels::do_hoisted_plain_sums(Stream& stream, std::span<const View> out,
                                            ConstView digits, ConstView b, ConstView a,
                                            std::span<const Key> keys,
                                            std::span<const u64> elements, const Grid& plain,
                                            const Scalars& special, u32 first_digit) {
  if (out.empty()) return;
  const ring::PolyShape shape = digits.shape;
  const u32 limbs = plain.limbs.size(), window = b.limbs.size();
  const CudaStream& queue = cuda_stream(stream);
  KeyForms forms;
  const auto has_key = [&](u32 baby) { return elements[baby] != 1 || a.data == nullptr; };
  const auto takes = [&](u32 baby) {
    return !has_key(baby) || forms.add(keys[baby].pairs.limbs) != kLaunchKeyForms;
  };
  for_launches(
      plain, out, shape.log_n, takes, [&] { forms.clear(); },
      [&](const Launch& l) {
        HoistedArgs args = {};
        args.primes = tables_.primes;
        args.plain = l.args;
        args.digits = poly(digits);
        args.b = poly(b);
        if (a.data != nullptr) args.a = poly(a);
        args.turned = a.data == nullptr;
        args.log_n = shape.log_n;
        args.count = shape.components;
        args.window = window;
        args.steps = l.steps;
        args.prime = prime_bytes(plain.limbs);
        std::copy_n(special.low, window, args.special);
        u32 switched = 0;
        for (u32 s = 0; s < l.steps; ++s) {
          const u32 baby = l.baby[s];
          HoistedStep& step = args.step[s];
          step.column = l.column[s];
          step.element = static_cast<u32>(elements[baby]);
          if (!has_key(baby)) continue;
          step.key = key_poly(keys[baby], first_digit);
          step.form = forms.add(keys[baby].pairs.limbs);
          ++switched;
        }
        for (u32 form = 0; form < forms.count(); ++form)
          args.in_key[form] = position_bytes(plain.limbs, forms.limbs(form));
        const SharedSums shared = shared_sums_for(l.args.giants, args.count, shape.batch,
                                                  1u << (shape.log_n - plain.log_words));
        if (shared.kernel != nullptr && l.steps != 0 && queue.on(Optimisation::shared_keys))
          return launch_shared(stream, l, plain, args, shape, switched, shared);
        const auto cost = [&] { return hoisted_record(l, plain, shape, window, switched); };
        launch(stream, cost, hoisted_kernel(l, args.count),
               grid_of(l, shape.ring_dim(), shape.batch, limbs), kPlainThreads, 0, args);
      });
}

}  // namespace crenel::backend::cuda
