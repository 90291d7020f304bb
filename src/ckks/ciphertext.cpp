#include "crenel/ckks/ciphertext.h"

#include <algorithm>

#include "ckks/evaluator_state.h"
#include "ckks/magnitude.h"

namespace crenel::ckks {

using ring::PolyShape;

void expect_bound(double bound) {
  if (!(bound > 0.0))
    throw ParameterError(cat("bound ", bound, ", expected a positive number: the largest |slot|"),
                         {{"bound", bound}, {"expected", "> 0"}});
}

Plaintext::Plaintext(std::unique_ptr<Data> data) : data_(std::move(data)) {}
Plaintext::Plaintext(Plaintext&&) noexcept = default;
Plaintext& Plaintext::operator=(Plaintext&&) noexcept = default;
Plaintext::~Plaintext() = default;
const Metadata& Plaintext::metadata() const { return data_->meta; }
const std::string& Plaintext::params_id() const { return data_->params_id; }

Plaintext Plaintext::clone() const {
  expect_not_decrypted(*this, "a copy");  // which would lie in memory that nothing wipes
  return Plaintext(std::make_unique<Data>(Data{data_->meta, data_->params_id,
                                               data_->poly.clone(data_->poly.stream()),
                                               data_->decrypted, data_->stated}));
}

Ciphertext::Ciphertext(std::unique_ptr<Data> data) : data_(std::move(data)) {}
Ciphertext::Ciphertext(Ciphertext&&) noexcept = default;
Ciphertext& Ciphertext::operator=(Ciphertext&&) noexcept = default;
Ciphertext::~Ciphertext() = default;
const Metadata& Ciphertext::metadata() const { return data_->meta; }
const std::string& Ciphertext::params_id() const { return data_->params_id; }
void Ciphertext::state_bound(double bound) {
  expect_bound(bound);
  data_->meta.bound = bound;
}
u32 Ciphertext::components() const { return data_->poly.shape().components; }
u32 Ciphertext::batch() const { return data_->poly.shape().batch; }
u64 Ciphertext::bytes() const { return data_->poly.bytes(); }

Ciphertext Ciphertext::clone() const {
  auto copy = std::make_unique<Data>();
  copy->meta = data_->meta;
  copy->params_id = data_->params_id;
  copy->seed = data_->seed;
  copy->poly = data_->poly.clone(data_->poly.stream());
  return Ciphertext(std::move(copy));
}

Ciphertext Ciphertext::slice(u32 first, u32 count) const {
  const rlwe::Poly& from = data_->poly;
  const PolyShape shape = from.shape();
  if (count == 0 || first >= shape.batch || count > shape.batch - first)
    throw ParameterError(cat("rows ", first, " to ", u64(first) + count, " of a batch of ",
                             shape.batch, ", expected at least one, all of the batch"),
                         {{"first", first}, {"count", count}, {"batch", shape.batch}});
  auto rows = std::make_unique<Data>();
  rows->meta = data_->meta;
  rows->params_id = data_->params_id;
  auto& stream = from.stream();
  rows->poly =
      rlwe::Poly(stream, {shape.log_n, shape.components, count}, from.limbs(), from.domain());
  stream.copy(rows->poly.data(), from.view().rows(first, count).data, rows->poly.bytes());
  return Ciphertext(std::move(rows));
}

namespace {

void expect_joinable(const Ciphertext& a, const Ciphertext& b, std::size_t index) {
  const auto expect = [&](const char* what, const auto& found, const auto& expected, bool equal) {
    if (!equal)
      throw StateError(cat("part ", index, " has ", what, " ", found, ", the first has ", expected),
                       {{"part", index}, {"found", found}, {"expected", expected}});
  };
  const auto same = [&](const char* what, const auto& found, const auto& expected) {
    expect(what, found, expected, found == expected);
  };
  same("parameters", b.params_id(), a.params_id());
  const auto &here = a.data().poly.stream().device(), &there = b.data().poly.stream().device();
  expect("device", there.info().name, here.info().name, &here == &there);
  same("secret key", b.secret_key_id().text(), a.secret_key_id().text());
  same("level", b.level(), a.level());
  expect("scale", b.scale(), a.scale(), scales_agree(b.scale(), a.scale()));
  same("slots", b.slots(), a.slots());
  same("components", b.components(), a.components());
}

}  // namespace

Ciphertext concatenate(std::span<const Ciphertext* const> parts) {
  if (parts.empty()) throw ParameterError("concatenation of no ciphertexts", {{"parts", 0}});
  u64 batch = 0;
  auto joined = std::make_unique<Ciphertext::Data>();
  joined->meta = parts[0]->metadata();
  joined->params_id = parts[0]->params_id();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    expect_joinable(*parts[0], *parts[i], i);
    joined->meta.real = joined->meta.real && parts[i]->metadata().real;
    joined->meta.bound = std::max(joined->meta.bound, parts[i]->bound());
    batch += parts[i]->batch();
  }
  if (batch > kMaxBatch)
    throw ParameterError(cat("batch of ", batch, " rows, expected at most ", kMaxBatch),
                         {{"batch", batch}, {"max_batch", kMaxBatch}});
  const rlwe::Poly& first = parts[0]->data().poly;
  auto& stream = first.stream();
  PolyShape shape = first.shape();
  shape.batch = static_cast<u32>(batch);
  joined->poly = rlwe::Poly(stream, shape, first.limbs(), first.domain());
  u32 row = 0;
  for (const Ciphertext* part : parts) {
    const rlwe::Poly& from = part->data().poly;
    if (&from.stream() != &stream) stream.wait_for(from.stream());
    stream.copy(joined->poly.view().rows(row, part->batch()).data, from.data(), from.bytes());
    row += part->batch();
    // Part of another stream: its memory may go back to that stream's pool right away.
    if (&from.stream() != &stream) from.stream().wait_for(stream);
  }
  return Ciphertext(std::move(joined));
}

}  // namespace crenel::ckks
