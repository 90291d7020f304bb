// Tables of docs/theory that stand between markers are what the code computes. CRENEL_UPDATE_DOCS=1
// writes them anew.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "circuits/bootstrapping/precision.h"
#include "ckks/key_sizes.h"
#include "ckks/params/base_conversion.h"
#include "ckks/params/chain.h"
#include "ckks/params/scales.h"
#include "crenel/core/error.h"
#include "tfhe/params/noise.h"
#include "tfhe/params/plan.h"

namespace crenel::test {
namespace {

using Row = std::vector<std::string>;

std::string fixed(double value, int decimals) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string bits(double value, int decimals = 1) { return fixed(std::log2(value), decimals); }
std::string power(double value, int decimals) { return "`2^" + bits(value, decimals) + "`"; }

std::string table(const std::vector<Row>& rows) {
  std::string out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const std::string& cell : rows[i]) out += "| " + cell + " ";
    out += "|\n";
    if (i == 0) {
      for (std::size_t j = 0; j < rows[0].size(); ++j) out += "|---";
      out += "|\n";
    }
  }
  return out;
}

std::string page_path(const std::string& page) {
  return std::string(CRENEL_SOURCE_DIR) + "/docs/theory/" + page + ".md";
}

void expect_table(const std::string& page, const std::string& name, const std::vector<Row>& rows) {
  const std::string begin = "<!-- computed " + name + " -->\n", end = "<!-- /computed -->";
  std::ostringstream stream;
  stream << std::ifstream(page_path(page)).rdbuf();
  std::string text = stream.str();
  const auto from = text.find(begin);
  ASSERT_NE(from, std::string::npos) << page << " has no " << begin;
  const auto first = from + begin.size(), to = text.find(end, first);
  ASSERT_NE(to, std::string::npos) << page << ": " << name << " has no end";
  const std::string wanted = table(rows);
  if (std::getenv("CRENEL_UPDATE_DOCS")) {
    std::ofstream(page_path(page)) << text.replace(first, to - first, wanted);
    return;
  }
  EXPECT_EQ(text.substr(first, to - first), wanted)
      << page << ": run this test with CRENEL_UPDATE_DOCS=1";
}

constexpr const char* kBootSets[] = {"boot30", "boot35", "boot40", "boot45", "boot48dr", "boot50"};

TEST(TheoryPages, PrimeSystem) {
  std::vector<Row> conversions{{"set", "ModUp to the window", "ModUp to `P`", "ModDown"}};
  std::vector<Row> digits{{"set", "chain limbs", "alpha", "dnum", "log P", "log of the digits"}};
  std::vector<Row> sets{{"set", "D", "normal levels", "left after 3 of SlotToCoeff", "chain limbs",
                         "log PQ", "max abs(e_l)"}};
  for (const char* name : kBootSets) {
    const auto params = ckks::Params::preset(name, true);
    const ckks::Spec& spec = params.spec();
    const auto chain = ckks::chain_in_position_order(spec);
    double window = 0, special = 0, down = 0;
    const auto raise = [](double& most, std::span<const u64> sources, u64 target) {
      most = std::max(most, static_cast<double>(ckks::conversion_bound(sources, target)));
    };
    for (const auto& g : ckks::digit_groups(spec, params.alpha())) {
      const std::span<const u64> sources(chain.data() + g.begin, g.end - g.begin);
      for (u32 i = g.window_begin; i < g.window_end; ++i)
        if (i < g.begin || i >= g.end) raise(window, sources, chain[i]);
      for (const u64 p : spec.auxiliary) raise(special, sources, p);
    }
    for (const u64 q : chain) raise(down, spec.auxiliary, q);
    conversions.push_back(
        {cat("`", name, "`"), power(window, 2), power(special, 2), power(down, 2)});
    std::string logs;
    for (u32 first = 0; first < chain.size(); first += params.alpha()) {
      const u64 count = std::min<u64>(params.alpha(), chain.size() - first);
      logs += (first ? ", " : "") +
              fixed(static_cast<double>(ckks::log2_product({chain.data() + first, count})), 2);
    }
    digits.push_back({cat("`", name, "`"), cat(params.chain_limbs()), cat(params.alpha()),
                      cat(params.dnum()), fixed(params.log_p(), 2), logs});
    sets.push_back({cat("`", name, "`"), cat(spec.log_scale), cat(params.normal_top_level()),
                    cat(params.normal_top_level() - 3), cat(params.chain_limbs()),
                    fixed(params.log_pq(), 2), fixed(params.scale_deviation(), 4)});
  }
  expect_table("ckks-primes", "conversions", conversions);
  expect_table("ckks-primes", "digits", digits);
  expect_table("ckks-primes", "sets", sets);
}

TEST(TheoryPages, AlignedLevels) {
  std::vector<Row> rows{
      {"set", "aligned level", "limbs", "digits", "aligned", "key, MiB", "aligned"}};
  for (const char* name : kBootSets) {
    const auto params = ckks::Params::preset(name, true);
    const rlwe::Chain chain = ckks::chain_of(params);
    for (u32 l = 0; l <= params.max_level(); ++l) {
      if (!chain.aligned(l)) continue;
      const auto window = chain.windows[l];
      const auto digits = [&](u32 level) {
        return cat(chain.digit_of(window.end - 1, level) - chain.digit_of(window.begin, level) + 1);
      };
      ckks::KeyRequest plain{{1}, false, false}, aligned{{}, false, false};
      plain.max_level = l, aligned.aligned_rotations[1] = l;
      const auto mib = [&](const ckks::KeyRequest& request) {
        return fixed(static_cast<double>(ckks::key_sizes(params, request).bytes) / 0x1p20, 1);
      };
      rows.push_back({cat("`", name, "`"), cat(l), cat(window.end - window.begin), digits(l),
                      digits(rlwe::aligned_level(l)), mib(plain), mib(aligned)});
    }
  }
  expect_table("ckks-primes", "aligned", rows);
}

TEST(TheoryPages, LevelsOfBoot40) {
  const auto params = ckks::Params::preset("boot40");
  std::vector<Row> rows{{"level", "(m, t)", "limbs", "log Q", "log rp", "log s"}};
  for (u32 l = 0; l <= params.max_level(); ++l) {
    const auto& size = params.spec().levels[l];
    rows.push_back({cat(l), cat("(", size.main, ", ", size.terminal, ")"),
                    cat(size.main + size.terminal), fixed(params.log_q(l), 3),
                    l ? bits(params.rescale_ratio(l), 4) : "",
                    l <= params.normal_top_level() ? bits(params.scale(l), 5) : ""});
  }
  expect_table("ckks-primes", "boot40", rows);
}

TEST(TheoryPages, FitOfTheSine) {
  const circuits::Mod1Params params;
  circuits::Mod1Params uniform;
  uniform.secret_weight = 1024;  // P(I) hardly varies over |I| < 16
  Row head{"weights", "rms over I"};
  for (u32 i = 0; i < params.range; ++i) head.push_back(cat(i));
  std::vector<Row> rows{head};
  for (const auto& [name, weighted] :
       {std::pair{"`sqrt(P(I))`, floor `2^-26`", params}, {"nearly uniform", uniform}}) {
    const auto error = circuits::fit_error(params, circuits::fit_mod1(weighted));
    Row row{name, bits(error.rms)};
    for (const double e : error.by_integer) row.push_back(bits(e));
    rows.push_back(row);
  }
  expect_table("bootstrapping", "fit", rows);
}

TEST(TheoryPages, PartsOfABootstrapsError) {
  using circuits::PrecisionEstimate;
  std::vector<PrecisionEstimate> at;
  for (const u32 rho : {5u, 8u}) {
    circuits::BootstrapModel model;
    model.message_ratio = rho;
    at.push_back(circuits::estimate_precision(model, {}));
  }
  std::vector<Row> rows{{"part", "rms, rho = 5", "largest", "rms, rho = 8", "largest"}};
  const std::pair<const char*, circuits::SlotError PrecisionEstimate::*> parts[] = {
      {"sine", &PrecisionEstimate::sine},         {"fit", &PrecisionEstimate::fit},
      {"raise", &PrecisionEstimate::raise},       {"cts", &PrecisionEstimate::cts},
      {"eval_mod", &PrecisionEstimate::eval_mod}, {"stc", &PrecisionEstimate::stc},
      {"output", &PrecisionEstimate::output},     {"**total**", &PrecisionEstimate::total}};
  for (const auto& [name, part] : parts) {
    Row row{name};
    for (const auto& estimate : at)
      for (const double e : {(estimate.*part).rms, (estimate.*part).max})
        row.push_back(fixed(-std::log2(e), 1));
    rows.push_back(row);
  }
  expect_table("precision", "parts", rows);
}

TEST(TheoryPages, SineAlone) {
  using circuits::MessageKind;
  std::vector<Row> rows{
      {"message", "rho = 5", "rho = 6", "rho = 8", "rho = 5, arcsine 3", "rho = 8, arcsine 3"}};
  for (const auto& [name, kind] : {std::pair{"uniform complex", MessageKind::uniform_complex},
                                   {"uniform real in [-1, 1]", MessageKind::uniform_real},
                                   {"uniform real in [0, 1]", MessageKind::uniform_unit},
                                   {"constant 1", MessageKind::constant}}) {
    Row row{name};
    for (const auto& [rho, arcsine] : {std::pair{5u, 0u}, {6u, 0u}, {8u, 0u}, {5u, 3u}, {8u, 3u}}) {
      circuits::BootstrapModel model;
      model.message_ratio = rho, model.arcsine_degree = arcsine;
      row.push_back(fixed(-std::log2(circuits::sine_error(model, {kind}).max), 1));
    }
    rows.push_back(row);
  }
  expect_table("precision", "sine", rows);
}

TEST(TheoryPages, GainOfEvalMod) {
  std::vector<Row> rows{{"half of the interval", "gain", "sqrt, bits"}};
  circuits::Mod1Params params;
  const double chosen = params.width;
  for (const double width : {16.0, 14.0, 12.0, 11.0, 10.5, 10.0, 9.5, 9.0}) {
    params.width = width;
    const double gain = circuits::mod1_noise_gain(params);
    rows.push_back({fixed(width, 1) + (width == chosen ? " (what the code does)" : ""),
                    fixed(gain, 0), fixed(0.5 * std::log2(gain), 2)});
  }
  expect_table("precision", "gain", rows);
}

TEST(TheoryPages, RareIntegers) {
  circuits::BootstrapModel model;  // boot40
  const circuits::Mod1Params& params = model.mod1;
  const auto error = circuits::fit_error(params, circuits::fit_mod1(params));
  const auto gains = circuits::mod1_noise_gains(params);
  const double one =
      std::sqrt(std::exp2(model.log_n) * circuits::rescale_variance(model.dense_weight)) *
      std::exp2(-model.log_mod1_scale);
  std::vector<Row> rows{{"abs(I) at least", "0", "4", "8", "9", "10", "11", "12", "13", "14", "15"},
                        {"in a bootstrap, probability"},
                        {"fit"},
                        {"noise"}};
  for (std::size_t k = 1; k < rows[0].size(); ++k) {
    const u32 i = static_cast<u32>(std::stoul(rows[0][k]));
    const double p =
        i == 0 ? 0.0
               : circuits::log2_overflow_probability(params.secret_weight, i, 2 * model.slots);
    rows[1].push_back(p > -0.05 ? "1" : cat("`2^", fixed(p, 1), "`"));
    rows[2].push_back(fixed(6 + std::log2(error.by_integer[i]), 1));
    const double gain = std::max(gains[params.range + i], gains[params.range - i]);
    rows[3].push_back(fixed(6 + std::log2(one * std::sqrt(gain)), 1));
  }
  expect_table("precision", "rare", rows);
}

TEST(TheoryPages, NoiseBudgets) {
  std::vector<Row> rows{{"set", "r", "margin", "blind rotation", "transform", "key switch",
                         "rest rounding", "fresh std", "p_fail"}};
  for (const auto& [name, slots] : {std::pair{"bool128", 1u},
                                    {"bool128-packed", 5u},
                                    {"lut4-128", 1u},
                                    {"bool128-classic", 1u},
                                    {"bool128-classic", 5u},
                                    {"lut4-128-classic", 1u},
                                    {"M3", 1u},
                                    {"M6", 1u},
                                    {"STD128", 1u},
                                    {"G4", 1u}}) {
    const auto params = tfhe::Params::preset(name, true).with_slots(tfhe::SlotCount(slots));
    const double sigma = std::sqrt(tfhe::kErrorVariance);
    const auto plan = tfhe::plan_of(params);
    const auto budget = tfhe::noise_budget(params, sigma);
    // Everything in steps of the rotation, 2N, where sets of different q can be compared.
    const double steps = std::exp2(plan.log_n + 1);
    const auto at = [&](double modulus, double variance) {
      return fixed(variance * (steps / modulus) * (steps / modulus), 3);
    };
    const double big = static_cast<double>(plan.modulus);
    const double rest = std::exp2(plan.log_lwe_modulus);
    const double rounding = budget.rest_rounding * (steps / rest) * (steps / rest);
    rows.push_back({cat("`", name, "`"), cat(slots),
                    fixed(steps / (2.0 * params.spec().plain_modulus), 0),
                    at(big, budget.blind_rotation), at(big, budget.transform),
                    at(std::exp2(plan.log_switch_modulus), budget.key_switch),
                    fixed(rounding + budget.rotation_rounding, 3),
                    fixed(tfhe::fresh_std(params, sigma) * steps / rest, 3),
                    cat("`2^", fixed(params.p_fail_log2(), 1), "`")});
  }
  expect_table("tfhe", "budgets", rows);
}

}  // namespace
}  // namespace crenel::test
