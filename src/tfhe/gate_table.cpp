#include "tfhe/gate_table.h"

#include <algorithm>
#include <cmath>

#include "crenel/core/error.h"
#include "tfhe/encoding.h"

namespace crenel::tfhe {
namespace {

constexpr GateConstants kGates[] = {
    {"and", 2, 4, 1, 7, 8, 0b100},       {"or", 2, 4, 1, 5, 8, 0b110},
    {"nand", 2, 4, 1, 3, 8, 0b011},      {"nor", 2, 4, 1, 1, 8, 0b001},
    {"xor", 2, 4, 2, 6, 8, 0b010},       {"xnor", 2, 4, 2, 2, 8, 0b101},
    {"majority", 3, 4, 1, 7, 8, 0b1100}, {"and3", 3, 6, 1, 11, 12, 0b1000},
    {"or3", 3, 6, 1, 7, 12, 0b1110},     {"and4", 4, 8, 1, 15, 16, 0b10000},
    {"or4", 4, 8, 1, 9, 16, 0b11110},
};

}  // namespace

const GateConstants& constants(Gate gate) {
  const auto i = static_cast<std::size_t>(gate);
  if (i >= std::size(kGates))
    throw ParameterError(cat("gate number ", i, ", expected below ", std::size(kGates)),
                         {{"gate", i}});
  return kGates[i];
}

u32 exponent(const device::TorusPlan& plan, u64 x) {
  const u32 steps = plan.log_n + 1, log_q = plan.log_lwe_modulus;
  const u64 e =
      log_q <= steps ? x << (steps - log_q) : ((x << steps) + (u64(1) << (log_q - 1))) >> log_q;
  return static_cast<u32>(e & ((u64(1) << steps) - 1));
}

u64 window_start(const device::TorusPlan& plan, const GateConstants& g) {
  return (u64(g.numerator) << plan.log_lwe_modulus) / g.denominator;
}

double gate_margin(const device::TorusPlan& plan, const GateConstants& g) {
  const double q = std::exp2(plan.log_lwe_modulus), step = q / (2.0 * plan.ring_dim());
  const double start = step * exponent(plan, window_start(plan, g));
  const u64 one = encode_message(1, g.plain_modulus, plan.log_lwe_modulus);
  double margin = q;
  for (u32 ones = 0; ones <= g.inputs; ++ones) {
    double at = std::fmod(double(g.factor) * ones * double(one) - start, q);
    if (at < 0) at += q;
    const bool is_one = at >= q / 2;  // behind the window
    const double distance = is_one ? std::min(at - q / 2, q - at) : std::min(at, q / 2 - at);
    margin = std::min(margin, is_one == (g.counts >> ones & 1) ? distance : 0.0);
  }
  return margin;
}

bool holds_sums(const Params& params, u32 p, u64 most) {
  return params.spec().padded && p == params.spec().plain_modulus && most < p / 2;
}

const char* name_of(Gate gate) { return constants(gate).name; }
u32 fan_in(Gate gate) { return constants(gate).inputs; }
u32 plain_modulus_of(Gate gate) { return constants(gate).plain_modulus; }

Gate gate_from_string(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kGates); ++i)
    if (name == kGates[i].name) return static_cast<Gate>(i);
  std::string known;
  for (const auto& gate : kGates) known += cat(" ", gate.name);
  throw ParameterError(cat("unknown gate '", name, "'; known:", known),
                       {{"gate", std::string(name)}});
}

u32 bit_modulus(const Params& params, u32 inputs) {
  const bool padded = params.spec().padded;
  if (inputs < 2 || inputs > 4 || (padded && inputs != 2))
    throw ParameterError(cat("bits for gates of ", inputs, " inputs, expected ",
                             padded ? "2 with this set" : "2, 3 or 4"),
                         {{"inputs", inputs}});
  if (padded) return params.spec().plain_modulus;
  return inputs == 2 ? 4 : plain_modulus_of(inputs == 3 ? Gate::and3 : Gate::and4);
}

}  // namespace crenel::tfhe
