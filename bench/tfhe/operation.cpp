#include "tfhe/operation.h"

#include <algorithm>
#include <bit>

#include "crenel/core/error.h"

namespace crenel::bench {
namespace {

using tfhe::Gate;

std::vector<tfhe::Ciphertext> one(tfhe::Ciphertext&& c) {
  std::vector<tfhe::Ciphertext> out;
  out.push_back(std::move(c));
  return out;
}

Operation gate_operation(Gate gate) {
  Operation op;
  op.name = tfhe::name_of(gate);
  op.gate = gate;
  op.inputs = tfhe::fan_in(gate);
  op.plain_modulus = tfhe::plain_modulus_of(gate);
  op.limit = 2;
  op.run = [gate](const tfhe::Evaluator& ev, const Operation::Inputs& in) {
    return one(ev.gate(gate, in));
  };
  op.clear = [gate](const std::vector<u64>& m) { return std::vector<u64>{clear_gate(gate, m)}; };
  return op;
}

// A table without structure, or with the symmetry that halves its cost.
std::vector<u64> table(const std::string& name, u64 limit) {
  std::vector<u64> t(limit);
  for (u64 m = 0; m < limit; ++m) t[m] = (m * m * m + 5 * m + 1) % limit;
  for (u64 m = limit / 2; m < limit; ++m) {
    if (name == "lut_negacyclic") t[m] = (limit - t[m - limit / 2]) % limit;
    if (name == "lut_periodic") t[m] = t[m - limit / 2];
  }
  return t;
}

Operation lut_operation(const tfhe::Params& params, const std::string& name, u64 limit) {
  Operation op;
  op.name = name;
  op.limit = limit;
  op.bootstraps = params.spec().padded || name == "lut_negacyclic" ? 1 : 2;
  const tfhe::Lut lut{table(name, limit)};
  op.run = [lut](const tfhe::Evaluator& ev, const Operation::Inputs& in) {
    return one(ev.lut(*in[0], lut));
  };
  op.clear = [lut](const std::vector<u64>& m) { return std::vector<u64>{lut.table[m[0]]}; };
  return op;
}

}  // namespace

u64 clear_gate(Gate gate, const std::vector<u64>& bits) {
  u64 sum = 0;
  for (const u64 bit : bits) sum += bit;
  const u64 all = bits.size();
  switch (gate) {
    case Gate::and_:
    case Gate::and3:
    case Gate::and4:
      return sum == all;
    case Gate::or_:
    case Gate::or3:
    case Gate::or4:
      return sum != 0;
    case Gate::nand:
      return sum != all;
    case Gate::nor:
      return sum == 0;
    case Gate::xor_:
      return sum & 1;
    case Gate::xnor:
      return ~sum & 1;
    case Gate::majority:
      return 2 * sum > all;
  }
  throw StateError("unknown gate");
}

const std::vector<Gate>& two_input_gates() {
  static const std::vector<Gate> gates{Gate::nand, Gate::and_, Gate::or_,
                                       Gate::nor,  Gate::xor_, Gate::xnor};
  return gates;
}

Operation make_operation(const tfhe::Params& params, const std::string& wanted, u32 floor_bits) {
  const u64 p = params.spec().plain_modulus;
  const u64 limit = params.spec().padded ? p / 2 : p;
  const std::string name = !wanted.empty() ? wanted : p > 4 ? "lut" : "nand";
  std::string known = "lut, lut_negacyclic, lut_periodic, refresh, floor, sign, decompose";
  for (const Gate gate : {Gate::and_, Gate::or_, Gate::nand, Gate::nor, Gate::xor_, Gate::xnor,
                          Gate::majority, Gate::and3, Gate::or3, Gate::and4, Gate::or4}) {
    if (name == tfhe::name_of(gate)) return gate_operation(gate);
    known += cat(", ", tfhe::name_of(gate));
  }
  if (name == "lut" || name == "lut_negacyclic" || name == "lut_periodic")
    return lut_operation(params, name, limit);
  Operation op;
  op.name = name;
  op.limit = limit;
  const u32 log_limit = static_cast<u32>(std::bit_width(limit) - 1);
  const u32 low = floor_bits ? floor_bits : std::max(1u, log_limit / 2);
  const auto with_one = [&](auto run, auto clear, u32 bootstraps) {
    op.run = [run](const tfhe::Evaluator& ev, const Operation::Inputs& in) {
      return one(run(ev, *in[0]));
    };
    op.clear = [clear](const std::vector<u64>& m) { return std::vector<u64>{clear(m[0])}; };
    op.bootstraps = bootstraps;
    return op;
  };
  using C = tfhe::Ciphertext;
  using E = tfhe::Evaluator;
  if (name == "refresh") {
    op.plain_modulus = 4;
    op.limit = 2;
    return with_one([](const E& ev, const C& c) { return ev.refresh(c); }, [](u64 m) { return m; },
                    1);
  }
  if (name == "floor")
    return with_one([low](const E& ev, const C& c) { return ev.floor(c, low); },
                    [low](u64 m) { return m >> low << low; }, 2);
  if (name == "sign")
    return with_one([](const E& ev, const C& c) { return ev.sign(c); },
                    [limit](u64 m) { return u64(m >= limit / 2); }, 2);
  if (name == "decompose") {
    const u32 digits = (log_limit + low - 1) / low;
    op.bootstraps = 2 * digits;
    op.run = [low](const E& ev, const Operation::Inputs& in) { return ev.decompose(*in[0], low); };
    op.clear = [low, digits](const std::vector<u64>& m) {
      std::vector<u64> out;
      for (u32 d = 0; d < digits; ++d) out.push_back(m[0] >> (d * low) & ((u64(1) << low) - 1));
      return out;
    };
    return op;
  }
  throw ParameterError(cat("unknown operation '", name, "', expected one of ", known),
                       {{"operation", name}, {"expected", known}});
}

}  // namespace crenel::bench
