// The ring of lists, and the key that packs: switches from what automorphisms make of the secret.
#include <algorithm>

#include "crenel/core/error.h"
#include "crenel/core/watch.h"
#include "tfhe/keygen.h"
#include "tfhe/lists.h"

namespace crenel::tfhe {
namespace {

using ring::Domain;
using View = ring::PolyView<u32>;
using ConstView = ring::PolyView<const u32>;

}  // namespace

ListRing::ListRing(const Context::State& home) : plan(list_plan(home.plan)) {
  auto& stream = *home.stream;
  limbs = ring::LimbSet::range(0, plan.digits());
  poly = device::backend_of(*home.device)
             .make_poly_kernels(std::make_shared<const ring::Ring>(home.plan.log_n, plan.primes));
  rns::Moduli moduli;
  for (u32 i = 0; i < plan.digits(); ++i) moduli.push_back(poly->ring().modulus(i));
  mod_up = poly->prepare(rns::make_mod_up(moduli, limbs, {}, 1));
  const u64 n = home.plan.ring_dim();
  std::vector<i64> powers(log_n() * n);
  for (u32 l = 1; l <= log_n(); ++l) powers[(l - 1) * n + (n >> l)] = 1;
  const device::Buffer staged = stream.allocate(powers.size() * sizeof(i64));
  stream.copy_in(staged.data(), powers.data(), staged.bytes());
  monomials = stream.allocate(log_n() * poly_bytes());
  const View coeff = view(monomials.as<u32>(), 1, log_n(), Domain::coeff);
  poly->reduce_signed(stream, coeff, staged.as<const i64>());
  poly->ntt(stream, view(monomials.as<u32>(), 1, log_n(), Domain::eval), coeff);
  stream.synchronize();  // any thread may read it
}

const ListRing& Context::State::lists() const {
  expect_lists(*this);
  const std::lock_guard lock(mutex_);
  if (!lists_) lists_ = std::make_shared<const ListRing>(*this);
  return *lists_;
}

void expect_lists(const Context::State& home) {
  if (!list_plan(home.plan).primes.empty()) return;
  throw UnsupportedError(
      cat("lists of '", home.params.name(), "', whose ciphertexts rest under ",
          home.plan.rests_extracted() ? cat(home.plan.glwe_dim, " polynomials") : "an LWE key",
          ", expected a set with groups and one polynomial, such as lut4-128"),
      {{"name", home.params.name()}});
}

void make_list_key(const Context::State& home, SecretKeys& secret, EvaluationKeys::Data& data) {
  const ListRing& r = home.lists();
  auto& stream = *home.stream;
  auto& poly = *r.poly;
  const u32 rows = r.key_rows(), digits = r.plan.digits();
  const u64 n = home.plan.ring_dim(), bytes = r.poly_bytes();

  core::SecretVector<i64> wide(n);
  for (u32 i = 0; i < n; ++i) wide[i] = secret.extracted(0, i);
  const device::Buffer staged = stream.allocate(n * sizeof(i64), true);
  stream.copy_in_secret(staged.data(), wide.data(), staged.bytes());
  const device::Buffer own = stream.allocate(bytes, true), turned = stream.allocate(bytes, true);
  const View s = r.view(own.as<u32>(), 1, 1, Domain::eval);
  const View moved = r.view(turned.as<u32>(), 1, 1, Domain::eval);
  const View coefficients = r.view(own.as<u32>(), 1, 1, Domain::coeff);
  poly.reduce_signed(stream, coefficients, staged.as<const i64>());
  poly.ntt(stream, s, coefficients);

  data.lists_seed = secret.source().derive_seed();
  const device::Buffer masks = stream.allocate(rows * bytes);
  const View a = r.view(masks.as<u32>(), 1, rows, Domain::eval);
  const View drawn = r.view(masks.as<u32>(), 1, rows, Domain::coeff);
  poly.sample_uniform(stream, drawn, data.lists_seed, {random::Purpose::uniform, 0});
  poly.ntt(stream, a, drawn);
  const device::Buffer memory = stream.allocate(rows * bytes, true);
  const View b = r.view(memory.as<u32>(), 1, rows, Domain::eval);
  poly.mul(stream, b, a, s);
  poly.neg(stream, b, b);
  for (u32 l = 1; l <= r.log_n(); ++l) {
    poly.automorphism(stream, moved, s, doubling_element(l));
    for (u32 d = 0; d < digits; ++d) {
      const View body = b.rows((l - 1) * digits + d, 1).limb_window(d, 1);
      poly.add(stream, body, body, ConstView(moved).limb_window(d, 1));
    }
    watch::point();
  }
  const View plain = r.view(memory.as<u32>(), 1, rows, Domain::coeff);
  poly.intt(stream, plain, b);
  const device::Buffer noise = stream.allocate(rows * bytes, true);
  const View errors = r.view(noise.as<u32>(), 1, rows, Domain::coeff);
  auto& source = secret.source();
  poly.sample_error(stream, errors, source.seed(), source.next(random::Purpose::error, rows));
  // Only the sum leaves secret memory.
  const device::Buffer out = stream.allocate(rows * bytes);
  poly.add(stream, r.view(out.as<u32>(), 1, rows, Domain::coeff), plain, errors);
  data.lists_bodies.resize(list_key_words(home.plan));
  stream.copy_out(data.lists_bodies.data(), out.data(), out.bytes());
  load_list_key(home, data);
}

void load_list_key(const Context::State& home, EvaluationKeys::Data& data) {
  const ListRing& r = home.lists();
  auto& stream = *home.stream;
  const u32 rows = r.key_rows();
  const u64 bytes = r.poly_bytes();
  data.lists = stream.allocate(2 * rows * bytes);
  const device::Buffer bodies = stream.allocate(rows * bytes);
  stream.copy_in(bodies.data(), data.lists_bodies.data(), bodies.bytes());
  const View coeff = r.view(data.lists.as<u32>(), 2, rows, Domain::coeff);
  stream.copy_rows(coeff.data, 2 * bytes, bodies.data(), bytes, bytes, rows);
  r.poly->sample_uniform(stream, coeff.components(1, 1), data.lists_seed,
                         {random::Purpose::uniform, 0});
  r.poly->ntt(stream, r.view(data.lists.as<u32>(), 2, rows, Domain::eval), coeff);
}

}  // namespace crenel::tfhe
