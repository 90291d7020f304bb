#include "tfhe/params/validate.h"

#include <bit>
#include <cmath>
#include <iomanip>
#include <sstream>
#include <tuple>

#include "crenel/core/error.h"
#include "tfhe/params/noise.h"
#include "tfhe/params/plan.h"
#include "tfhe/params/preset_specs.h"
#include "tfhe/params/security.h"

namespace crenel::tfhe {
namespace {

class Checker {
 public:
  Checker(const Spec& spec, bool allow_insecure) : spec_(spec), allow_insecure_(allow_insecure) {}

  std::vector<std::string> run() && {
    check_sizes();
    check_accumulator();
    spec_.group == 0 ? check_switch() : check_groups();
    check_messages();
    check_labels();
    // What follows computes with all of these.
    if (problems_.empty()) check_plan();
    return std::move(problems_);
  }

 private:
  template <class... Args>
  void add(const Args&... args) {
    problems_.push_back(cat(args...));
  }

  void range(const char* field, u64 value, u64 low, u64 high) {
    if (value < low || value > high) add(field, " is ", value, ", expected ", low, "..", high);
  }

  void check_sizes() {
    range("lwe_dim", spec_.lwe_dim.value, 1, 4096);
    range("glwe_dim", spec_.glwe_dim.value, 1, 16);
    const u32 size = spec_.poly_size.value;
    if (!std::has_single_bit(size) || size < 8 || size > 4096)
      add("poly_size is ", size, ", expected a power of two from 8 to 4096");
    range("log_lwe_modulus", spec_.log_lwe_modulus, 3, 32);
  }

  void check_accumulator() {
    if (spec_.path == NoisePath::gadget) {
      range("log_modulus", spec_.log_modulus, 8, 55);
      if (spec_.log_raised_modulus != 0)
        add("log_raised_modulus is ", spec_.log_raised_modulus,
            ", expected 0 with gadget decomposition");
      const u32 base = spec_.base_log.value;
      if (base == 0 || base >= spec_.log_modulus || base > 27)
        add("base_log is ", base, ", expected 1..27 and below log_modulus = ", spec_.log_modulus);
      return;
    }
    range("log_modulus", spec_.log_modulus, 4, 27);
    range("log_raised_modulus", spec_.log_raised_modulus, 16, 55);
    if (spec_.log_raised_modulus < 2 * spec_.log_modulus)
      add("log_raised_modulus is ", spec_.log_raised_modulus,
          ", expected at least 2 log_modulus = ", 2 * spec_.log_modulus,
          " (T >= Q^2 keeps the keys' noise below the accumulator)");
    if (spec_.base_log.value != 0)
      add("base_log is ", spec_.base_log, ", expected 0 with modulus raising");
  }

  void check_switch() {
    if (spec_.step != 0 || spec_.switch_digits != 0 || spec_.key_group != 0)
      add("step is ", spec_.step, ", switch_digits ", spec_.switch_digits, " and key_group ",
          spec_.key_group, ", expected 0 without groups");
    if (spec_.differences) add("differences is true, expected false without groups");
    range("log_switch_modulus", spec_.log_switch_modulus, 3, 40);
    if (spec_.log_switch_modulus < spec_.log_lwe_modulus)
      add("log_switch_modulus is ", spec_.log_switch_modulus, ", expected at least ",
          spec_.log_lwe_modulus, " = log_lwe_modulus");
    range("switch_base_log", spec_.switch_base_log.value, 1, 16);
  }

  void check_groups() {
    const u32 g = spec_.group, n = spec_.lwe_dim.value;
    range("group", g, 1, device::kMaxGroup);
    if (g <= device::kMaxGroup && n % g != 0)
      add("group is ", g, ", expected a divisor of lwe_dim = ", n);
    const u32 made = spec_.made_group();
    if (made > device::kMaxGroup || (made != 0 && n % made != 0))
      add("key_group is ", made, ", expected 1..", device::kMaxGroup,
          " and a divisor of lwe_dim = ", n);
    if (spec_.step == 0 || made % spec_.step != 0)
      add("step is ", spec_.step, ", expected a divisor of the keys' group = ", made);
    if (spec_.path != NoisePath::raising)
      add("path is gadget, expected raising with groups of secret bits");
    if (spec_.secret != LweSecret::binary)
      add("secret is ternary, expected binary with groups of its elements");
    if (spec_.log_lwe_modulus > spec_.log_modulus)
      add("log_lwe_modulus is ", spec_.log_lwe_modulus,
          ", expected at most log_modulus = ", spec_.log_modulus, " with groups");
    range("log_switch_modulus", spec_.log_switch_modulus, 3, spec_.log_lwe_modulus);
    range("switch_base_log", spec_.switch_base_log.value, 1, 16);
    if (spec_.switch_digits == 0 ||
        u64(spec_.switch_digits) * spec_.switch_base_log.value > spec_.log_switch_modulus)
      add("switch_digits is ", spec_.switch_digits,
          ", expected at least 1, and with switch_base_log bits each at most log_switch_modulus = ",
          spec_.log_switch_modulus);
  }

  void check_messages() {
    const u32 p = spec_.plain_modulus;
    if (p < 2 || p % 2 != 0 ||
        (spec_.log_lwe_modulus <= 32 && u64(p) * 4 > u64(1) << spec_.log_lwe_modulus))
      add("plain_modulus is ", p, ", expected an even number from 2 to q / 4 = 2^",
          int(spec_.log_lwe_modulus) - 2);
    if (p > spec_.poly_size.value)
      add("plain_modulus is ", p, ", expected at most poly_size = ", spec_.poly_size,
          " (two places of the rotation a message)");
    if (spec_.padded && !std::has_single_bit(p))
      add("plain_modulus is ", p, ", expected a power of two with padding");
    if (!std::isfinite(spec_.max_norm2) || spec_.max_norm2 < 1)
      add("max_norm2 is ", spec_.max_norm2, ", expected a finite number of at least 1");
  }

  void check_labels() {
    if (!std::isfinite(spec_.security_bits) || spec_.security_bits < 0)
      add("security_bits is ", spec_.security_bits, ", expected a finite number, not negative");
  }

  void check_plan() {
    const device::TorusPlan plan = plan_of(spec_, SlotCount(1));
    if (plan.primes.empty()) {
      add("there are no primes = 1 modulo 2N = ", 2 * spec_.poly_size.value,
          " below 2^28 for a modulus of ",
          spec_.path == NoisePath::gadget ? spec_.log_modulus : spec_.log_raised_modulus, " bits");
      return;
    }
    const std::string problem = plan_problem(plan, spec_.max_norm2);
    if (!problem.empty()) problems_.push_back(problem);
    const double estimate = security_estimate(spec_);
    if (spec_.security_bits > estimate + kSecurityTolerance)
      add("security_bits is ", spec_.security_bits, ", expected at most ",
          std::round(10 * (estimate + kSecurityTolerance)) / 10,
          ", what the dimensions and moduli allow");
    if (!problems_.empty() || allow_insecure_ || may_be_below_norm(spec_)) return;
    const std::string below =
        shortfall(spec_.name, believed_security(spec_), promise_log2(plan, spec_));
    if (!below.empty()) add(below, ": it needs allow_insecure");
  }

  const Spec& spec_;
  bool allow_insecure_;
  std::vector<std::string> problems_;
};

constexpr double kNormBits = 128.0;  // both of security and of -log2 p_fail

// One digit after the point, for people.
std::string one_digit(double value) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << value;
  return out.str();
}

// What security and p_fail follow from. The arithmetic is not among it: plan_problem bounds what it
// adds, and p_fail is computed with it.
auto numbers(const Spec& s) {
  return std::tuple(s.lwe_dim.value, s.glwe_dim.value, s.poly_size.value, s.log_lwe_modulus, s.path,
                    s.secret, s.log_modulus, s.log_raised_modulus, s.base_log.value,
                    s.log_switch_modulus, s.switch_base_log.value, s.plain_modulus, s.padded,
                    s.group, s.differences, s.switch_digits);
}

}  // namespace

const Spec* own_set(const Spec& spec) {
  for (const Spec& own : preset_specs())
    if (numbers(own) == numbers(spec)) return &own;
  return nullptr;
}

bool may_be_below_norm(const Spec& spec) {
  const Spec* own = own_set(spec);
  if (own == nullptr || own->name.starts_with("toy-") || spec.max_norm2 > own->max_norm2)
    return false;
  return !shortfall(own->name, believed_security(*own),
                    promise_log2(plan_of(*own, SlotCount(1)), *own))
              .empty();
}

double believed_security(const Spec& spec) {
  const Spec* own = own_set(spec);
  const double known =
      own != nullptr && own->security_bits > 0 ? own->security_bits : security_estimate(spec);
  return spec.security_bits > 0 ? std::min(spec.security_bits, known) : known;
}

std::string shortfall(const std::string& name, double security_bits, double p_fail_log2) {
  std::string what;
  if (security_bits < kNormBits) what = cat(one_digit(security_bits), " bits of security");
  if (p_fail_log2 > -kNormBits)
    what += cat(what.empty() ? "" : " and ", "a failure probability of 2^", one_digit(p_fail_log2),
                " a bootstrap");
  if (what.empty()) return {};
  return cat("parameter set '", name, "' has ", what, "; today's norm is ", kNormBits,
             " bits and 2^-", kNormBits);
}

std::vector<std::string> validate_spec(const Spec& spec, bool allow_insecure) {
  return Checker(spec, allow_insecure).run();
}

}  // namespace crenel::tfhe
