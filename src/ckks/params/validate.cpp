#include "ckks/params/validate.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "ckks/params/base_conversion.h"
#include "ckks/params/scales.h"
#include "ckks/params/security.h"
#include "crenel/core/error.h"
#include "math/primes.h"

namespace crenel::ckks {
namespace {

using Kind = SpecProblemKind;

constexpr std::size_t kMaxLevels = 256;

class Checker {
 public:
  Checker(const Spec& spec, bool allow_insecure) : spec_(spec), allow_insecure_(allow_insecure) {}

  std::vector<SpecProblem> run() && {
    check_ring();
    if (!check_sizes()) return std::move(problems_);
    check_primes();
    check_levels();
    // What follows computes with the primes and the levels, so both must make sense.
    if (primes_usable_ && levels_usable_) {
      check_increasing();
      check_coverage();
      check_scales();
      check_special_modulus();
      check_conversions();
    }
    if (primes_usable_ && !allow_insecure_) check_security();
    return std::move(problems_);
  }

 private:
  template <class... Args>
  void add(Kind kind, const Args&... args) {
    problems_.push_back({kind, cat(args...)});
  }

  void check_ring() {
    if (spec_.log_n < 10 || spec_.log_n > 17) {
      add(Kind::log_n_out_of_range, "log_n is ", spec_.log_n, ", expected 10..17");
    } else if (spec_.hamming_weight > (u32{1} << spec_.log_n)) {
      add(Kind::hamming_weight_out_of_range, "hamming_weight is ", spec_.hamming_weight,
          ", expected 0 (dense) or at most N = ", u32{1} << spec_.log_n);
    }
  }

  bool check_sizes() {
    const std::size_t problems_before = problems_.size();
    const std::size_t limbs = spec_.main.size() + spec_.terminal.size() + spec_.auxiliary.size();
    if (spec_.main.empty() && spec_.terminal.empty())
      add(Kind::empty_chain, "the chain has no main and no terminal prime");
    if (spec_.levels.empty()) add(Kind::empty_chain, "there are no levels");
    if (limbs > kMaxLimbs)
      add(Kind::too_many_limbs, "there are ", limbs, " primes, expected at most ", kMaxLimbs);
    if (spec_.levels.size() > kMaxLevels)
      add(Kind::too_many_limbs, "there are ", spec_.levels.size(), " levels, expected at most ",
          kMaxLevels);
    if (spec_.auxiliary.size() > kMaxAlpha)
      add(Kind::too_many_limbs, "there are ", spec_.auxiliary.size(),
          " auxiliary primes, expected at most ", kMaxAlpha);
    return problems_.size() == problems_before;
  }

  void check_primes() {
    std::vector<u64> all;
    check_list("main", spec_.main, all);
    check_list("terminal", spec_.terminal, all);
    check_list("auxiliary", spec_.auxiliary, all);
    std::sort(all.begin(), all.end());
    for (std::size_t i = 1; i < all.size(); ++i)
      if (all[i] == all[i - 1] && (i == 1 || all[i] != all[i - 2]))
        add(Kind::prime_repeated, "prime ", all[i], " occurs more than once");
  }

  void check_list(const char* name, const std::vector<u64>& list, std::vector<u64>& all) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const u64 p = list[i];
      all.push_back(p);
      if (p < kPrimeMin || p >= kPrimeMax) {
        add(Kind::prime_out_of_range, name, "[", i, "] = ", p, " is outside [", kPrimeMin, ", ",
            kPrimeMax, ")");
        primes_usable_ = false;
      }
      if (!math::is_prime(p)) add(Kind::prime_not_prime, name, "[", i, "] = ", p, " is not prime");
      if (spec_.log_n >= 10 && spec_.log_n <= 17 && (p - 1) % (u64{2} << spec_.log_n) != 0)
        add(Kind::prime_not_ntt_friendly, name, "[", i, "] = ", p,
            " is not 1 modulo 2N = ", u64{2} << spec_.log_n);
    }
  }

  void check_levels() {
    for (std::size_t l = 0; l < spec_.levels.size(); ++l) {
      const LevelModulus& level = spec_.levels[l];
      if (level.main <= spec_.main.size() && level.terminal <= spec_.terminal.size() &&
          (level.main > 0 || level.terminal > 0))
        continue;
      levels_usable_ = false;
      add(Kind::level_out_of_chain, "level ", l, " uses (", level.main, ", ", level.terminal,
          ") main and terminal primes, expected at least one and at most (", spec_.main.size(),
          ", ", spec_.terminal.size(), ")");
    }
    if (spec_.normal_top_level < spec_.levels.size()) return;
    levels_usable_ = false;
    add(Kind::level_out_of_chain, "normal_top_level is ", spec_.normal_top_level,
        ", expected at most the top level ", spec_.levels.size() - 1);
  }

  void check_increasing() {
    const std::vector<double> logs = level_log_q(spec_);
    for (std::size_t l = 1; l < logs.size(); ++l) {
      const LevelModulus &here = spec_.levels[l], &below = spec_.levels[l - 1];
      if (!(logs[l] > logs[l - 1]) || here == below)
        add(Kind::level_not_increasing, "log Q of level ", l, " is ", fixed(logs[l], 3),
            ", expected more than ", fixed(logs[l - 1], 3), " of level ", l - 1);
      else if (l > spec_.normal_top_level &&
               (here.main < below.main || here.terminal < below.terminal))
        add(Kind::level_not_increasing, "bootstrapping level ", l, " uses (", here.main, ", ",
            here.terminal, ") main and terminal primes, expected no fewer than (", below.main, ", ",
            below.terminal, ") of level ", l - 1);
    }
  }

  // A prime that no level uses only costs security. Bootstrapping raises to the whole chain, so
  // there the top level must hold every prime; a leveled set may end on a step of the rescaling
  // cycle that trades main for terminal primes.
  void check_coverage() {
    LevelModulus used;
    for (const LevelModulus& level : spec_.levels) {
      used.main = std::max(used.main, level.main);
      used.terminal = std::max(used.terminal, level.terminal);
    }
    if (used.main < spec_.main.size() || used.terminal < spec_.terminal.size())
      add(Kind::chain_top_incomplete, "the chain has ", spec_.main.size(), " main and ",
          spec_.terminal.size(), " terminal primes, but the levels use only ", used.main, " and ",
          used.terminal);
    const LevelModulus& top = spec_.levels.back();
    if (spec_.normal_top_level + 1 < spec_.levels.size() && top != used)
      add(Kind::chain_top_incomplete, "the top level of a bootstrapping chain uses (", top.main,
          ", ", top.terminal, ") main and terminal primes, expected all (", used.main, ", ",
          used.terminal, ")");
  }

  void check_scales() {
    const double log_q0 = level_log_q(spec_).front();
    if (log_q0 < spec_.log_scale + kMinBaseHeadroom)
      add(Kind::base_modulus_too_small, "log Q of level 0 is ", fixed(log_q0, 3),
          ", expected at least log_scale + ", kMinBaseHeadroom, " = ",
          spec_.log_scale + kMinBaseHeadroom);
    u32 worst = 0;
    const double deviation = scale_deviation(spec_, &worst);
    if (!(deviation <= kMaxScaleDeviation))
      add(Kind::scale_deviation, "the scale of level ", worst, " deviates by ", fixed(deviation, 5),
          " bits from 2^", spec_.log_scale, ", expected at most ", kMaxScaleDeviation);
  }

  void check_special_modulus() {
    if (spec_.auxiliary.empty()) {
      add(Kind::special_modulus_too_small, "there are no auxiliary primes, expected at least one");
      return;
    }
    const double log_p = static_cast<double>(log2_product(spec_.auxiliary));
    const std::vector<u64> chain = chain_in_position_order(spec_);
    const std::size_t alpha = spec_.auxiliary.size();
    for (std::size_t begin = 0; begin < chain.size(); begin += alpha) {
      const std::size_t size = std::min(alpha, chain.size() - begin);
      const double digit = static_cast<double>(log2_product({chain.data() + begin, size}));
      if (digit > log_p)
        add(Kind::special_modulus_too_small, "log P is ", fixed(log_p, 3), ", expected at least ",
            fixed(digit, 3), " of key-switching digit ", begin / alpha);
    }
  }

  void check_conversions() {
    if (spec_.auxiliary.empty()) return;
    const std::vector<u64> chain = chain_in_position_order(spec_);
    for (const DigitGroup& g : digit_groups(spec_, static_cast<u32>(spec_.auxiliary.size()))) {
      const std::span<const u64> sources(chain.data() + g.begin, g.end - g.begin);
      for (u32 i = g.window_begin; i < g.window_end; ++i)
        if (i < g.begin || i >= g.end) check_conversion(sources, "ModUp of digit", g, chain[i]);
      for (const u64 p : spec_.auxiliary) check_conversion(sources, "ModUp of digit", g, p);
    }
    for (const u64 q : chain) check_conversion(spec_.auxiliary, "ModDown of P", {}, q);
  }

  void check_conversion(std::span<const u64> sources, const char* what, const DigitGroup& group,
                        u64 target) {
    if (conversion_fits(sources, target)) return;
    std::ostringstream where;
    where << what;
    if (group.end != 0) where << " [" << group.begin << ", " << group.end << ")";
    const auto bound = static_cast<double>(conversion_bound(sources, target));
    add(Kind::base_conversion_overflow, where.str(), " to prime ", target,
        ": the accumulator reaches 2^", fixed(std::log2(bound), 4), ", expected less than 2^64");
  }

  void check_security() {
    if (spec_.log_n < 10 || spec_.log_n > 17) return;
    const double log_pq = log2_pq(spec_);
    const auto bound = max_log_pq(spec_.log_n, 128, spec_.hamming_weight);
    if (!bound)
      add(Kind::security_below_128, "no security table covers log_n = ", spec_.log_n,
          " with a secret of Hamming weight ", spec_.hamming_weight,
          "; log PQ = ", fixed(log_pq, 2));
    else if (log_pq > *bound)
      add(Kind::security_below_128, "log PQ = ", fixed(log_pq, 2), " exceeds ", *bound,
          ", the 128-bit bound for log_n = ", spec_.log_n, " (",
          security_source(spec_.hamming_weight), "); about ",
          fixed(estimate_security_bits(spec_.log_n, log_pq, spec_.hamming_weight), 1),
          " bits; tests may pass allow_insecure");
  }

  const Spec& spec_;
  bool allow_insecure_;
  bool primes_usable_ = true;
  bool levels_usable_ = true;
  std::vector<SpecProblem> problems_;
};

}  // namespace

std::string fixed(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return out.str();
}

double log2_pq(const Spec& spec) {
  return static_cast<double>(log2_product(spec.main) + log2_product(spec.terminal) +
                             log2_product(spec.auxiliary));
}

std::string_view to_string(SpecProblemKind kind) {
  switch (kind) {
    case Kind::log_n_out_of_range:
      return "log_n_out_of_range";
    case Kind::prime_not_prime:
      return "prime_not_prime";
    case Kind::prime_not_ntt_friendly:
      return "prime_not_ntt_friendly";
    case Kind::prime_out_of_range:
      return "prime_out_of_range";
    case Kind::prime_repeated:
      return "prime_repeated";
    case Kind::level_out_of_chain:
      return "level_out_of_chain";
    case Kind::level_not_increasing:
      return "level_not_increasing";
    case Kind::chain_top_incomplete:
      return "chain_top_incomplete";
    case Kind::too_many_limbs:
      return "too_many_limbs";
    case Kind::scale_deviation:
      return "scale_deviation";
    case Kind::special_modulus_too_small:
      return "special_modulus_too_small";
    case Kind::base_conversion_overflow:
      return "base_conversion_overflow";
    case Kind::hamming_weight_out_of_range:
      return "hamming_weight_out_of_range";
    case Kind::empty_chain:
      return "empty_chain";
    case Kind::security_below_128:
      return "security_below_128";
    case Kind::base_modulus_too_small:
      return "base_modulus_too_small";
  }
  return "unknown";
}

std::vector<SpecProblem> validate_spec(const Spec& spec, bool allow_insecure) {
  return Checker(spec, allow_insecure).run();
}

}  // namespace crenel::ckks
