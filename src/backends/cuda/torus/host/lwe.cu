// Key switch, samples and element-wise operations of LWE rows.
#include <bit>

#include "backends/cuda/launch.cuh"
#include "backends/cuda/torus/host/arguments.h"
#include "backends/cuda/torus/host/kernels.h"
#include "backends/cuda/torus/kernels/key_switch.cuh"
#include "backends/cuda/torus/kernels/lwe.cuh"
#include "backends/cuda/torus/tuning/key_switch.h"

namespace crenel::backend::cuda {
namespace {

using device::Work;
using random::Purpose;

auto cost_of(const char* kernel, Work work, u64 read, u64 written) {
  return [=] { return plain_record(kernel, work, read, written); };
}

template <class Word>
void run_switch(Stream& stream, torus::SwitchArgs args, const device::SwitchShape& shape) {
  const CudaStream& queue = cuda_stream(stream);
  const u32 words = shape.out_words(), processors = queue.processors();
  const u64 sums = u64(args.batch) * words * sizeof(Word);
  const device::Buffer workspace = stream.allocate(sums);
  args.sums = workspace.data();
  stream.fill_zero(args.sums, sums);
  const u64 in_bytes = u64(args.batch) * (shape.in_dim + shape.slots) * sizeof(u64);
  const std::size_t tiles =
      torus::kSwitchStages * (std::size_t(torus::kSwitchColumns) << shape.base_log) * sizeof(Word);
  const bool tiled = args.batch >= queue.tuned(Tunable::switch_rows) &&
                     shape.base_log <= torus::kTiledSwitchBaseLog &&
                     tiles <= queue.model().shared_bytes;
  const u32 columns = divide_up(words, tiled ? torus::kSwitchColumns : torus::kDirectThreads);
  const u32 rows = tiled ? divide_up(args.batch, torus::kSwitchBlockRows<Word>) : args.batch;
  args.part =
      part_of(shape.in_dim,
              divide_up(u64(processors) * queue.tuned(Tunable::switch_blocks), columns * rows), 1);
  const u32 parts = divide_up(shape.in_dim, args.part);
  if (tiled)
    launch(stream,
           cost_of("switch_tiled", Work::key_multiply, rows * shape.key_bytes() + in_bytes, sums),
           torus::switch_tiled<Word>, dim3(columns, rows, parts), torus::kSwitchThreads, tiles,
           args);
  else
    for (u32 first = 0; first < rows; first += 65535) {  // the grid's limit
      torus::SwitchArgs some = args;
      some.in += u64(first) * (shape.in_dim + shape.slots);
      some.sums = static_cast<Word*>(args.sums) + u64(first) * words;
      const u32 count = std::min(rows - first, 65535u);
      launch(
          stream,
          cost_of("switch_direct", Work::key_multiply,
                  u64(count) * shape.in_dim * shape.digits * words * sizeof(Word) + in_bytes, sums),
          torus::switch_direct<Word>, dim3(columns, count, parts), torus::kDirectThreads, 0, some);
    }
  launch(stream, cost_of("switch_finish", Work::elementwise, sums + in_bytes, sums),
         torus::switch_finish<Word>, dim3(divide_up(u64(args.batch) * words, 256)), 256, 0, args);
}

// Arguments with the state of a secret seed, wiped at the end.
struct SampleLwe {
  torus::SampleLweArgs args = {};
  ~SampleLwe() { random::secure_zero(&args, sizeof args); }
};

template <bool Sample>
void run_rows(Stream& stream, const char* name, const torus::SampleLweArgs& args) {
  const u64 bytes = args.rows * (args.dim + args.slots) * (args.log_modulus <= 32 ? 4 : 8);
  const auto cost = cost_of(name, Work::sampling, args.rows * args.slots * sizeof(u64), bytes);
  if (args.log_modulus <= 32)
    launch(stream, cost, torus::lwe_rows<u32, Sample>, dim3(divide_up(args.rows, 4)), 128, 0, args);
  else
    launch(stream, cost, torus::lwe_rows<u64, Sample>, dim3(divide_up(args.rows, 4)), 128, 0, args);
}

}  // namespace

void CudaTorusKernels::allow_large_tiles() const {
  const int most = static_cast<int>(device_->model().shared_bytes);
  CRENEL_CUDA_TRY(cudaFuncSetAttribute(torus::switch_tiled<u32>,
                                       cudaFuncAttributeMaxDynamicSharedMemorySize, most));
  CRENEL_CUDA_TRY(cudaFuncSetAttribute(torus::switch_tiled<u64>,
                                       cudaFuncAttributeMaxDynamicSharedMemorySize, most));
}

void CudaTorusKernels::do_key_switch(Stream& stream, const SwitchShape& shape, const LweView& out,
                                     const ConstLweView& in, const ConstLweView& key) {
  if (shape.products) return switch_by_products(stream, shape, out, in, key);
  torus::SwitchArgs args = {};
  args.out = out.as<u32>();
  args.in = in.as<const u64>();
  args.key = key.data;
  args.batch = static_cast<u32>(in.shape.rows);
  fill_shape(args, shape);
  if (key.word_bytes == 4)
    run_switch<u32>(stream, args, shape);
  else
    run_switch<u64>(stream, args, shape);
}

void CudaTorusKernels::do_linear(Stream& stream, const LweView& view,
                                 std::span<const LweTerm> terms, u32 constant) {
  u32* const out = view.as<u32>();
  const u64 count = view.shape.rows * view.shape.words();
  // The addends that are the output itself must be read before anything is written: one factor.
  std::vector<LweTerm> all{{out, 0}};
  for (const LweTerm& t : terms) {
    if (t.data == out)
      all[0].factor =
          static_cast<i64>(static_cast<u64>(all[0].factor) + static_cast<u64>(t.factor));
    else
      all.push_back(t);
  }
  // More terms than one launch takes: the sum so far is the first term of the next.
  for (std::size_t done = 1; done == 1 || done < all.size();) {
    torus::LinearArgs args = {};
    args.out = out;
    args.mask = 0xffffffffu >> (32 - view.shape.log_modulus);
    args.dim = view.shape.dim;
    args.words = static_cast<u32>(view.shape.words());
    args.count = count;
    const i64 own = done == 1 ? all[0].factor : 1;
    if (done == 1) args.constant = constant;
    if (own != 0) {
      args.in[args.terms] = out;
      args.factor[args.terms++] = static_cast<u32>(own);
    }
    for (; done < all.size() && args.terms < torus::kMaxTerms; ++done) {
      args.in[args.terms] = all[done].data;
      args.factor[args.terms++] = static_cast<u32>(all[done].factor);
    }
    launch(stream, cost_of("lwe_linear", Work::elementwise, args.terms * count * 4, count * 4),
           torus::lwe_linear, dim3(divide_up(count, torus::kLweThreads)), torus::kLweThreads, 0,
           args);
    if (all.size() == 1) break;
  }
}

void CudaTorusKernels::do_sums(Stream& stream, const LweView& view, std::span<const LweSum> sums) {
  const u64 words = view.shape.words(), count = view.shape.rows / sums.size() * words;
  torus::SumsArgs args = {};
  args.count = count;
  args.mask = 0xffffffffu >> (32 - view.shape.log_modulus);
  args.dim = view.shape.dim;
  args.words = static_cast<u32>(words);
  u32 taken = 0, terms = 0;  // of this launch
  const auto flush = [&](u32* out) {
    args.out = out;
    launch(stream,
           cost_of("lwe_sums", Work::elementwise, terms * count * sizeof(u32),
                   taken * count * sizeof(u32)),
           torus::lwe_sums, dim3(divide_up(count, torus::kLweThreads), taken), torus::kLweThreads,
           0, args);
    taken = terms = 0;
  };
  const auto add = [&](const LweRowsTerm& term) {
    args.in[terms] = term.data;
    args.row_step[terms] = term.row_step * words;
    args.factor[terms++] = static_cast<u32>(term.factor);
  };
  for (u64 k = 0; k < sums.size(); ++k) {
    const LweSum& sum = sums[k];
    u32* const out = view.as<u32>() + k * count;
    const bool fits = taken < torus::kMaxSums && terms + sum.terms.size() <= torus::kMaxSumTerms;
    if (!fits && taken != 0) flush(out - taken * count);
    args.constant[taken] = sum.constant;
    for (const LweRowsTerm& term : sum.terms) {
      if (terms == torus::kMaxSumTerms) {  // more than a launch takes: go on with the sum so far
        args.terms_end[taken++] = static_cast<u8>(terms);
        flush(out);
        args.constant[taken] = 0;
        add({out});
      }
      add(term);
    }
    args.terms_end[taken++] = static_cast<u8>(terms);
  }
  flush(view.as<u32>() + (sums.size() - taken) * count);
}

void CudaTorusKernels::do_mod_switch(Stream& stream, const LweView& out, const ConstLweView& in) {
  const u64 count = in.shape.rows * in.shape.words();
  launch(stream, cost_of("lwe_mod_switch", Work::elementwise, count * 4, count * 4),
         torus::lwe_mod_switch, dim3(divide_up(count, torus::kLweThreads)), torus::kLweThreads, 0,
         out.as<u32>(), out.shape.log_modulus, in.as<const u32>(), in.shape.log_modulus, count);
}

void CudaTorusKernels::do_extract(Stream& stream, const LweView& out, const device::RingView& in,
                                  const u32* positions) {
  torus::ExtractArgs args = {};
  args.out = out.as<u32>();
  args.b = in.polys;
  args.a = in.polys + (u64(1) << in.log_degree);
  args.positions = positions;
  args.count = out.shape.rows * out.shape.words();
  args.dim = out.shape.dim;
  args.log_stride = in.log_degree - static_cast<u32>(std::bit_width(out.shape.dim) - 1);
  args.log_modulus = out.shape.log_modulus;
  args.modulus = in.modulus;
  launch(stream, cost_of("lwe_extract", Work::elementwise, args.count * 4, args.count * 4),
         torus::lwe_extract, dim3(divide_up(args.count, torus::kLweThreads)), torus::kLweThreads, 0,
         args);
}

void CudaTorusKernels::do_embed(Stream& stream, i64* out, u32 log_degree, u32 count,
                                const ConstLweView& in, const u32* rows) {
  torus::EmbedArgs args = {};
  args.out = out;
  args.in = in.as<const u32>();
  args.rows = rows;
  args.count = u64(count) << log_degree;
  args.dim = in.shape.dim;
  args.log_stride = log_degree - static_cast<u32>(std::bit_width(in.shape.dim) - 1);
  args.log_degree = log_degree;
  args.log_modulus = in.shape.log_modulus;
  launch(stream,
         cost_of("lwe_embed", Work::elementwise, in.shape.rows * in.shape.words() * 4,
                 2 * args.count * sizeof(i64)),
         torus::lwe_embed, dim3(divide_up(args.count, torus::kLweThreads)), torus::kLweThreads, 0,
         args);
}

void CudaTorusKernels::do_sample_lwe(Stream& stream, const LweView& out, const RowSeed& masks,
                                     const RowSeed& errors, const i8* secrets,
                                     const u64* messages) {
  const auto& shape = out.shape;
  // Made in place: a temporary would keep the secret state.
  SampleLwe sample{{out.data, shape.rows, shape.dim, shape.slots, shape.log_modulus,
                    random::chacha20_state(masks.seed, {Purpose::uniform, masks.serial}),
                    random::chacha20_state(errors.seed, {Purpose::error, errors.serial}), secrets,
                    messages}};
  run_rows<true>(stream, "sample_lwe", sample.args);
}

void CudaTorusKernels::do_expand_lwe(Stream& stream, const LweView& out, const RowSeed& masks,
                                     const u64* bodies) {
  torus::SampleLweArgs args = {};
  args.out = out.data;
  args.rows = out.shape.rows;
  args.dim = out.shape.dim;
  args.slots = out.shape.slots;
  args.log_modulus = out.shape.log_modulus;
  args.mask = random::chacha20_state(masks.seed, {Purpose::uniform, masks.serial});
  args.values = bodies;
  run_rows<false>(stream, "expand_lwe", args);
}

void CudaTorusKernels::do_phase(Stream& stream, u32* out, const ConstLweView& in,
                                const i8* secrets) {
  const auto& shape = in.shape;
  const torus::PhaseArgs args = {out,         in.as<const u32>(),
                                 shape.rows,  shape.dim,
                                 shape.slots, 0xffffffffu >> (32 - shape.log_modulus),
                                 secrets};
  launch(stream,
         cost_of("lwe_phase", Work::elementwise, shape.rows * shape.words() * 4,
                 shape.rows * shape.slots * 4),
         torus::lwe_phase, dim3(divide_up(shape.rows, 4)), 128, 0, args);
}

}  // namespace crenel::backend::cuda
