#include "crenel/ckks/context.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "ckks/batch_request.h"
#include "ckks/decode.h"
#include "ckks/encode.h"
#include "ckks/magnitude.h"
#include "ckks/objects.h"
#include "ckks/params/chain.h"
#include "ckks/scale.h"
#include "crenel/core/watch.h"

namespace crenel::ckks {
namespace {

using Complex = std::complex<double>;

std::shared_ptr<device::Device> given(std::shared_ptr<device::Device> device) {
  if (!device) throw ParameterError("context on no device", {{"device", "null"}});
  return device;
}

// What encoding takes at a time: on the host the vectors as complex numbers and their integer
// coefficients, on the device these and the residues.
void expect_room_to_encode(const Context::State& state, u32 level, u64 slots, u32 batch) {
  const u64 n = state.params.ring_dim(), integers = u64(batch) * n * sizeof(i64);
  const u64 values = u64(batch) * slots * sizeof(Complex);
  const u64 residues = u64(batch) * n * state.ring->window(level).size() * sizeof(rlwe::Word);
  device::expect_room(state.ring->stream(), {integers + residues, values + integers}, [&] {
    return batch_request("encoding", batch, values + 2 * integers + residues);
  });
}

// Where and how a vector is to be encoded, checked.
struct EncodeTarget {
  u32 level;
  double scale;
  u64 slots;
  u64 row;  // values given per batch entry
  double bound;
};

EncodeTarget check_target(const Params& params, std::size_t values, std::optional<u32> level,
                          double scale, u64 slots, u32 batch, double bound) {
  EncodeTarget t{level.value_or(params.normal_top_level()), scale, slots ? slots : params.slots(),
                 0, bound};
  if (t.level > params.max_level())
    throw ParameterError(cat("level ", t.level, ", expected at most ", params.max_level()),
                         {{"level", t.level}, {"max_level", params.max_level()}});
  if (scale == 0.0) t.scale = params.scale(t.level);
  expect_scale(params, t.level, t.scale, "scale");
  expect_bound(bound);
  if (magnitude::known(bound) && !(bound <= largest_value(params, t.level, t.scale))) {
    const double largest = largest_value(params, t.level, t.scale);
    throw ParameterError(
        cat("bound ", bound, ", expected at most ", brief(largest), ": max_value at level ",
            t.level, " and scale 2^", brief(std::log2(t.scale))),
        {{"bound", bound}, {"max_value", largest}, {"level", t.level}, {"scale", t.scale}});
  }
  if (!std::has_single_bit(t.slots) || t.slots > params.slots())
    throw ParameterError(cat(t.slots, " slots, expected a power of two up to ", params.slots()),
                         {{"slots", t.slots}, {"max_slots", params.slots()}});
  if (batch > kMaxBatch)
    throw ParameterError(cat("batch of ", batch, " rows, expected at most ", kMaxBatch),
                         {{"batch", batch}, {"max_batch", kMaxBatch}});
  if (batch == 0 || values % batch != 0)
    throw ParameterError(cat(values, " values do not split into ", batch, " rows"),
                         {{"values", values}, {"batch", batch}});
  t.row = values / batch;
  if (t.row > t.slots)
    throw ParameterError(cat(t.row, " values, expected at most ", t.slots, " (the slots)"),
                         {{"values", t.row}, {"slots", t.slots}});
  return t;
}

Complex checked_value(const Complex& v, const EncodeTarget& t, u64 index, u32 row) {
  if (!std::isfinite(v.real()) || !std::isfinite(v.imag()))
    throw ParameterError(
        cat("value ", index, " of row ", row, " is infinite or no number, expected finite numbers"),
        {{"index", index}, {"row", row}, {"expected", "finite numbers"}});
  if (magnitude::known(t.bound) && !(std::abs(v) <= t.bound))
    throw ParameterError(
        cat("value ", index, " of row ", row, " is larger than the stated bound ", t.bound),
        {{"index", index}, {"row", row}, {"bound", t.bound}});
  return v;
}

/// `largest`: the largest |slot|, which a plaintext knows where no bound is stated.
Plaintext made(const Context::State& state, const EncodeTarget& t, bool real, double largest,
               rlwe::Poly poly) {
  auto data = std::make_unique<Plaintext::Data>();
  data->meta = {t.level, t.scale, t.slots, real};
  data->stated = magnitude::known(t.bound);
  data->meta.bound = data->stated ? t.bound : largest;
  data->params_id = state.params.id();
  data->poly = std::move(poly);
  return Plaintext(std::move(data));
}

Plaintext encode_rows(const Context::State& state, std::span<const Complex> values,
                      const EncodeTarget& t, u32 batch, bool real) {
  std::vector<Complex> padded(t.slots * batch);
  const random::WipeOnExit wipe_values(padded);
  for (u32 b = 0; b < batch; ++b) {
    watch::point();
    for (u64 j = 0; j < t.row; ++j)
      padded[b * t.slots + j] = checked_value(values[b * t.row + j], t, j, b);
  }
  auto coefficients = integer_coefficients(state.encoder, padded, t.slots, batch, t.scale,
                                           state.params.log_q(t.level));
  const random::WipeOnExit wipe(coefficients);
  return made(state, t, real, largest_slot(padded),
              to_polynomials(*state.ring, state.ring->stream(), coefficients, batch,
                             state.ring->window(t.level)));
}

}  // namespace

double largest_slot(std::span<const Complex> slots) {
  double part = 0.0, square = 0.0;
  for (const Complex& v : slots) {
    part = std::max({part, std::abs(v.real()), std::abs(v.imag())});
    square = std::max(square, std::norm(v));
  }
  // Squares that left the doubles, or came near their end, tell nothing.
  const bool exact = part > 0x1p-500 && part < 0x1p500;
  return exact ? std::sqrt(square) : magnitude::finite(std::numbers::sqrt2 * part);
}

Metadata encrypted_metadata(const Plaintext& plaintext, const SecretKeyId& secret_key) {
  Metadata meta = plaintext.metadata();
  meta.secret_key = secret_key;
  if (!plaintext.data().stated) meta.bound = kUnknownBound;
  return meta;
}

void expect_same_device(const device::Device& found, const Context::State& context,
                        const char* what) {
  const auto& here = context.ring->device().info().name;
  const auto& there = found.info().name;
  if (here != there)
    throw StateError(cat(what, " on device ", there, ", context on ", here),
                     {{"found", there}, {"expected", here}});
}

void expect_home(const std::string& params_id, const device::Device& home,
                 const Context::State& context, const char* what) {
  if (params_id != context.params.id())
    throw StateError(cat(what, " of parameters ", params_id, ", context has ", context.params.id()),
                     {{"found", params_id}, {"expected", context.params.id()}});
  expect_same_device(home, context, what);
  // On a GPU the other device's stream may free or still write the memory while ours reads it; a
  // device of several parts knows its own memory only.
  if (!context.ring->device().in_host_memory() && &home != &context.ring->device())
    throw StateError(cat(what, " of another device object of ", home.info().name,
                         "; let the contexts share one device, or pass it as bytes"),
                     {{"found", "another device object"}, {"expected", "this context's"}});
}

void expect_home(const std::string& params_id, const rlwe::Poly& poly,
                 const Context::State& context, const char* what) {
  expect_home(params_id, poly.stream().device(), context, what);
}

Context::Context(const Params& params, std::shared_ptr<device::Device> device)
    : state_(std::make_shared<State>(
          params,
          std::make_shared<const rlwe::RingContext>(chain_of(params), given(std::move(device))),
          Encoder(params.log_n()))) {}

Context::Context(const Params& params, const std::string& device)
    : Context(params, device::open(device)) {}

const Params& Context::params() const { return state_->params; }
device::Device& Context::device() const { return state_->ring->device(); }
const std::shared_ptr<device::Device>& Context::shared_device() const {
  return state_->ring->shared_device();
}
device::Stream& Context::stream() const { return state_->ring->stream(); }
void Context::synchronize() const { stream().synchronize(); }

Plaintext Context::encode(std::span<const Complex> values, std::optional<u32> level, double scale,
                          u64 slots, u32 batch, double bound) const {
  const auto target = check_target(params(), values.size(), level, scale, slots, batch, bound);
  expect_room_to_encode(*state_, target.level, target.slots, batch);
  return encode_rows(*state_, values, target, batch, false);
}

Plaintext Context::encode(std::span<const double> values, std::optional<u32> level, double scale,
                          u64 slots, u32 batch, double bound) const {
  const auto target = check_target(params(), values.size(), level, scale, slots, batch, bound);
  expect_room_to_encode(*state_, target.level, target.slots, batch);
  const std::vector<Complex> widened(values.begin(), values.end());
  return encode_rows(*state_, widened, target, batch, true);
}

Plaintext Context::encode_constant(Complex value, std::optional<u32> level, double scale, u64 slots,
                                   double bound) const {
  const auto t = check_target(params(), 1, level, scale, slots, 1, bound);
  checked_value(value, t, 0, 0);
  const State& s = *state_;
  const auto scalars = constant_scalars(s, value, t.scale, t.level);
  auto& stream = s.ring->stream();
  rlwe::Poly poly(stream, {s.ring->log_n(), 1, 1}, s.ring->window(t.level), ring::Domain::eval);
  stream.fill_zero(poly.data(), poly.bytes());
  s.ring->kernels().add_scalar(stream, poly.view(), poly.view(), scalars);
  return made(s, t, value.imag() == 0.0, std::abs(value), std::move(poly));
}

std::vector<Complex> Context::decode(const Plaintext& plaintext) const {
  const auto& poly = plaintext.data().poly;
  expect_home(plaintext.params_id(), poly, *state_, "plaintext");
  auto& stream = state_->ring->stream();
  rlwe::Poly coefficients(stream, poly.shape(), poly.limbs(), ring::Domain::coeff, true);
  state_->ring->kernels().intt(stream, coefficients.view(), poly.view());
  return decode_coefficients(*state_, coefficients, plaintext.metadata());
}

}  // namespace crenel::ckks
