#include "ckks/evaluator_state.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "ckks/scale.h"

namespace crenel::ckks {

bool scales_agree(double a, double b) {
  return std::abs(a - b) <= kScaleTolerance * std::max(std::abs(a), std::abs(b));
}

Ciphertext Evaluator::State::wrap(rlwe::Poly poly, Metadata meta) const {
  auto data = std::make_unique<Ciphertext::Data>();
  data->meta = meta;
  data->params_id = params().id();
  data->poly = std::move(poly);
  return Ciphertext(std::move(data));
}

void Evaluator::State::check(const Ciphertext& a) const {
  expect_home(a.params_id(), a.data().poly, context.state(), "ciphertext");
  expect_same_secret_key(a.secret_key_id(), keys.secret_key_id(), "ciphertext", "these keys");
}

void Evaluator::State::check(const Plaintext& a) const {
  expect_home(a.params_id(), a.data().poly, context.state(), "plaintext");
  expect_not_decrypted(a, "an operation on ciphertexts");
}

void Evaluator::State::check_components(const Ciphertext& a, u32 expected,
                                        const char* operation) const {
  check(a);
  if (a.components() != expected)
    throw StateError(
        cat(operation, " of a ciphertext with ", a.components(), " components, expected ", expected,
            expected == 2 ? "; relinearise it first" : ""),
        {{"components", a.components()}, {"expected", expected}});
}

void refuse_level(const Params& params, std::string_view operation, u32 level, u32 needed,
                  std::vector<ErrorField> more, const std::string& why) {
  std::vector<ErrorField> fields{{"operation", operation}, {"level", level}, {"needed", needed}};
  fields.insert(fields.end(), more.begin(), more.end());
  throw StateError(
      cat(operation, " needs level ", needed, ", the ciphertext is at level ", level, why,
          ": bootstrap it (context.bootstrapper(keys)), or take parameters of ",
          "more depth: Params(..., depth=", params.normal_top_level() + (needed - level), ")"),
      std::move(fields));
}

void check_metadata(const Metadata& a, const Metadata& b, bool scale) {
  if (a.level != b.level)
    throw StateError(
        cat("levels differ: ", a.level, " and ", b.level, "; adjust_level the higher one"),
        {{"level_a", a.level}, {"level_b", b.level}});
  if (a.slots != b.slots)
    throw StateError(cat("slot counts differ: ", a.slots, " and ", b.slots,
                         "; encrypt or encode both with the same slots"),
                     {{"slots_a", a.slots}, {"slots_b", b.slots}});
  if (scale && !scales_agree(a.scale, b.scale))
    throw StateError(
        cat("scales differ: 2^", brief(std::log2(a.scale)), " and 2^", brief(std::log2(b.scale)),
            " (", a.scale, " and ", b.scale, "); rescale what is a product, or adjust_level"),
        {{"scale_a", a.scale}, {"scale_b", b.scale}});
}

namespace {

void check_batch(u32 a, u32 b) {
  if (a != b)
    throw StateError(cat("batch sizes differ: ", a, " and ", b), {{"batch_a", a}, {"batch_b", b}});
}

}  // namespace

void Evaluator::State::check_pair(const Ciphertext& a, const Ciphertext& b, bool scale) const {
  check(a), check(b);
  expect_same_secret_key(b.secret_key_id(), a.secret_key_id(), "ciphertext", "the other");
  check_metadata(a.metadata(), b.metadata(), scale);
  check_batch(a.batch(), b.batch());
}

void Evaluator::State::check_pair(const Ciphertext& a, const Plaintext& b, bool scale) const {
  check(a), check(b);
  check_metadata(a.metadata(), b.metadata(), scale);
  const u32 rows = b.data().poly.shape().batch;
  if (rows != 1) check_batch(a.batch(), rows);
}

Metadata product_metadata(const Params& params, Metadata meta, double factor_scale, bool real) {
  meta.scale *= factor_scale;
  meta.real = real;
  const double log_scale = std::log2(meta.scale), log_q = params.log_q(meta.level);
  if (log_scale < log_q) return meta;
  const std::vector<ErrorField> fields{{"scale", meta.scale}, {"log_q", log_q}};
  const std::string sizes = cat("the product's scale would be 2^", brief(log_scale),
                                ", expected less than the modulus 2^", brief(log_q));
  if (meta.level == 0) refuse_level(params, "multiply", 0, 1, fields, cat(" (", sizes, ")"));
  throw StateError(
      cat("multiply at level ", meta.level, ": ", sizes, "; rescale the operands first"),
      {{"operation", "multiply"}, {"level", meta.level}, fields[0], fields[1]});
}

Metadata rescaled_metadata(const Params& params, Metadata meta, std::string_view operation) {
  if (meta.level == 0) refuse_level(params, operation, 0, 1);
  const double scale = meta.scale / params.rescale_ratio(meta.level);
  const double canonical = params.scale(meta.level - 1);
  if (!(scale >= kMinRescaled))
    throw StateError(
        cat("rescale of scale ", meta.scale, " at level ", meta.level, " would leave scale ", scale,
            ", expected at least 2^-10: it is no product, or was rescaled before"),
        {{"scale", meta.scale},
         {"level", meta.level},
         {"expected", cat(">= ", kMinRescaled * params.rescale_ratio(meta.level))}});
  meta.scale = scales_agree(scale, canonical) ? canonical : scale;
  meta.level -= 1;
  return meta;
}

void Evaluator::State::check_can_rescale(const Ciphertext& a, std::string_view operation) const {
  check(a);
  rescaled_metadata(params(), a.metadata(), operation);
}

u64 reduced_steps(i64 steps, u64 slots) {
  const i64 n = static_cast<i64>(slots);
  return static_cast<u64>(((steps % n) + n) % n);
}

void check_sum(u64 count, u64 slots) {
  if (!std::has_single_bit(count) || count > slots)
    throw ParameterError(cat("sum over ", count, " slots, expected a power of two up to ", slots),
                         {{"count", count}, {"slots", slots}});
}

Evaluator::State::KeyChoice Evaluator::State::choice(rlwe::KeyId id, u32 level) const {
  if (id == rlwe::kNoKey || !ring().aligned(level)) return {id, level};
  const KeyChoice aligned{rlwe::aligned_key(id), rlwe::aligned_level(level)};
  return serves(aligned) ? aligned : KeyChoice{id, level};
}

std::optional<Evaluator::State::KeyChoices> Evaluator::State::choices(
    std::span<const rlwe::KeyId> ids, u32 level) const {
  KeyChoices aligned{{}, rlwe::aligned_level(level)}, plain{{ids.begin(), ids.end()}, level};
  bool all_aligned = true, all_plain = true;
  for (rlwe::KeyId id : ids) {
    const KeyChoice key = choice(id, level);
    aligned.ids.push_back(key.id);
    if (id == rlwe::kNoKey) continue;
    all_aligned = all_aligned && rlwe::is_aligned(key.level);
    all_plain = all_plain && serves({id, level});
  }
  if (all_aligned && aligned.ids != plain.ids) return aligned;
  return all_plain ? std::optional(plain) : std::nullopt;
}

rlwe::KeyLease Evaluator::State::lease(std::span<const rlwe::KeyId> ids) const {
  const auto none = [](rlwe::KeyId id) { return id == rlwe::kNoKey; };
  if (std::all_of(ids.begin(), ids.end(), none))
    return rlwe::KeyLease(std::vector<rlwe::KeyView>(ids.size()));
  return source->lease(*stream, ids);
}

void Evaluator::State::expect_keys(std::span<const rlwe::KeyId> ids, u32 level,
                                   const char* what) const {
  KeyDemand demand(params().log_n());
  for (rlwe::KeyId id : ids)
    if (id != rlwe::kNoKey) demand.key(id, {level, key_level(id)});
  demand.expect(what);
}

void Evaluator::State::require_relinearisation(u32 level, const char* operation) const {
  if (!has_key(rlwe::kRelinearisation, level))
    expect_keys(std::span(&rlwe::kRelinearisation, 1), level, operation);
}

u64 Evaluator::State::find_rotation(i64 steps, u64 slots, u32 level) const {
  const i64 n = static_cast<i64>(slots), reduced = static_cast<i64>(reduced_steps(steps, slots));
  if (reduced == 0) return 1;
  // The key that was asked for by this number, before the others that do as well.
  const u64 asked = ring::galois_element_for_rotation(steps, params().log_n());
  if (has_key(asked, level)) return asked;
  for (i64 k = reduced; k < static_cast<i64>(params().slots()); k += n) {
    const u64 element = ring::galois_element_for_rotation(k, params().log_n());
    if (has_key(element, level)) return element;
  }
  return 0;
}

std::optional<u32> Evaluator::State::rotation_level(i64 steps, u64 slots, u32 level) const {
  std::optional<u32> highest;
  for (u64 k = reduced_steps(steps, slots); k < params().slots(); k += slots) {
    const u64 element = ring::galois_element_for_rotation(static_cast<i64>(k), params().log_n());
    if (element == rlwe::kNoKey || has_key(element, level)) return rlwe::SwitchKey::kAny;
    highest = std::max(highest, key_level(element));
  }
  return highest;
}

std::vector<u64> Evaluator::State::rotation_elements(std::span<const i64> steps, u64 slots,
                                                     u32 level, const char* operation) const {
  std::vector<u64> elements;
  bool all = true;
  for (i64 k : steps) all = (elements.emplace_back(find_rotation(k, slots, level)) != 0) && all;
  if (all) return elements;
  KeyDemand demand(params().log_n());
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (elements[i] != 1)
      demand.rotation(steps[i], {level, rotation_level(steps[i], slots, level)});
  demand.expect(operation);
  return elements;
}

u64 Evaluator::State::conjugation_element(u32 level) const {
  const rlwe::KeyId element = ring::galois_element_for_conjugation(params().log_n());
  if (!has_key(element, level)) expect_keys(std::span(&element, 1), level, "conjugate");
  return element;
}

double constant_scale(const Params& params, u32 level, double scale) {
  const double constant = params.rescale_ratio(level) * params.scale(level - 1) / scale;
  if (!(constant >= 0x1p10))  // the constant would be rounded to next to nothing
    throw StateError(cat("scale ", scale, " at level ", level, " leaves a constant the scale ",
                         constant, ", expected at least 1024; rescale first"),
                     {{"scale", scale}, {"level", level}});
  return constant;
}

}  // namespace crenel::ckks
