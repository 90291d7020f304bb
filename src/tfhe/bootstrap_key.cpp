// The bootstrapping key: common-mask GGSW encryptions of [s_i = 1] and [s_i = -1] for every slot,
// made in batches by the kernels of the ring. With k masks, r bodies and g a digit's weight, row
// t < k of the k + r rows of a digit is a sample of zero whose body j additionally gets -m_j S_j,t
// g, row k + i one whose body i gets m_i g: the phase of row t under slot j is then -m_j S_j,t g,
// that of row k + i is m_i g for slot i and zero for the others. Of sets with groups m is [s = S],
// a key for each of the 2^g values S of a group, or for all but 0 (plan.differences); keys of
// smaller groups are sums of these.
#include <algorithm>
#include <optional>

#include "crenel/core/error.h"
#include "crenel/core/watch.h"
#include "tfhe/keygen.h"
#include "tfhe/params/plan.h"

namespace crenel::tfhe {
namespace {

using ConstView = ring::PolyView<const u32>;
using ring::Domain;
using ring::LimbSet;
using ring::PolyShape;
using View = ring::PolyView<u32>;

// Polynomials (times primes) of one chunk: below the limit of a CUDA grid dimension, and 64 MiB of
// a key at N = 512.
constexpr u64 kChunkPolys = 32768;
// Chunks, at least, where somebody is told how far the key is.
constexpr u32 kReports = 32;

// [s = set] for the elements of a group.
i64 indicator(const SecretKeys& secret, u32 slot, u32 first, u32 group, u32 set) {
  i64 m = 1;
  for (u32 l = 0; l < group; ++l) {
    const i64 s = secret.lwe(slot, first + l), bit = set >> l & 1;
    m *= bit * s + (1 - bit) * (1 - s);
  }
  return m;
}

// A chunk of steps, as keys are made. "Blocks" are the (step, key, digit) of it; a block has k + r
// rows.
class Chunk {
 public:
  Chunk(const Context::State& home, device::TorusKernels& torus, u32 first, u32 count)
      : home_(home),
        torus_(torus),
        plan_(made_plan(torus.plan())),
        first_(first),
        count_(count),
        limbs_(LimbSet::range(0, static_cast<u32>(plan_.primes.size()))),
        rows_(blocks() * plan_.polys()),
        samples_(home.stream->allocate(u64(rows_) * plan_.polys() * poly_words() * sizeof(u32))) {}

  u32 blocks() const { return count_ * blocks_a_step(); }
  u64 poly_words() const { return u64(limbs_.size()) << plan_.log_n; }
  u64 body_words() const { return u64(rows_) * plan_.slots * poly_words(); }
  u64 first_row() const { return u64(first_) * blocks_a_step() * plan_.polys(); }

  void expand_masks(const random::Seed& seed) {
    home_.poly->sample_uniform(*home_.stream, all().components(0, plan_.glwe_dim), seed,
                               {random::Purpose::uniform, first_row() * plan_.glwe_dim});
  }

  /// `bodies`: device memory, [row][slot][prime][N].
  void set_bodies(const u32* bodies) {
    const std::size_t row = plan_.slots * poly_words() * sizeof(u32);
    home_.stream->copy_rows(all().components(plan_.glwe_dim, plan_.slots).data,
                            plan_.polys() * poly_words() * sizeof(u32), bodies, row, row, rows_);
  }

  void load(void* key) {
    auto& stream = *home_.stream;
    if (torus_.plan().group != plan_.group) return load_sums(key);
    device::Buffer lifted =
        stream.allocate((u64(rows_) * plan_.polys() << plan_.log_n) * sizeof(i64));
    home_.poly->lift_signed(stream, lifted.as<i64>(), all());
    torus_.load_bootstrap_key(stream, key, first_, count_, lifted.as<const i64>());
  }

  /// Bodies <mask, S> + message + error, coefficient form; the masks must have been expanded.
  device::Buffer encrypt(SecretKeys& secret) {
    auto& stream = *home_.stream;
    auto& poly = *home_.poly;
    const u32 k = plan_.glwe_dim, r = plan_.slots;
    device::Buffer masks_memory = stream.allocate(u64(rows_) * k * poly_words() * sizeof(u32));
    const View masks(masks_memory.as<u32>(), shape(k, rows_), limbs_, Domain::eval);
    poly.ntt(stream, masks, all().components(0, k));

    device::Buffer memory = stream.allocate(body_words() * sizeof(u32), true);
    const View bodies(memory.as<u32>(), shape(r, rows_), limbs_, Domain::eval);
    const ConstView s = secret.glwe();
    for (u32 j = 0; j < r; ++j)
      for (u32 t = 0; t < k; ++t) {
        const View body = bodies.components(j, 1);
        const ConstView mask = masks.components(t, 1), key = s.rows(j, 1).components(t, 1);
        if (t == 0)
          poly.mul(stream, body, mask, key);
        else
          poly.mul_add(stream, body, mask, key);
      }
    add_messages(bodies, secret);
    View coefficients = bodies;
    coefficients.domain = Domain::coeff;
    poly.intt(stream, coefficients, bodies);

    device::Buffer noise = stream.allocate(body_words() * sizeof(u32), true);
    const View errors(noise.as<u32>(), shape(r, rows_), limbs_, Domain::coeff);
    auto& source = secret.source();
    poly.sample_error(stream, errors, source.seed(),
                      source.next(random::Purpose::error, u64(rows_) * r));
    // Only the sum leaves secret memory.
    device::Buffer out = stream.allocate(body_words() * sizeof(u32));
    const View sum(out.as<u32>(), shape(r, rows_), limbs_, Domain::coeff);
    poly.add(stream, sum, coefficients, errors);
    return out;
  }

 private:
  // Keys of smaller groups: that of S' for the j-th part of a group is the sum of the keys of all S
  // whose j-th part is S', reduced modulo T as any key is, so that it transforms as exactly.
  void load_sums(void* key) {
    auto& stream = *home_.stream;
    const u32 small = torus_.plan().group, parts = plan_.group / small;
    const u32 keys = torus_.plan().keys_per_step(), first_set = plan_.first_set();
    const u32 square = plan_.polys() * plan_.polys();
    const u64 block = square * poly_words();
    device::Buffer sums = stream.allocate(count_ * parts * keys * block * sizeof(u32));
    const auto blocks_of = [&](u32* memory, u32 at, u32 stride) {
      View v(memory + at * block, PolyShape{plan_.log_n, square, count_}, limbs_, Domain::coeff);
      v.batch_stride = stride * block;
      return v;
    };
    for (u32 part = 0; part < parts; ++part)
      for (u32 at = 0; at < keys; ++at) {
        const u32 set = first_set + at;
        const View sum = blocks_of(sums.as<u32>(), part * keys + at, parts * keys);
        std::optional<ConstView> first;
        u32 added = 0;
        for (u32 whole = 0; whole < plan_.keys_per_step(); ++whole) {
          if (((whole + first_set) >> (part * small) & ((1u << small) - 1)) != set) continue;
          const ConstView next = blocks_of(samples_.as<u32>(), whole, plan_.keys_per_step());
          if (added++ == 0)
            first = next;
          else
            home_.poly->add(stream, sum, added == 2 ? first.value() : ConstView(sum), next);
        }
      }
    const u64 polys = u64(count_) * parts * keys * square;
    device::Buffer lifted = stream.allocate((polys << plan_.log_n) * sizeof(i64));
    const View dense(sums.as<u32>(), PolyShape{plan_.log_n, square, count_ * parts * keys}, limbs_,
                     Domain::coeff);
    home_.poly->lift_signed(stream, lifted.as<i64>(), dense);
    torus_.load_bootstrap_key(stream, key, first_ * parts, count_ * parts, lifted.as<const i64>());
  }

  u32 blocks_a_step() const { return plan_.keys_per_step() * plan_.digits; }
  PolyShape shape(u32 components, u32 batch) const { return {plan_.log_n, components, batch}; }
  View all() const {
    return View(samples_.as<u32>(), shape(plan_.polys(), rows_), limbs_, Domain::coeff);
  }
  /// Row `row` of every block.
  View row_of_blocks(const View& bodies, u32 row) const {
    View v = bodies.rows(row, blocks());
    v.batch_stride = bodies.batch_stride * plan_.polys();
    return v;
  }

  // Adds -m_j S_j,t g to body j of rows t and m_i g to body i of rows k + i, evaluation form.
  void add_messages(const View& bodies, SecretKeys& secret) {
    auto& stream = *home_.stream;
    auto& poly = *home_.poly;
    const u32 k = plan_.glwe_dim, r = plan_.slots;
    const u64 n = plan_.ring_dim();
    // A constant has the same value at every point: N copies of m_j g for each (block, slot).
    core::SecretVector<i64> values(u64(blocks()) * r * n);
    u64 at = 0;
    for (u32 step = first_; step < first_ + count_; ++step)
      for (u32 key = 0; key < plan_.keys_per_step(); ++key)
        for (u32 digit = 0; digit < plan_.digits; ++digit)
          for (u32 j = 0; j < r; ++j, at += n) {
            watch::point();
            i64 m;
            if (plan_.group != 0) {
              m = indicator(secret, j, step * plan_.group, plan_.group, plan_.first_set() + key);
            } else {
              const i64 s = secret.lwe(j, step), sign = key == 0 ? 1 : -1;
              m = (s * s + sign * s) / 2;
            }
            std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(at), n,
                        m * static_cast<i64>(gadget_weight(plan_, digit)));
          }
    device::Buffer staged = stream.allocate(values.size() * sizeof(i64), true);
    stream.copy_in_secret(staged.data(), values.data(), values.size() * sizeof(i64));
    device::Buffer memory = stream.allocate(u64(blocks()) * r * poly_words() * sizeof(u32), true);
    const View residues(memory.as<u32>(), shape(r, blocks()), limbs_, Domain::coeff);
    poly.reduce_signed(stream, residues, staged.as<const i64>());
    View constants = residues;
    constants.domain = Domain::eval;

    const ConstView minus = secret.glwe_negated();
    for (u32 j = 0; j < r; ++j) {
      const ConstView m = constants.components(j, 1);
      for (u32 t = 0; t < k; ++t)
        poly.mul_add(stream, row_of_blocks(bodies, t).components(j, 1), m,
                     minus.rows(j, 1).components(t, 1));
      const View own = row_of_blocks(bodies, k + j).components(j, 1);
      poly.add(stream, own, own, m);
    }
  }

  const Context::State& home_;
  device::TorusKernels& torus_;  ///< by whose steps they are loaded
  device::TorusPlan plan_;       ///< by whose steps they are made
  u32 first_, count_;
  LimbSet limbs_;
  u32 rows_;
  device::Buffer samples_;  ///< [row][k + r][prime][N], coefficient form
};

// f(first, count) over chunks of steps, as keys are made.
template <class F>
void for_each_chunk(const device::TorusPlan& used, F f) {
  const device::TorusPlan plan = made_plan(used);
  const u64 polys = plan.key_polys() * plan.primes.size();
  u32 step = static_cast<u32>(std::max<u64>(1, kChunkPolys / polys));
  if (watch::reported()) step = std::min(step, plan.steps() / kReports + 1);
  for (u32 first = 0; first < plan.steps(); first += step) {
    const u32 count = std::min(step, plan.steps() - first);
    f(first, count);
    watch::advance(count);
  }
}

}  // namespace

u64 bootstrap_body_words(const device::TorusPlan& used) {
  const device::TorusPlan plan = made_plan(used);
  return u64(plan.steps()) * plan.keys_per_step() * plan.digits * plan.polys() * plan.slots *
         plan.primes.size() * plan.ring_dim();
}

u64 gadget_weight(const device::TorusPlan& plan, u32 digit) {
  if (plan.path == device::NoisePath::gadget) return u64(1) << (plan.base_log * (digit + 1));
  return (plan.key_modulus() + plan.modulus / 2) / plan.modulus;
}

void make_bootstrap_key(const Context::State& home, SecretKeys& secret,
                        EvaluationKeys::Data& data) {
  auto& stream = *home.stream;
  data.bootstrap = stream.allocate(home.torus->bootstrap_key_bytes());
  data.bootstrap_seed = secret.source().derive_seed();
  data.bootstrap_bodies.resize(bootstrap_body_words(home.plan));
  u32* to = data.bootstrap_bodies.data();
  for_each_chunk(home.plan, [&](u32 first, u32 count) {
    Chunk chunk(home, *home.torus, first, count);
    chunk.expand_masks(data.bootstrap_seed);
    const device::Buffer bodies = chunk.encrypt(secret);
    chunk.set_bodies(bodies.as<const u32>());
    chunk.load(data.bootstrap.data());
    stream.copy_out(to, bodies.data(), chunk.body_words() * sizeof(u32));
    to += chunk.body_words();
  });
}

device::Buffer load_bootstrap_key(const Context::State& home, device::TorusKernels& torus,
                                  const EvaluationKeys::Data& data) {
  auto& stream = *home.stream;
  device::Buffer key = stream.allocate(torus.bootstrap_key_bytes());
  const u32* from = data.bootstrap_bodies.data();
  for_each_chunk(home.plan, [&](u32 first, u32 count) {
    Chunk chunk(home, torus, first, count);
    chunk.expand_masks(data.bootstrap_seed);
    device::Buffer bodies = stream.allocate(chunk.body_words() * sizeof(u32));
    stream.copy_in(bodies.data(), from, chunk.body_words() * sizeof(u32));
    chunk.set_bodies(bodies.as<const u32>());
    chunk.load(key.data());
    from += chunk.body_words();
  });
  return key;
}

}  // namespace crenel::tfhe
