// Params: checked, derived and shared state; named sets.
#include <algorithm>
#include <array>

#include "ckks/params/base_conversion.h"
#include "ckks/params/chain.h"
#include "ckks/params/preset_tables.h"
#include "ckks/params/scales.h"
#include "ckks/params/security.h"
#include "ckks/params/validate.h"
#include "ckks/scale.h"
#include "core/sha256.h"
#include "crenel/core/error.h"
#include "rlwe/key_levels.h"

namespace crenel::ckks {

struct Params::State {
  Spec spec;
  std::vector<u64> primes;
  std::vector<double> scales, ratios, log_q;
  std::vector<std::optional<u32>> highest_aligned;  ///< by level
  double log_p = 0, log_pq = 0, security_bits = 0, scale_deviation = 0;
  bool insecure = false;
  std::string id;
};

namespace {

// Every field that changes what a computation means goes into the hash, little-endian and with its
// length, so that different sets never share an encoding. Name and provenance stay out.
std::string content_hash(const Spec& spec) {
  Sha256 hash;
  const auto put = [&hash](u64 value) {
    std::array<u8, 8> bytes;
    for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<u8>(value >> (8 * i));
    hash.update(bytes);
  };
  static constexpr char kDomain[] = "crenel.ckks.params.1";
  for (const char c : kDomain) {
    const u8 byte = static_cast<u8>(c);
    hash.update({&byte, 1});
  }
  for (const u64 value : {spec.log_n, spec.log_scale, spec.normal_top_level, spec.hamming_weight})
    put(value);
  for (const std::vector<u64>* list : {&spec.main, &spec.terminal, &spec.auxiliary}) {
    put(list->size());
    for (const u64 p : *list) put(p);
  }
  put(spec.levels.size());
  for (const LevelModulus& level : spec.levels) put(level.main), put(level.terminal);
  const Sha256::Digest digest = hash.finish();
  return hex(std::span(digest).first(16));
}

std::string known_names() {
  std::string names;
  for (const PresetTable& table : preset_tables()) {
    if (!names.empty()) names += ' ';
    names += table.name;
  }
  return names;
}

const PresetTable& find_preset(const std::string& name) {
  const auto tables = preset_tables();
  const auto it = std::find_if(tables.begin(), tables.end(),
                               [&](const PresetTable& table) { return table.name == name; });
  if (it == tables.end())
    throw ParameterError(cat("no parameter set is named '", name, "'; known: ", known_names()),
                         {{"name", name}});
  return *it;
}

}  // namespace

Params::Params(std::shared_ptr<const State> state) : state_(std::move(state)) {}

std::vector<SpecProblem> Params::validate(const Spec& spec, bool allow_insecure) {
  return validate_spec(spec, allow_insecure);
}

Params Params::from_spec(Spec spec, bool allow_insecure) {
  const std::vector<SpecProblem> problems = validate_spec(spec, allow_insecure);
  if (!problems.empty()) {
    std::string message = spec.name.empty() ? "invalid CKKS parameters:"
                                            : "invalid CKKS parameters '" + spec.name + "':";
    std::vector<ErrorField> fields;
    for (const SpecProblem& problem : problems) {
      message += "\n  " + std::string(to_string(problem.kind)) + ": " + problem.message;
      fields.push_back({std::string(to_string(problem.kind)), problem.message});
    }
    throw ParameterError(message, std::move(fields));
  }
  auto state = std::make_shared<State>();
  state->primes = chain_in_position_order(spec);
  state->primes.insert(state->primes.end(), spec.auxiliary.begin(), spec.auxiliary.end());
  state->scales = canonical_scales(spec);
  state->ratios = rescale_ratios(spec);
  state->log_q = level_log_q(spec);
  state->log_p = static_cast<double>(log2_product(spec.auxiliary));
  state->log_pq = log2_pq(spec);
  state->scale_deviation = ckks::scale_deviation(spec);
  state->security_bits = estimate_security_bits(spec.log_n, state->log_pq, spec.hamming_weight);
  state->insecure = state->security_bits < 128;
  state->id = content_hash(spec);
  state->spec = std::move(spec);
  const Params params(state);
  const rlwe::Chain chain = chain_of(params);
  for (u32 level = 0; level <= params.max_level(); ++level)
    state->highest_aligned.push_back(chain.highest_aligned(level));
  return params;
}

Params Params::preset(const std::string& name, bool allow_insecure) {
  const PresetTable& table = find_preset(name);
  if (name.starts_with("toy-") && !allow_insecure)
    throw ParameterError(
        cat("parameter set '", name,
            "' is for tests and offers no security; pass allow_insecure to use it"),
        {{"name", name}, {"log_n", table.log_n}});
  const auto copy = [](auto span) { return std::vector(span.begin(), span.end()); };
  Spec spec;
  spec.name = name;
  spec.log_n = table.log_n;
  spec.log_scale = table.log_scale;
  spec.main = copy(table.main);
  spec.terminal = copy(table.terminal);
  spec.auxiliary = copy(table.auxiliary);
  spec.levels = copy(table.levels);
  spec.normal_top_level = table.normal_top_level;
  spec.hamming_weight = table.hamming_weight;
  spec.provenance = table.provenance;
  return from_spec(std::move(spec), allow_insecure);
}

std::string Params::preset_description(const std::string& name) {
  return std::string(find_preset(name).description);
}

std::vector<std::string> Params::preset_names() {
  std::vector<std::string> names;
  for (const PresetTable& table : preset_tables()) names.emplace_back(table.name);
  return names;
}

const Spec& Params::spec() const { return state_->spec; }
const std::string& Params::name() const { return state_->spec.name; }
u32 Params::log_n() const { return state_->spec.log_n; }
u64 Params::ring_dim() const { return u64{1} << state_->spec.log_n; }
u64 Params::slots() const { return ring_dim() / 2; }
u32 Params::max_level() const { return static_cast<u32>(state_->spec.levels.size()) - 1; }
u32 Params::normal_top_level() const { return state_->spec.normal_top_level; }
u32 Params::alpha() const { return static_cast<u32>(state_->spec.auxiliary.size()); }
u32 Params::dnum() const { return (chain_limbs() + alpha() - 1) / alpha(); }
std::optional<u32> Params::highest_aligned(u32 level) const {
  return state_->highest_aligned[std::min(level, max_level())];
}
u32 Params::chain_limbs() const {
  return static_cast<u32>(state_->spec.main.size() + state_->spec.terminal.size());
}
const std::vector<u64>& Params::primes() const { return state_->primes; }
u32 Params::window_begin(u32 level) const {
  return static_cast<u32>(state_->spec.terminal.size()) -
         state_->spec.levels.at(rlwe::ordinary(level)).terminal;
}
u32 Params::window_end(u32 level) const {
  const bool foot = rlwe::is_short(level) && rlwe::ordinary(level) == normal_top_level();
  const u32 l = foot ? rlwe::base_of(level) : rlwe::ordinary(level);
  return static_cast<u32>(state_->spec.terminal.size()) + state_->spec.levels.at(l).main;
}
u32 Params::limb_count(u32 level) const {
  const u32 all = window_end(rlwe::ordinary(level)) - window_begin(level);
  return rlwe::is_short(level)
             ? all - (window_end(normal_top_level()) - window_end(rlwe::base_of(level)))
             : all;
}
double Params::scale(u32 level) const {
  return state_->scales[level <= state_->spec.normal_top_level ? level : 0];
}
double Params::rescale_ratio(u32 level) const { return state_->ratios.at(rlwe::ordinary(level)); }
double Params::log_q(u32 level) const {
  const auto& log_q = state_->log_q;
  if (!rlwe::is_short(level)) return log_q.at(level);
  return log_q.at(rlwe::ordinary(level)) - log_q.at(normal_top_level()) +
         log_q.at(rlwe::base_of(level));
}
double Params::max_value(u32 level, double scale) const {
  if (level > max_level())
    throw ParameterError(cat("level ", level, ", expected at most ", max_level()),
                         {{"level", level}, {"max_level", max_level()}});
  if (scale == 0.0) scale = this->scale(level);
  expect_scale(*this, level, scale, "scale");
  return largest_value(*this, level, scale);
}
double Params::log_p() const { return state_->log_p; }
double Params::log_pq() const { return state_->log_pq; }
double Params::security_bits() const { return state_->security_bits; }
bool Params::insecure() const { return state_->insecure; }
double Params::scale_deviation() const { return state_->scale_deviation; }
const std::string& Params::id() const { return state_->id; }
bool Params::operator==(const Params& other) const { return state_->id == other.state_->id; }

}  // namespace crenel::ckks
