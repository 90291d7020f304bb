// Params: checked, derived and shared state; named sets; names of kinds of arithmetic.
#include "crenel/tfhe/params.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "core/sha256.h"
#include "crenel/core/error.h"
#include "tfhe/params/noise.h"
#include "tfhe/params/plan.h"
#include "tfhe/params/preset_specs.h"
#include "tfhe/params/security.h"
#include "tfhe/params/validate.h"

namespace crenel::tfhe {

struct Params::State {
  Spec spec;
  SlotCount slots{1};
  std::vector<u64> primes;
  u64 modulus = 0;
  DecompLevels digits, switch_digits;
  double p_fail_log2 = 0, security_bits = 0;
  std::string id;

  State(Spec spec, SlotCount slots);
};

namespace {

constexpr double kNormBits = 128.0;  // both of security and of -log2 p_fail

constexpr const char* kArithmetics[] = {"exact", "approx", "split"};  // in the order of Arithmetic

// Every field that changes what keys and ciphertexts mean goes into the hash, little-endian. Names
// and labels stay out.
std::string content_hash(const Spec& spec, const device::TorusPlan& plan) {
  Sha256 hash;
  const auto put = [&hash](u64 value) {
    std::array<u8, 8> bytes;
    for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<u8>(value >> (8 * i));
    hash.update(bytes);
  };
  static constexpr char kDomain[] = "crenel.tfhe.params.1";
  for (const char c : kDomain) {
    const u8 byte = static_cast<u8>(c);
    hash.update({&byte, 1});
  }
  for (const u64 value : {u64(plan.lwe_dim), u64(plan.glwe_dim), u64(plan.slots), u64(plan.log_n),
                          u64(plan.log_lwe_modulus), u64(plan.path), u64(plan.arithmetic),
                          u64(plan.secret), plan.modulus, u64(plan.base_log), u64(plan.digits),
                          u64(plan.log_switch_modulus), u64(plan.switch_base_log),
                          u64(spec.plain_modulus), u64(spec.padded), u64(plan.primes.size())})
    put(value);
  for (const u64 p : plan.primes) put(p);
  const Sha256::Digest digest = hash.finish();
  return hex(std::span(digest).first(16));
}

void throw_problems(const std::string& name, const std::vector<std::string>& problems) {
  std::string message =
      name.empty() ? "invalid TFHE parameters:" : "invalid TFHE parameters '" + name + "':";
  std::vector<ErrorField> fields;
  for (const std::string& problem : problems) {
    message += "\n  " + problem;
    fields.push_back({"problem", problem});
  }
  throw ParameterError(message, std::move(fields));
}

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

const Spec& find_preset(const std::string& name) {
  const std::vector<Spec>& specs = preset_specs();
  const std::string wanted = lower(name);
  const auto it = std::find_if(specs.begin(), specs.end(),
                               [&](const Spec& spec) { return lower(spec.name) == wanted; });
  if (it != specs.end()) return *it;
  std::string known;
  for (const Spec& spec : specs) known += (known.empty() ? "" : " ") + spec.name;
  throw ParameterError(cat("no TFHE parameter set is named '", name, "'; known: ", known),
                       {{"name", name}});
}

// One digit after the point, for people.
std::string bits(double value) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << value;
  return out.str();
}

}  // namespace

const char* to_string(Arithmetic arithmetic) { return kArithmetics[static_cast<u8>(arithmetic)]; }

Arithmetic arithmetic_from_string(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kArithmetics); ++i)
    if (name == kArithmetics[i]) return static_cast<Arithmetic>(i);
  constexpr const char* kExpected = "'exact', 'approx' or 'split'";
  throw ParameterError(cat("arithmetic must be ", kExpected, ", got '", name, "'"),
                       {{"arithmetic", std::string(name)}, {"expected", kExpected}});
}

Params::State::State(Spec wanted, SlotCount r) : spec(std::move(wanted)), slots(r) {
  const device::TorusPlan plan = plan_of(spec, slots);
  primes = plan.primes;
  modulus = plan.modulus;
  digits = DecompLevels(plan.digits);
  switch_digits = DecompLevels(plan.switch_digits);
  p_fail_log2 = failure_log2(plan, std::sqrt(kErrorVariance), spec.max_norm2, spec.plain_modulus);
  security_bits = spec.security_bits > 0 ? spec.security_bits : security_estimate(spec);
  id = content_hash(spec, plan);
}

Params::Params(std::shared_ptr<const State> state) : state_(std::move(state)) {}

std::vector<std::string> Params::validate(const Spec& spec) { return validate_spec(spec); }

Params Params::from_spec(Spec spec) {
  const std::vector<std::string> problems = validate_spec(spec);
  if (!problems.empty()) throw_problems(spec.name, problems);
  return Params(std::make_shared<const State>(std::move(spec), SlotCount(1)));
}

Params Params::preset(const std::string& name) { return from_spec(find_preset(name)); }

std::vector<std::string> Params::preset_names() {
  std::vector<std::string> names;
  for (const Spec& spec : preset_specs()) names.push_back(spec.name);
  return names;
}

std::string Params::preset_description(const std::string& name) {
  return find_preset(name).description;
}

Params Params::with_slots(SlotCount slots) const {
  if (slots.value < 1 || slots.value > kMaxSlots)
    throw ParameterError(
        cat("slots is ", slots, ", expected 1..", kMaxSlots, " messages under a mask"),
        {{"slots", cat(slots)}, {"max", cat(kMaxSlots)}});
  const std::string problem = plan_problem(plan_of(state_->spec, slots));
  if (!problem.empty())
    throw UnsupportedError(cat("'", name(), "' with ", slots, " slots: ", problem),
                           {{"name", name()}, {"slots", cat(slots)}});
  return Params(std::make_shared<const State>(state_->spec, slots));
}

Params Params::with_arithmetic(Arithmetic arithmetic) const {
  Spec spec = state_->spec;
  spec.arithmetic = arithmetic;
  const std::string problem = plan_problem(plan_of(spec, slots()));
  if (!problem.empty())
    throw UnsupportedError(cat("'", spec.name, "': ", problem),
                           {{"name", spec.name}, {"arithmetic", to_string(arithmetic)}});
  return Params(std::make_shared<const State>(std::move(spec), state_->slots));
}

const Spec& Params::spec() const { return state_->spec; }
const std::string& Params::name() const { return state_->spec.name; }
SlotCount Params::slots() const { return state_->slots; }
Arithmetic Params::arithmetic() const { return state_->spec.arithmetic; }
u64 Params::modulus() const { return state_->modulus; }
const std::vector<u64>& Params::primes() const { return state_->primes; }
DecompLevels Params::digits() const { return state_->digits; }
DecompLevels Params::switch_digits() const { return state_->switch_digits; }
double Params::p_fail_log2() const { return state_->p_fail_log2; }
double Params::security_bits() const { return state_->security_bits; }

bool Params::below_norm() const {
  return p_fail_log2() > -kNormBits || security_bits() < kNormBits;
}

std::string Params::warning() const {
  if (!below_norm()) return {};
  std::string what;
  if (security_bits() < kNormBits) what = cat(bits(security_bits()), " bits of security");
  if (p_fail_log2() > -kNormBits)
    what += cat(what.empty() ? "" : " and ", "a failure probability of 2^", bits(p_fail_log2()),
                " a bootstrap");
  return cat("parameter set '", name(), "' has ", what, "; today's norm is ", kNormBits,
             " bits and 2^-", kNormBits);
}

const std::string& Params::id() const { return state_->id; }
bool Params::operator==(const Params& other) const { return state_->id == other.state_->id; }

}  // namespace crenel::tfhe
