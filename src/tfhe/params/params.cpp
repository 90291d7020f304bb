// Params: checked, derived and shared state; named sets; names of kinds of arithmetic.
#include "crenel/tfhe/params.h"

#include <algorithm>
#include <array>
#include <bit>

#include "core/sha256.h"
#include "crenel/core/error.h"
#include "tfhe/params/noise.h"
#include "tfhe/params/plan.h"
#include "tfhe/params/preset_specs.h"
#include "tfhe/params/validate.h"

namespace crenel::tfhe {

struct Params::State {
  Spec spec;
  SlotCount slots{1};
  std::vector<u64> primes;
  u64 modulus = 0;
  DecompLevels digits, switch_digits;
  double p_fail_log2 = 0, security_bits = 0;
  bool allow_insecure = false;
  std::string id;

  State(Spec spec, SlotCount slots, bool allow_insecure);
};

namespace {

constexpr const char* kArithmetics[] = {"exact", "approx", "split"};  // in the order of Arithmetic

// Every field that changes what keys and ciphertexts mean, and everything that the set claims of
// itself, goes into the hash, little-endian: equal ids are equal promises. Prose stays out.
std::string content_hash(const Spec& spec, const device::TorusPlan& plan) {
  Sha256 hash;
  const auto put = [&hash](u64 value) {
    std::array<u8, 8> bytes;
    for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<u8>(value >> (8 * i));
    hash.update(bytes);
  };
  static constexpr char kDomain[] = "crenel.tfhe.params.2";
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
  // + 0.0: of the two zeros one
  put(std::bit_cast<u64>(spec.max_norm2));
  put(std::bit_cast<u64>(spec.security_bits + 0.0));
  put(u64(spec.paper));
  if (spec.group != 0)
    for (const u64 value : {u64(spec.group), u64(spec.switch_digits)}) put(value);
  if (spec.differences) put(1);
  const std::string& name = spec.former_name.empty() ? spec.name : spec.former_name;
  put(name.size());
  hash.update({reinterpret_cast<const u8*>(name.data()), name.size()});
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
  for (const auto field : {&Spec::name, &Spec::former_name})
    for (const Spec& spec : specs)
      if (!wanted.empty() && lower(spec.*field) == wanted) return spec;
  std::string known;
  for (const Spec& spec : specs) known += (known.empty() ? "" : " ") + spec.name;
  throw ParameterError(cat("no TFHE parameter set is named '", name, "'; known: ", known),
                       {{"name", name}});
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

namespace {

// A set of the library under its present name, whichever of its names it came by.
Spec renamed(Spec spec) {
  const Spec* own = own_set(spec);
  spec.former_name.clear();
  if (own == nullptr || own->former_name.empty()) return spec;
  if (spec.name != own->name && spec.name != own->former_name) return spec;
  spec.name = own->name;
  spec.former_name = own->former_name;
  return spec;
}

}  // namespace

Params::State::State(Spec wanted, SlotCount r, bool allowed)
    : spec(renamed(std::move(wanted))), slots(r), allow_insecure(allowed) {
  const device::TorusPlan plan = plan_of(spec, slots);
  primes = plan.primes;
  modulus = plan.modulus;
  digits = DecompLevels(plan.digits);
  switch_digits = DecompLevels(plan.switch_digits);
  p_fail_log2 = promise_log2(plan, spec);
  security_bits = believed_security(spec);
  id = content_hash(spec, plan);
}

Params::Params(std::shared_ptr<const State> state) : state_(std::move(state)) {}

std::vector<std::string> Params::validate(const Spec& spec, bool allow_insecure) {
  return validate_spec(spec, allow_insecure);
}

Params Params::from_spec(Spec spec, bool allow_insecure) {
  const std::vector<std::string> problems = validate_spec(spec, allow_insecure);
  if (!problems.empty()) throw_problems(spec.name, problems);
  return Params(std::make_shared<const State>(std::move(spec), SlotCount(1), allow_insecure));
}

Params Params::preset(const std::string& name, bool allow_insecure) {
  const Spec& spec = find_preset(name);
  if (spec.name.starts_with("toy-") && !allow_insecure)
    throw ParameterError(
        cat("TFHE parameter set '", spec.name,
            "' is for tests and offers no security; pass allow_insecure to use it"),
        {{"name", spec.name}, {"lwe_dim", spec.lwe_dim.value}});
  return from_spec(spec, allow_insecure);
}

std::vector<std::string> Params::preset_names() {
  std::vector<std::string> names;
  for (const Spec& spec : preset_specs()) names.push_back(spec.name);
  return names;
}

std::string Params::preset_description(const std::string& name) {
  return find_preset(name).description;
}

std::string Params::preset_of_id(const std::string& id) {
  for (const Spec& spec : preset_specs()) {
    device::TorusPlan plan = plan_of(spec, SlotCount(1));
    for (plan.slots = 1; plan.slots <= kMaxSlots; ++plan.slots)
      for (std::size_t kind = 0; kind < std::size(kArithmetics); ++kind) {
        plan.arithmetic = static_cast<device::Arithmetic>(kind);
        if (content_hash(spec, plan) == id) return spec.name;
      }
  }
  return {};
}

Params Params::with_slots(SlotCount slots) const {
  if (slots.value < 1 || slots.value > kMaxSlots)
    throw ParameterError(
        cat("slots is ", slots, ", expected 1..", kMaxSlots, " messages under a mask"),
        {{"slots", slots.value}, {"max", kMaxSlots}});
  const std::string problem = plan_problem(plan_of(state_->spec, slots), state_->spec.max_norm2);
  if (!problem.empty())
    throw UnsupportedError(cat("'", name(), "' with ", slots, " slots: ", problem),
                           {{"name", name()}, {"slots", slots.value}});
  return checked(std::make_shared<const State>(state_->spec, slots, state_->allow_insecure));
}

Params Params::with_arithmetic(Arithmetic arithmetic) const {
  Spec spec = state_->spec;
  spec.arithmetic = arithmetic;
  const std::string problem = plan_problem(plan_of(spec, slots()), spec.max_norm2);
  if (!problem.empty())
    throw UnsupportedError(cat("'", spec.name, "': ", problem),
                           {{"name", spec.name}, {"arithmetic", to_string(arithmetic)}});
  return checked(
      std::make_shared<const State>(std::move(spec), state_->slots, state_->allow_insecure));
}

Params Params::with_step(u32 step) const {
  Spec spec = state_->spec;
  if (spec.group == 0)
    throw UnsupportedError(
        cat("'", name(), "' takes one secret bit a step, expected a set with ", "groups"),
        {{"name", name()}, {"step", step}});
  if (step == 0 || spec.made_group() % step != 0)
    throw ParameterError(cat("step is ", step, ", expected a divisor of ", spec.made_group(),
                             ", the group of the evaluation keys of '", name(), "'"),
                         {{"step", step}, {"group", spec.made_group()}});
  spec.step = step;
  const std::string problem = plan_problem(plan_of(spec, slots()), spec.max_norm2);
  if (!problem.empty())
    throw UnsupportedError(cat("'", spec.name, "' with steps of ", step, ": ", problem),
                           {{"name", spec.name}, {"step", step}});
  return checked(
      std::make_shared<const State>(std::move(spec), state_->slots, state_->allow_insecure));
}

Params Params::with_key_group(u32 group) const {
  Spec spec = state_->spec;
  if (spec.group == 0)
    throw UnsupportedError(
        cat("'", name(), "' takes one secret bit a step, expected a set with groups"),
        {{"name", name()}, {"key_group", group}});
  const u32 n = spec.lwe_dim.value;
  if (group == 0 || group > device::kMaxGroup || n % group != 0)
    throw ParameterError(cat("key_group is ", group, ", expected 1..", device::kMaxGroup,
                             " and a divisor of n = ", n, " of '", name(), "'"),
                         {{"key_group", group}, {"lwe_dim", n}});
  spec.key_group = group == spec.group ? 0 : group;
  const u32 step = group % spec.step == 0 ? spec.step : group;
  const auto grouped =
      std::make_shared<const State>(std::move(spec), state_->slots, state_->allow_insecure);
  return Params(grouped).with_step(step);
}

// What from_spec saw had one slot and another arithmetic: p_fail may have crossed the norm.
Params Params::checked(std::shared_ptr<const State> state) {
  Params made(std::move(state));
  const State& s = *made.state_;
  if (made.below_norm() && !s.allow_insecure && !may_be_below_norm(s.spec))
    throw ParameterError(cat(made.warning(), ": it needs allow_insecure"),
                         {{"name", s.spec.name},
                          {"slots", s.slots.value},
                          {"p_fail_log2", s.p_fail_log2},
                          {"security_bits", s.security_bits}});
  return made;
}

const Spec& Params::spec() const { return state_->spec; }
const std::string& Params::name() const { return state_->spec.name; }
const std::string& Params::former_name() const { return state_->spec.former_name; }
SlotCount Params::slots() const { return state_->slots; }
Arithmetic Params::arithmetic() const { return state_->spec.arithmetic; }
u64 Params::modulus() const { return state_->modulus; }
const std::vector<u64>& Params::primes() const { return state_->primes; }
DecompLevels Params::digits() const { return state_->digits; }
DecompLevels Params::switch_digits() const { return state_->switch_digits; }
double Params::p_fail_log2() const { return state_->p_fail_log2; }
double Params::security_bits() const { return state_->security_bits; }

bool Params::below_norm() const { return !warning().empty(); }
std::string Params::warning() const { return shortfall(name(), security_bits(), p_fail_log2()); }

const std::string& Params::id() const { return state_->id; }
bool Params::operator==(const Params& other) const { return state_->id == other.state_->id; }

}  // namespace crenel::tfhe
