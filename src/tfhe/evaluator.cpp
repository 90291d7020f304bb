// Evaluator: state and checks, the bootstrap, operations without a bootstrap.
#include "crenel/tfhe/evaluator.h"

#include <algorithm>
#include <cmath>

#include "crenel/core/error.h"
#include "crenel/core/watch.h"
#include "crenel/device/account.h"
#include "device/room.h"
#include "tfhe/encoding.h"
#include "tfhe/evaluator_state.h"
#include "tfhe/keygen.h"

namespace crenel::tfhe {
namespace {

[[noreturn]] void differ(const std::string& what, const std::string& found,
                         const std::string& expected, const std::string& advice = {}) {
  throw StateError(cat(what, " ", found, ", expected ", expected, advice),
                   {{"found", found}, {"expected", expected}});
}

/// What no operation has to beat, even of a set that promises more.
constexpr double kNormLog2 = -128;

// What multiplying by `factor` modulo 2^log_modulus does to noise.
double centred(i64 factor, u32 log_modulus) {
  const u32 shift = 64 - log_modulus;
  return static_cast<double>(static_cast<i64>(static_cast<u64>(factor) << shift) >> shift);
}

}  // namespace

Evaluator::State::State(Context context_, EvaluationKeys keys_, const EvaluatorOptions& options)
    : context(std::move(context_)),
      keys(std::move(keys_)),
      max_p_fail_log2(
          options.max_p_fail_log2.value_or(std::max(params().p_fail_log2(), kNormLog2))),
      budget(noise_budget(plan(), std::sqrt(kErrorVariance))) {
  if (!(max_p_fail_log2 <= 0))
    throw ParameterError(cat("max_p_fail_log2 is ", max_p_fail_log2,
                             ", expected at most 0, a logarithm of a probability"),
                         {{"max_p_fail_log2", max_p_fail_log2}});
  if (const auto* data = keys.data()) {
    expect_home(data->params_id, data->bootstrap, home(), "keys");
    expect_key_group(*data, home());
    if (data->home->plan.group != plan().group) keys = with_steps_of(context, keys);
  }
  take_steps(options);
}

Evaluator Context::evaluator(EvaluationKeys keys, const EvaluatorOptions& options) const {
  return Evaluator(std::make_shared<Evaluator::State>(*this, std::move(keys), options));
}

Evaluator::Evaluator(std::shared_ptr<const State> state) : state_(std::move(state)) {}
const Context& Evaluator::context() const { return state_->context; }
const EvaluationKeys& Evaluator::keys() const { return state_->keys; }
double Evaluator::max_p_fail_log2() const { return state_->max_p_fail_log2; }

void Evaluator::State::check(const Ciphertext& a) const {
  expect_home(a.params_id(), a.data().payload, home(), "ciphertext");
  expect_same_secret_key(a.secret_key_id(), keys.secret_key_id(), "ciphertext", "these keys");
}

void Evaluator::State::check_size(const Ciphertext& a, u64 expected) const {
  if (a.size() != expected) differ("size", cat(a.size()), cat(expected));
}

void Evaluator::State::check_plain_modulus(const Ciphertext& a, u32 expected,
                                           const char* operation) const {
  if (a.plain_modulus() != expected)
    differ(cat(operation, ": plain modulus"), cat(a.plain_modulus()), cat(expected));
}

void Evaluator::State::check_log_modulus(const Ciphertext& a, u32 expected,
                                         const char* operation) const {
  if (a.data().log_modulus != expected)
    differ(cat(operation, ": ciphertext modulo"), cat("2^", a.data().log_modulus),
           cat("2^", expected));
}

void Evaluator::State::check_inputs(std::span<const Ciphertext* const> inputs, u32 plain_modulus,
                                    const char* operation) const {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check(*inputs[i]);
    check_size(*inputs[i], inputs[0]->size());
    // The moduli 4, 6 and 8 are those of bits for gates of 2, 3 and 4 inputs.
    if (inputs[i]->plain_modulus() != plain_modulus)
      differ(cat(operation, ": plain modulus"), cat(inputs[i]->plain_modulus()), cat(plain_modulus),
             plain_modulus <= 8 ? cat("; encrypt its bits with fan_in=", plain_modulus / 2)
                                : std::string());
    check_log_modulus(*inputs[i], log_q(), operation);
    for (std::size_t j = 0; j < i; ++j)
      if (inputs[i] == inputs[j])
        differ(cat(operation, ": inputs ", j, " and ", i, " are"), "one ciphertext",
               "independent ones, whose noise does not add up");
  }
}

void Evaluator::State::check_bits(const Ciphertext& a, const char* operation) const {
  if (a.bound() > 2)
    differ(
        cat(operation, ": messages below"), cat(a.bound()), "bits",
        "; compare messages (MessageEvaluator::compare) or look up a table of 0 and 1 to get bits");
}

const EvaluationKeys::Data& Evaluator::State::bootstrap_keys() const {
  if (keys.data() == nullptr)
    throw KeyMissingError(
        "an evaluator without evaluation keys cannot bootstrap: client.evaluation_keys()",
        {{"operation", "bootstrap"}, {"key", "bootstrap"}});
  return *keys.data();
}

double Evaluator::State::failure(const Noise& noise, u32 log_modulus, double margin) const {
  return tail_log2(noise.variance() + reading(log_modulus), margin);
}

void Evaluator::State::judge(const Noise& noise, u32 log_modulus, double margin,
                             const char* operation) const {
  judge_reading(noise.variance() + reading(log_modulus), noise, margin, operation);
}

void Evaluator::State::judge_reading(double variance, const Noise& noise, double margin,
                                     const char* operation) const {
  constexpr double kRounding = 1e-9;  // relative, of the order in which variances were added up
  const double found = tail_log2(variance, margin);
  if (found <= max_p_fail_log2 * (1 - kRounding)) return;
  throw ParameterError(
      cat(operation, ": a bootstrap of these inputs fails with a probability of up to 2^",
          brief(found), ", expected at most 2^", brief(max_p_fail_log2), " ('", params().name(),
          "' promises 2^", brief(params().p_fail_log2()),
          "): refresh what was added up, compose wide gates of those with two inputs, take "
          "another set or raise the evaluator's max_p_fail_log2"),
      {{"operation", operation},
       {"p_fail_log2", found},
       {"max_p_fail_log2", max_p_fail_log2},
       {"promise", params().p_fail_log2()},
       {"noise_variance", noise.variance()}});
}

Noise Evaluator::State::bootstrap_noise(u64 size, u32 log_modulus) const {
  return {size, bootstrap_variance(plan(), budget, log_modulus)};
}

Noise Evaluator::State::bootstrap_noise(u64 size, u32 outputs, u32 log_modulus) const {
  return {size * outputs, bootstrap_variance(plan(), budget, log_modulus), outputs};
}

Noise Evaluator::State::input_noise() const {
  return {1, std::max(bootstrap_variance(plan(), budget, log_q()), kErrorVariance)};
}

device::Buffer Evaluator::State::allocate_rows(u64 rows) const {
  const u64 bytes = rows * plan().words() * sizeof(u32);
  device::expect_room(stream(), {.device = bytes}, [&] {
    return core::MemoryRequest{.what = cat("a ciphertext of ", rows, " rows"),
                               .advice = "take fewer messages at a time"};
  });
  return stream().allocate(rows * plan().words() * sizeof(u32));
}

Ciphertext Evaluator::State::wrap(device::Buffer rows, u64 size, u32 plain_modulus, u32 log_modulus,
                                  Noise noise) const {
  auto data = empty_ciphertext(home(), size, plain_modulus, log_modulus);
  data->secret_key = keys.secret_key_id();
  data->payload = std::move(rows);
  data->noise = std::move(noise);
  return Ciphertext(std::move(data));
}

void Evaluator::State::combine(u32* out, std::span<const device::LweTerm> terms, u64 constant,
                               u64 rows, u32 log_modulus) const {
  home().torus->linear(stream(), {out, {rows, plan().rest_dim(), plan().slots, log_modulus}}, terms,
                       static_cast<u32>(constant));
}

device::Buffer Evaluator::State::combined(std::span<const device::LweTerm> terms, u64 constant,
                                          u64 rows, u32 log_modulus) const {
  device::Buffer out = allocate_rows(rows);
  combine(out.as<u32>(), terms, constant, rows, log_modulus);
  return out;
}

Ciphertext Evaluator::State::sums(std::span<const SelectedSum> sums, u64 size) const {
  const u32 p = params().spec().plain_modulus;
  std::vector<std::vector<device::LweRowsTerm>> addends;
  std::vector<device::LweSum> wanted;
  addends.reserve(sums.size());
  SecretKeyId id;
  Noise noise;
  for (const SelectedSum& sum : sums) {
    Noise own(size);
    auto& terms = addends.emplace_back();
    for (const auto& [selected, factor] : sum.terms) {
      const Ciphertext::Data& data = selected->from->data();
      expect_same_secret_key(data.secret_key, id, "ciphertext", "the others");
      id = either(id, data.secret_key);
      terms.push_back({data.payload.as<const u32>() + selected->first / data.slots * data.words,
                       selected->step, factor});
      own.add(selected->noise, centred(factor, log_q()));
    }
    noise.append(own);
    const i64 m = (sum.constant % i64(p) + p) % i64(p);
    wanted.push_back({terms, static_cast<u32>(encode_message(static_cast<u64>(m), p, log_q()))});
  }
  const u64 rows = sums.size() * ((size + plan().slots - 1) / plan().slots);
  device::Buffer out = allocate_rows(rows);
  home().torus->sums(stream(), {out.as<u32>(), {rows, plan().rest_dim(), plan().slots, log_q()}},
                     wanted);
  Ciphertext all = wrap(std::move(out), sums.size() * size, p, log_q(), std::move(noise));
  all.data().secret_key = id;
  return all;
}

void Evaluator::State::bootstrap(u32* out, u32 log_out, const u32* in, u32 log_in, u64 rows,
                                 const device::LutView& luts) const {
  if (plan().rests_extracted()) return bootstrap_groups(out, in, rows, luts);
  const auto& data = bootstrap_keys();
  auto& kernels = home().variant(log_in, plan().slots);
  auto shape = home().torus->switch_shape();
  shape.log_out_modulus = log_out;
  const u64 extracted = luts.outputs * plan().extracted_words();  // words of a row's outputs
  u64 most = std::clamp<u64>(chunk_bytes / (extracted * sizeof(u64)), 1, rows);
  if (watch::reported()) most = std::min(most, reported_rows(rows));
  device::expect_room(stream(), {.device = most * extracted * sizeof(u64)}, [&] {
    return core::MemoryRequest{.what = cat("bootstraps of ", rows, " rows"),
                               .advice = "take fewer messages at a time"};
  });
  const watch::Task task(units(rows), "bootstraps");
  device::Buffer middle = stream().allocate(most * extracted * sizeof(u64));
  for (u64 first = 0; first < rows; first += most) {
    const u64 count = std::min(most, rows - first);
    device::LutView part = luts;
    if (part.index != nullptr) part.index += first * plan().slots;
    {
      const device::Stage stage(stream(), "blind_rotate");
      kernels.blind_rotate(stream(), {middle.as<u64>(), kernels.extracted(count * luts.outputs)},
                           {in + first * plan().words(), kernels.at_rest(count)},
                           data.bootstrap.data(), part);
    }
    const device::Stage stage(stream(), "key_switch");
    const u64 outputs = count * luts.outputs;
    home().torus->key_switch(
        stream(), shape, {out + first * luts.outputs * plan().words(), shape.out(outputs)},
        {middle.as<const u64>(), shape.in(outputs)}, shape.key(data.key_switch.data()));
    watch::advance(units(count));
  }
}

void Evaluator::State::bootstrap_groups(u32* out, const u32* in, u64 rows,
                                        const device::LutView& luts) const {
  bootstrap_keys();
  const u64 row = plan().read_words() * sizeof(u32);
  u64 most = std::clamp<u64>(chunk_bytes / row, 1, rows);
  if (watch::reported()) most = std::min(most, reported_rows(rows));
  device::expect_room(stream(), {.device = most * row}, [&] {
    return core::MemoryRequest{.what = cat("bootstraps of ", rows, " rows"),
                               .advice = "take fewer messages at a time"};
  });
  const watch::Task task(units(rows), "bootstraps");
  device::Buffer switched = stream().allocate(most * row);
  const Form& form = form_of(rows);
  for (u64 first = 0; first < rows; first += most) {
    const u64 count = std::min(most, rows - first);
    device::LutView part = luts;
    if (part.index != nullptr) part.index += first * plan().slots;
    switch_groups(switched.as<u32>(), in + first * plan().words(), count);
    rotate_groups(form, out + first * luts.outputs * plan().words(), switched.as<const u32>(),
                  count, part);
    watch::advance(units(count));
  }
}

void Evaluator::State::switch_groups(u32* switched, const u32* in, u64 rows) const {
  auto& kernels = *home().torus;
  const auto shape = kernels.switch_shape();
  const device::Stage stage(stream(), "key_switch");
  kernels.key_switch(stream(), shape, {switched, shape.out(rows)}, {in, shape.in(rows)},
                     shape.key(bootstrap_keys().key_switch.data()));
}

void Evaluator::State::rotate_groups(const Form& form, u32* out, const u32* switched, u64 rows,
                                     const device::LutView& luts) const {
  auto& kernels = *form.kernels;
  const device::Stage stage(stream(), "blind_rotate");
  const device::Stage which(stream(),
                            forms.size() > 1 ? cat("steps of ", form.step) : std::string());
  const void* key = form.key ? form.key->data() : bootstrap_keys().bootstrap.data();
  kernels.blind_rotate(stream(), {out, kernels.extracted(rows * luts.outputs)},
                       {switched, kernels.read(rows)}, key, luts);
}

u64 Evaluator::State::reported_rows(u64 rows) const {
  // A GPU wants thousands of rows a call, a host some for every thread.
  const u64 least = home().device->info().kind == device::Kind::cuda ? 4096 : 64;
  return std::max(least, rows / 64);
}

device::Buffer Evaluator::State::bootstrapped(const u32* in, u64 rows,
                                              const device::LutView& luts) const {
  device::Buffer out = allocate_rows(rows * luts.outputs);
  bootstrap(out.as<u32>(), log_q(), in, log_q(), rows, luts);
  return out;
}

Ciphertext Evaluator::linear(std::span<const Term> terms, i64 constant, u32 plain_modulus) const {
  const State& s = *state_;
  if (terms.empty())
    throw ParameterError("linear combination of no terms, expected at least one", {{"terms", 0}});
  std::vector<device::LweTerm> addends;
  SecretKeyId id;  // none: known messages only, of any evaluator
  Noise noise(terms[0].input == nullptr ? 0 : terms[0].input->size());
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (terms[i].input == nullptr)
      throw ParameterError(cat("linear combination: term ", i, " has no input"), {{"term", i}});
    s.check(*terms[i].input);
    s.check_size(*terms[i].input, terms[0].input->size());
    s.check_plain_modulus(*terms[i].input, terms[0].input->plain_modulus(), "linear combination");
    s.check_log_modulus(*terms[i].input, terms[0].input->data().log_modulus, "linear combination");
    expect_same_secret_key(terms[i].input->secret_key_id(), id, "ciphertext", "the others");
    id = either(id, terms[i].input->secret_key_id());
    addends.push_back({terms[i].input->data().payload.as<const u32>(), terms[i].factor});
    noise.add(terms[i].input->data().noise,
              centred(terms[i].factor, terms[i].input->data().log_modulus));
  }
  const auto& first = terms[0].input->data();
  const i64 p = first.plain_modulus, m = ((constant % p) + p) % p;
  u32 p_out = first.plain_modulus;
  if (plain_modulus != 0) {
    p_out = plain_modulus;
    if (p_out % 2 != 0 || p_out > (u64(1) << first.log_modulus) / 4)
      throw ParameterError(
          cat("plain modulus ", p_out, ", expected an even number up to 2^", first.log_modulus - 2),
          {{"plain_modulus", p_out}});
  }
  Ciphertext sum =
      s.wrap(s.combined(addends,
                        encode_message(static_cast<u64>(m), first.plain_modulus, first.log_modulus),
                        first.rows(), first.log_modulus),
             first.size, p_out, first.log_modulus, std::move(noise));
  sum.data().secret_key = id;
  return sum;
}

Ciphertext Evaluator::trivial(std::span<const u64> messages, u32 plain_modulus) const {
  const State& s = *state_;
  const u32 p = checked_plain_modulus(s.params(), plain_modulus);
  check_messages(messages, s.params(), p);
  auto data = empty_ciphertext(s.home(), messages.size(), p, log_modulus_for(s.params(), p));
  const u32 n = s.plan().rest_dim(), r = data->slots;
  std::vector<u32> rows(data->rows() * data->words);
  for (u64 i = 0; i < messages.size(); ++i)
    rows[i / r * data->words + n + i % r] =
        static_cast<u32>(encode_message(messages[i], p, data->log_modulus));
  data->bound =
      static_cast<u32>(std::max<u64>(2, 1 + *std::max_element(messages.begin(), messages.end())));
  data->payload = s.allocate_rows(data->rows());
  s.stream().copy_in(data->payload.data(), rows.data(), rows.size() * sizeof(u32));
  return Ciphertext(std::move(data));
}

}  // namespace crenel::tfhe
