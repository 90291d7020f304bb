// Storage form: switched ciphertexts, rounded to the steps of a rotation with the secret's mean
// taken off (docs/theory/tfhe.md "Bootstrapping").
#include <algorithm>
#include <cmath>

#include "crenel/core/error.h"
#include "crenel/core/watch.h"
#include "device/room.h"
#include "tfhe/compressed.h"
#include "tfhe/encoding.h"
#include "tfhe/evaluator_state.h"
#include "tfhe/lists.h"

namespace crenel::tfhe {
namespace {

// Rows of read_words() words modulo 2^log_from to words modulo 2^log_to, in place: masks rounded
// to the nearest, and what their errors sum to on average, with secrets of mean 1/2, into the last
// `bodies` words before they are rounded, once.
void round_centred(std::span<u32> row, u32 bodies, u32 log_from, u32 log_to) {
  if (log_from <= log_to) return;
  const u32 shift = log_from - log_to;
  const i64 step = i64(1) << shift;
  const u32 mask = static_cast<u32>((u64(1) << log_to) - 1);
  i64 errors = 0;
  for (u32& word : row.first(row.size() - bodies)) {
    const i64 rounded = (i64(word) + step / 2) >> shift;
    errors += i64(word) - rounded * step;
    word = static_cast<u32>(rounded) & mask;
  }
  // phase = b - sum (rounded step + error) s: round((2 b - errors) / (2 step)), halves upwards
  for (u32& body : row.last(bodies))
    body = static_cast<u32>((2 * i64(body) - errors + step) >> (shift + 1)) & mask;
}

}  // namespace

u64 Compressed::size() const { return data_->size; }
u32 Compressed::plain_modulus() const { return data_->plain_modulus; }
u64 Compressed::bytes() const { return data_->words.size(); }
const std::string& Compressed::params_id() const { return data_->params_id; }
const SecretKeyId& Compressed::secret_key_id() const { return data_->secret_key; }
u32 Compressed::integer_bits() const { return data_->integer_bits; }
bool Compressed::is_signed() const { return data_->is_signed; }
StoredForm Compressed::form() const { return data_->form; }

u64 stored_bytes(const Context& context, u64 size, StoredForm form) {
  const Context::State& home = context.state();
  expect_compression(home);
  if (form == StoredForm::switched)
    return stored_rows(home.plan, size) * stored_row_bytes(home.plan);
  expect_lists(home);
  return stored_lists_bytes(home, size);
}

u32 stored_log_modulus(const device::TorusPlan& plan) {
  return std::min(plan.log_n + 1, plan.log_switch_modulus);
}

void expect_compression(const Context::State& home) {
  const std::string& name = home.params.name();
  if (!home.plan.rests_extracted())
    throw UnsupportedError(
        cat("compression: ciphertexts of '", name, "' rest behind the key switch already, ",
            "expected a set with groups of secret bits, such as lut4-128"),
        {{"name", name}});
}

u32 compressible_modulus(const Params& params, u32 plain_modulus) {
  const Spec& spec = params.spec();
  return spec.padded && plain_modulus == spec.plain_modulus ? plain_modulus : 4;
}

void Evaluator::State::judge_stored(const Noise& noise, u32 plain_modulus,
                                    const char* operation) const {
  judge_reading(noise.variance() + stored_variance(plan(), budget), noise,
                refresh_function(plain_modulus).margin, operation);
}

Compressed Evaluator::compress(const Ciphertext& a, StoredForm form) const {
  const State& s = *state_;
  const bool lists = form == StoredForm::lists;
  expect_compression(s.home());
  if (lists) expect_lists(s.home());
  s.check(a);
  s.check_log_modulus(a, s.log_q(), "compression");
  const RefreshFunction function = s.refresh_function(a.plain_modulus());
  s.check_plain_modulus(a, function.plain_modulus, "compression");
  if (!function.is_message) s.check_bits(a, "compression");
  const auto& keys = s.bootstrap_keys();
  if (lists && !s.keys.has_lists())
    throw KeyMissingError(
        "compression into lists needs the key that packs: client.evaluation_keys(lists=True)",
        {{"operation", "compression"}, {"key", "lists"}});
  s.stream().expect_no_capture("compression");  // its result is host memory
  auto data = std::make_shared<Compressed::Data>();
  data->params_id = a.params_id();
  data->secret_key = keys.secret_key;
  data->size = a.size();
  data->plain_modulus = a.plain_modulus();
  data->bound = a.bound();
  data->noise_variance = a.noise_variance();
  data->form = form;
  if (lists) {
    s.judge_listed(a.size(), a.data().noise, a.plain_modulus(), "compression");
    data->words = s.listed(a);
  } else {
    s.judge_stored(a.data().noise, a.plain_modulus(), "compression");
    data->words = s.stored(a);
  }
  return Compressed(std::move(data));
}

std::vector<u8> Evaluator::State::stored(const Ciphertext& a) const {
  const State& s = *this;
  const auto& plan = s.plan();
  const u64 rows = a.data().rows(), row_words = plan.read_words();
  const u64 row_bytes = stored_row_bytes(plan);
  device::expect_room(s.stream(), {.host = rows * row_bytes}, [&] {
    return core::MemoryRequest{.what = cat("compression of ", a.size(), " messages"),
                               .advice = "take fewer messages at a time"};
  });
  std::vector<u8> words(rows * row_bytes);
  const u64 most = std::clamp<u64>(kStoredChunk / (row_words * sizeof(u32)), 1, rows);
  device::Buffer switched = s.stream().allocate(most * row_words * sizeof(u32));
  std::vector<u32> host(most * row_words);
  const u32 from = plan.log_switch_modulus, to = stored_log_modulus(plan);
  for (u64 first = 0; first < rows; first += most) {
    const u64 count = std::min(most, rows - first);
    watch::point();
    s.switch_groups(switched.as<u32>(), a.data().payload.as<const u32>() + first * plan.words(),
                    count);
    s.stream().copy_out(host.data(), switched.data(), count * row_words * sizeof(u32));
    for (u64 y = 0; y < count; ++y) {
      const auto row = std::span(host).subspan(y * row_words, row_words);
      round_centred(row, plan.slots, from, to);
      pack_bits(row, to, words.data() + (first + y) * row_bytes);
    }
  }
  return words;
}

Ciphertext Evaluator::decompress(const Compressed& compressed) const {
  const State& s = *state_;
  const Compressed::Data& c = compressed.data();
  expect_compression(s.home());
  if (c.params_id != s.params().id())
    throw StateError(
        cat("compressed array of parameters ", c.params_id, ", context has ", s.params().id()),
        {{"found", c.params_id}, {"expected", s.params().id()}});
  expect_same_secret_key(c.secret_key, s.keys.secret_key_id(), "compressed array", "these keys");
  s.bootstrap_keys();
  s.stream().expect_no_capture("decompression");
  const Noise noise(c.size, c.noise_variance);
  const RefreshFunction function = s.refresh_function(c.plain_modulus);
  const bool lists = c.form == StoredForm::lists;
  if (lists)
    s.judge_listed(c.size, noise, c.plain_modulus, "decompression");
  else
    s.judge_stored(noise, c.plain_modulus, "decompression");
  const u64 rows = stored_rows(s.plan(), c.size);
  device::Buffer out = s.allocate_rows(rows);
  const watch::Task task(s.units(rows), "bootstraps");
  if (lists)
    s.refresh_lists(out.as<u32>(), c, function);
  else
    s.refresh_stored(out.as<u32>(), c, function);
  Ciphertext result = s.wrap(std::move(out), c.size, c.plain_modulus, s.log_q(),
                             s.bootstrap_noise(c.size, s.log_q()));
  result.data().bound = function.is_message ? c.bound : 2;
  return result;
}

void Evaluator::State::refresh_stored(u32* out, const Compressed::Data& c,
                                      const RefreshFunction& function) const {
  const State& s = *this;
  const auto& plan = s.plan();
  const device::LutView view = s.refresh_view(function);
  const u64 rows = stored_rows(plan, c.size), row_words = plan.read_words();
  const u64 row_bytes = stored_row_bytes(plan);
  const u32 stored = stored_log_modulus(plan), shift = plan.log_switch_modulus - stored;
  const u32 constant = static_cast<u32>(function.constant(stored));
  const u32 mask = static_cast<u32>((u64(1) << stored) - 1);
  u64 most = std::clamp<u64>(kStoredChunk / (row_words * sizeof(u32)), 1, rows);
  if (watch::reported()) most = std::min(most, s.reported_rows(rows));
  const auto& form = s.form_of(rows);
  device::Buffer switched = s.stream().allocate(most * row_words * sizeof(u32));
  std::vector<u32> host(most * row_words);
  for (u64 first = 0; first < rows; first += most) {
    const u64 count = std::min(most, rows - first);
    for (u64 y = 0; y < count; ++y) {
      const auto row = std::span(host).subspan(y * row_words, row_words);
      unpack_bits(c.words.data() + (first + y) * row_bytes, stored, row);
      for (u32& body : row.last(plan.slots)) body = (body + constant) & mask;
      for (u32& word : row) word <<= shift;
    }
    s.stream().copy_in(switched.data(), host.data(), count * row_words * sizeof(u32));
    s.rotate_groups(form, out + first * plan.words(), switched.as<const u32>(), count, view);
    watch::advance(s.units(count));
  }
}

}  // namespace crenel::tfhe
