// Trace-driven model of one multiprocessor (SM) and its share of the memory system.
//
// Input: a kernel's instructions (registers, control codes of the compiler, what a memory access
// moves), the paths that its warps take, and the thread blocks (CTAs) that one SM executes. Output:
// cycles, instructions, occupancy. fhecore/doc/model.md says what is modelled and what is not.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace crenel::fhecore::sim {

using i64 = std::int64_t;

/// A trace, a parameter file or a request that makes no sense; the text names value and
/// expectation.
struct SimError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Where an instruction goes. Names as in the trace file.
enum class Unit : std::uint8_t {
  alu,
  fma,
  fmawide,
  fmalite,
  uni,
  mufu,
  fp64,
  tensor,
  fhec,
  setc,  // pipes of a sub-core
  ldg,
  stg,
  lds,
  sts,
  ldgsts,
  shfl,
  ldc,
  s2r,  // through the MIO queue
  bar,
  depbar,
  ldgdepbar,
  bra,
  exit,
  clock,
  nop  // control
};
inline constexpr int kUnits = static_cast<int>(Unit::nop) + 1;
const char* name_of(Unit unit);
Unit unit_named(const std::string& name);

struct Instruction {
  Unit unit = Unit::nop;
  int dst = -1, dst_count = 0;               ///< registers written, first and number
  std::vector<std::pair<int, int>> sources;  ///< registers read: (first, number)
  std::array<int, 2> reads{};  ///< registers from the even and the odd bank of the register file
  std::array<int, 2> lost{};   ///< more, when another warp issued since the warp's last instruction
  int constants = -1;          ///< line of constants read
  int stall = 1;               ///< cycles until this warp's next issue, from the encoding
  bool yield = false;
  int write_bar = 7, read_bar = 7;  ///< dependency barrier 0..5, 7 none
  unsigned wait = 0;                ///< mask of barriers that must be clear
  int arg = 0;     ///< depbar: groups that may stay; tensor: 2 for twice the products of IMMA.16816
  int depbar = 0;  ///< depbar: barrier
  double sectors = 0;             ///< global: 32-byte sectors a request
  double wavefronts = 1;          ///< passes through the data stage of the LSU a request
  double l1_hit = 0, l2_hit = 1;  ///< fraction of sectors
  int source_registers() const;
};

/// Half-open ranges of instruction indices, in the order executed.
using Path = std::vector<std::pair<int, int>>;

struct Trace {
  std::string kernel;
  int warps_per_cta = 0, registers = 0;  ///< registers a thread
  int shared_bytes = 0;                  ///< of a CTA
  i64 grid_ctas = 0;                     ///< of the whole launch
  std::vector<Instruction> code;
  std::vector<Path> paths;
  std::vector<std::vector<int>> ctas;  ///< of the SM that is simulated: path of every warp
};

/// Named numbers; every name must be known and every known name present.
class Params {
 public:
  explicit Params(std::map<std::string, double> values);
  double operator[](const std::string& name) const;
  static const std::vector<std::string>& names();

 private:
  std::map<std::string, double> values_;
};

struct Result {
  i64 cycles = 0;  ///< from the first CTA's start to the last warp's end
  i64 issued = 0;  ///< warp instructions
  std::array<i64, kUnits> by_unit{};
  int ctas_resident = 0;         ///< limit by registers, shared memory, warps
  double warps_active = 0;       ///< mean over cycles
  i64 idle_cycles = 0;           ///< cycles in which no sub-core issued
  std::array<i64, 8> stalled{};  ///< of those, by what the first warp to go on waited for
  double bytes_l2 = 0, bytes_dram = 0;
  std::vector<std::vector<i64>> clocks;  ///< issue cycles of clock reads, warp by warp
};
/// Names of Result::stalled.
inline constexpr const char* kStalls[] = {"fixed", "barrier", "scoreboard", "pipe",
                                          "mio",   "sync",    "launch",     "end"};

/// CTAs that fit an SM at once. SimError when none does.
int resident_ctas(const Trace& trace, const Params& params);
Result simulate(const Trace& trace, const Params& params);

Trace read_trace(const std::string& text);
Params read_params(const std::string& text);
std::string to_json(const Trace& trace, const Result& result);

}  // namespace crenel::fhecore::sim
