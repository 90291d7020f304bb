// The bridge: plans and checks. docs/theory/bridge.md has the mathematics.
#include "crenel/bridge/bridge.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "bridge/objects.h"
#include "circuits/bootstrapping/plan.h"
#include "ckks/levels.h"
#include "random/sparse.h"
#include "rlwe/encapsulation.h"
#include "rlwe/secret/secret_key.h"
#include "tfhe/params/noise.h"

namespace crenel::bridge {

using circuits::BootstrapOptions;

namespace {

/// The sine is fitted where table values may lie: on quarters of the circle around every integer.
constexpr double kFitRadius = 0.25;

BootstrapOptions bootstrap_options(const ckks::Params& params, u64 slots) {
  BootstrapOptions o;
  o.slots = slots;
  o.order = circuits::BootstrapOrder::slot_to_coeff_first;
  o.message = circuits::BootstrapMessage::real;
  // Coefficients come with the reach that they have: nothing is multiplied before ModRaise.
  o.message_ratio = static_cast<u32>(std::lround(params.log_q(0)) - params.spec().log_scale);
  o.graph = false;
  return o;
}

std::shared_ptr<circuits::Bootstrapper::State> make_bootstrap(const ckks::Context& context,
                                                              u64 slots) {
  circuits::BootstrapPlan plan =
      circuits::plan_bootstrap(context.params(), bootstrap_options(context.params(), slots));
  plan.mod1.fit_radius = kFitRadius;
  return context.state().shared.get<circuits::Bootstrapper::State>(
      cat("bridge ", plan.options.slots), [&] {
        const circuits::BootstrapMatrices matrices(plan);
        return std::make_shared<circuits::Bootstrapper::State>(context, plan, matrices);
      });
}

[[noreturn]] void refuse_set(const tfhe::Params& params, const std::string& found,
                             const std::string& expected) {
  throw UnsupportedError(cat("a bridge to '", params.name(), "', ", found, ", expected ", expected),
                         {{"name", params.name()}, {"found", found}, {"expected", expected}});
}

// A device object of its own has streams and memory of its own, even of the same GPU.
void expect_shared(const device::Device& found, const ckks::Context::State& home,
                   const char* what) {
  ckks::expect_same_device(found, home, what);
  if (&found != &home.ring->device())
    throw StateError(cat(what, " of another device object of ", found.info().name,
                         "; let both contexts share one crenel.Device"),
                     {{"found", "another device object"}, {"expected", "the same"}});
}

}  // namespace

void expect_fitting(const ckks::Context& ckks, const tfhe::Context& tfhe) {
  const rlwe::RingContext& ring = *ckks.state().ring;
  const device::TorusPlan& plan = tfhe.state().plan;
  const tfhe::Params& set = tfhe.params();
  rlwe::expect_ring_switch(ring);
  if (!plan.rests_extracted() || plan.glwe_dim != 1)
    refuse_set(set,
               cat("whose ciphertexts rest under ",
                   plan.rests_extracted() ? cat(plan.glwe_dim, " polynomials") : "an LWE key"),
               "a set with groups and one polynomial, such as lut4-128");
  if (!set.spec().padded) refuse_set(set, "without padding", "a padded set such as lut4-128");
  if (plan.slots != 1) refuse_set(set, cat(plan.slots, " messages a mask"), "1");
  if (plan.rest_dim() > ring.ring_dim())
    refuse_set(set, cat("of degree ", plan.rest_dim()),
               cat("at most that of the CKKS ring, ", ring.ring_dim()));
  const double bits = ckks.params().log_q(0);
  const double most = std::log2(static_cast<double>(
      plan.path == device::NoisePath::raising ? plan.key_modulus() : plan.modulus));
  if (bits > most)
    throw UnsupportedError(cat("a bridge from ", ckks.params().name(), ", whose level 0 has ", bits,
                               " bits, to a ring of ", set.name(), " whose security is stated for ",
                               most, ": expected a set such as boot40"),
                           {{"log_q0", bits}, {"expected", cat("at most ", most)}});
  expect_shared(tfhe.device(), ckks.state(), "context of messages");
}

u64 Keys::bytes() const {
  u64 bytes = 0;
  data_->for_each([&](const rlwe::SwitchKey& key) { bytes += key.pairs.bytes(); });
  return bytes;
}
u64 Keys::wire_bytes() const {
  u64 bytes = 0;
  data_->for_each(
      [&](const rlwe::SwitchKey& key) { bytes += key.pairs.bytes() / 2 + sizeof(random::Seed); });
  return bytes;
}
const SecretKeyId& Keys::ckks_secret_key_id() const { return data_->ckks_secret_key; }
const SecretKeyId& Keys::tfhe_secret_key_id() const { return data_->tfhe_secret_key; }

namespace {

std::vector<rlwe::SwitchKey> make_turns(rlwe::SecretKey& secret, const rlwe::RingContext& ring,
                                        MergeLevels levels) {
  std::vector<rlwe::SwitchKey> turns;
  for (u32 i = 0; i < levels.count; ++i)
    turns.push_back(secret.make_galois_key(merging_element(ring, levels.first + i)));
  return turns;
}

}  // namespace

Keys make_keys(const ckks::Client& ckks, const tfhe::Client& tfhe) {
  expect_fitting(ckks.context(), tfhe.context());
  const u32 degree = small_degree(tfhe.context());
  const auto all = tfhe.state().secret.coefficients();
  const auto small = all.subspan(all.size() - degree);
  auto data = std::make_shared<Keys::Data>();
  data->ckks_params_id = ckks.context().params().id();
  data->tfhe_params_id = tfhe.context().params().id();
  data->ckks_secret_key = ckks.secret_key_id();
  data->tfhe_secret_key = tfhe.secret_key_id();
  data->ring = ckks.context().state().ring;
  data->rings = make_rings(ckks.context(), degree);
  const Rings& rings = *data->rings;
  rlwe::SecretKey& large = ckks.shared_state()->secret;
  data->down = large.make_ring_switch_down(small);

  auto source = random::SecretSource::from_os();
  const auto between =
      random::sample_dense_ternary(source, static_cast<u32>(rings.middle->ring_dim()));
  rlwe::SecretKey middle(rings.middle, std::move(source), between);
  data->middle = {middle.make_ring_switch_up(small),
                  make_turns(middle, *rings.middle, middle_levels(rings))};
  rlwe::SecretKey last(rings.last, random::SecretSource::from_os(), large,
                       rlwe::encapsulation_limbs(*data->ring));
  data->last = {last.make_ring_switch_up(between),
                make_turns(last, *rings.last, last_levels(rings))};
  return Keys(std::move(data));
}

Bridge::State::State(const ckks::Context& c, const tfhe::Context& t, u64 slots)
    : ckks(c),
      tfhe(t),
      boot(make_bootstrap(c, slots)),
      rings(*c.state().ring),
      packing(make_rings(c, small_degree(t)), boot->plan.slots(), small_degree(t),
              t.state().plan.log_lwe_modulus) {
  const u64 count = boot->plan.slots(), stride = c.params().ring_dim() / (2 * count);
  std::vector<u32> where(count);
  for (u64 j = 0; j < count; ++j) where[j] = static_cast<u32>(place_of(j, count) * stride);
  auto& stream = c.state().ring->stream();
  positions = stream.allocate(count * sizeof(u32));
  stream.copy_in(positions.data(), where.data(), positions.bytes());
  stream.synchronize();  // any stream may read it
}

Bridge::Bridge(const ckks::Context& ckks, const tfhe::Context& tfhe, u64 slots) {
  expect_fitting(ckks, tfhe);
  state_ = std::make_shared<const State>(ckks, tfhe, slots);
}

u64 Bridge::slots() const { return state_->slots(); }
u32 Bridge::messages() const { return state_->plain_modulus() / 2; }
u32 Bridge::level() const { return state_->level(); }
u32 Bridge::output_level() const { return state_->output_level(); }
const BootstrapOptions& Bridge::bootstrap() const { return state_->boot->plan.options; }

ckks::KeyRequest Bridge::key_request() const {
  return circuits::bootstrap_key_request(state_->ckks.params(), bootstrap());
}

KeyFacts Bridge::key_facts() const {
  const State& s = *state_;
  const Rings& on = s.packing.rings();
  KeyFacts facts;
  const auto add = [&](const rlwe::RingContext& ring, u64 digits, u64 limbs, u64 keys) {
    const u64 half = keys * digits * limbs * ring.ring_dim() * sizeof(rlwe::Word);
    facts.bytes += 2 * half;
    facts.wire_bytes += half + keys * sizeof(random::Seed);
  };
  const rlwe::RingContext& ring = *s.ckks.state().ring;
  add(ring, 1, ring.window(0).size(), 1);
  add(*on.middle, on.middle->chain().dnum(), on.middle->everything().size(),
      1 + middle_levels(on).count);
  add(*on.last, on.last->chain().dnum(), on.last->everything().size(), 1 + last_levels(on).count);
  facts.middle_dim = on.middle->ring_dim();
  facts.log_down = std::log2(s.q0());
  facts.log_middle = log_modulus(*on.middle);
  facts.log_last = log_modulus(*on.last);
  return facts;
}

namespace {

// Steps and bounds within 2^-k and 2^k have variances that are numbers.
constexpr int kLogMostBound = 400;
constexpr int kLogMostStep = kLogMostBound + 10;  // of 2^8 steps and fewer in two bounds

bool within(double value, int log_most) {
  return value > std::ldexp(1.0, -log_most) && value < std::ldexp(1.0, log_most);
}

std::string range(int log_most) {
  return cat("more than 2^-", log_most, " and less than 2^", log_most);
}

}  // namespace

Bridge::State::Circle Bridge::State::circle(const Grid& grid) const {
  if (!std::isfinite(grid.low))
    throw ParameterError(cat("a grid from ", grid.low, ", expected a finite number"),
                         {{"low", grid.low}});
  if (!within(grid.step, kLogMostStep))
    throw ParameterError(cat("a grid in steps of ", grid.step, ", expected ", range(kLogMostStep)),
                         {{"step", grid.step}, {"expected", range(kLogMostStep)}});
  return {grid.low, grid.step * plain_modulus()};
}

// The ends of the range stay as far from half a turn as reading moves phases in all but 2^-128 of
// all cases.
Bridge::State::Circle Bridge::State::circle(double threshold, double bound) const {
  if (!std::isfinite(threshold))
    throw ParameterError(cat("a threshold of ", threshold, ", expected a finite number"),
                         {{"threshold", threshold}});
  if (!within(bound, kLogMostBound))
    throw ParameterError(cat("a bound of ", bound, ", expected ", range(kLogMostBound)),
                         {{"bound", bound}, {"expected", range(kLogMostBound)}});
  constexpr double kDeviations = 13.4;  // sqrt(2 ln 2^129)
  const double reading =
      std::sqrt(tfhe::reading_variance(tfhe.state().plan, log_q())) * std::exp2(-double(log_q()));
  return {threshold, 2 * bound / (1 - 2 * kDeviations * 1.125 * reading)};
}

// Scales of levels stay within a factor of two of their canonical ones.
u32 Bridge::State::scale_up(const Circle& c) const {
  const double factor = q0() / (c.length * ckks.params().scale(0));
  return factor < 2 ? 0 : static_cast<u32>(std::ilogb(factor));
}

// docs/theory/bridge.md, "Noise"
double Bridge::State::extracted_variance(const Circle& c) const {
  const double n = static_cast<double>(ckks.params().ring_dim());
  const u32 weight = ckks.params().spec().hamming_weight;
  const double s = 1 + (weight != 0 ? weight : n / 2);  // 1 + E |s|^2
  const double z = 1 + small_degree(tfhe) * 2.0 / 3;
  const double q = rings.modulus(), p = q0() / q, unit = std::exp2(2.0 * log_q());
  const double slots = std::exp2(2.0 * scale_up(c)) * s / 12 / (q0() * q0());
  const double key = n * tfhe::kErrorVariance * (q / p) * (q / p) / 12;
  return unit * (slots + (s / 12 + key + z / 12) / (q * q)) + z / 12;
}

double Bridge::State::packed_variance() const {
  const Rings& on = packing.rings();
  const u32 weight = ckks.params().spec().hamming_weight;
  const double middle = switch_variance(*on.middle, on.middle->ring_dim() / 2.0);
  const double last = switch_variance(*on.last, weight != 0 ? weight : on.last->ring_dim() / 2.0);
  const double all = static_cast<double>(slots()), pieces = static_cast<double>(packing.pieces());
  // Every merge doubles what was there, and adds the errors of its switch.
  const double merges = (all * all - pieces * pieces) / 3, merges_last = (pieces * pieces - 1) / 3;
  // Rows are multiplied by an integer near q0 / q; what that is off by meets their masks'
  // quotients.
  const double rows = std::exp2(double(log_q())), off = std::round(q0() / rows) * rows - q0();
  return middle * (all * all + merges) + last * (pieces * pieces + merges_last) +
         off * off * (1 + small_degree(tfhe) * 2.0 / 3) / 12;
}

Noise Bridge::noise(const Grid& grid) const {
  const State& s = *state_;
  const double unit = std::exp2(-double(s.log_q()));
  const auto& plan = s.tfhe.state().plan;
  const auto budget = tfhe::noise_budget(plan, std::sqrt(tfhe::kErrorVariance));
  Noise noise;
  noise.extracted = std::sqrt(s.extracted_variance(s.circle(grid))) * unit;
  noise.reading = std::sqrt(tfhe::reading_variance(plan, s.log_q())) * unit;
  noise.looked_up = std::sqrt(tfhe::bootstrap_variance(plan, budget, s.log_q())) * unit;
  noise.packed = std::sqrt(s.packed_variance()) / s.q0();
  return noise;
}

Noise Bridge::noise(double bound) const {
  const State& s = *state_;
  return noise(Grid{0.0, s.circle(0.0, bound).length / s.plain_modulus()});
}

void Bridge::State::check(const Keys& keys) const {
  const auto expect = [](const char* what, const std::string& found, const std::string& expected) {
    if (found != expected)
      throw StateError(cat("bridge keys for ", what, " ", found, ", expected ", expected),
                       {{"found", found}, {"expected", expected}});
  };
  expect("CKKS parameters", keys.data().ckks_params_id, ckks.params().id());
  expect("TFHE parameters", keys.data().tfhe_params_id, tfhe.params().id());
  const device::Device& home = keys.data().ring->device();
  if (home.in_host_memory())
    ckks::expect_same_device(home, ckks.state(), "bridge keys");
  else
    expect_shared(home, ckks.state(), "bridge keys");
}

void Bridge::State::check(const tfhe::Evaluator& ev, const Keys& keys) const {
  const auto& s = ev.state();
  if (s.params().id() != tfhe.params().id())
    throw StateError(
        cat("evaluator of parameters ", s.params().id(), ", expected ", tfhe.params().id()),
        {{"found", s.params().id()}, {"expected", tfhe.params().id()}});
  expect_shared(s.context.device(), ckks.state(), "evaluator of messages");
  s.bootstrap_keys();
  expect_same_secret_key(s.keys.secret_key_id(), keys.tfhe_secret_key_id(), "evaluator",
                         "these bridge keys");
}

void Bridge::State::check_keys(const ckks::Evaluator& ev) const {
  ev.stream().expect_no_capture("a crossing between CKKS and TFHE");
  ev.state().check_serves(ckks);
  if (&ev.stream() != &tfhe.stream())
    throw StateError("an evaluator on a stream of its own, expected the stream of its device",
                     {{"found", "another stream"}, {"expected", "the device's stream"}});
  Bootstrap::check_keys(ev, boot->rotations, boot->plan.eval_mod(), boot->plan.options);
}

void Bridge::State::check(const ckks::Evaluator& ev, const Keys& keys, const Ct& a) const {
  const auto& s = ev.state();
  check_keys(ev);
  check(keys);
  s.check(a);
  s.check_components(a, 2, "bridge");
  expect_same_secret_key(a.secret_key_id(), keys.ckks_secret_key_id(), "ciphertext",
                         "these bridge keys");
  const auto expect = [](const char* what, u64 found, u64 expected) {
    if (found != expected)
      throw StateError(cat("bridge of ", found, " ", what, ", expected ", expected),
                       {{what, found}, {"expected", expected}});
  };
  expect("slots", a.slots(), slots());
  expect("vectors", a.batch(), 1);
  if (a.level() < level())
    ckks::refuse_level(ckks.params(), "bridge", a.level(), level(), {},
                       ": one for the grid, and SlotToCoeff");
}

}  // namespace crenel::bridge
