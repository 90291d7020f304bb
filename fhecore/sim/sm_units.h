// The units of a multiprocessor and its share of the memory system: when they accept an
// instruction, when its results are there.
#pragma once

#include <algorithm>
#include <deque>

#include "sm_model.h"

namespace crenel::fhecore::sim {

inline constexpr int kSubcores = 4;
enum Stall { fixed, barrier, scoreboard, pipe, mio, sync, launch, end };

struct Warp {
  const Path* path = nullptr;
  std::size_t segment = 0;
  int at = 0;  // instruction index
  int cta = 0, subcore = 0;
  int id = -1;
  i64 earliest = 0;      // of the next issue, structural hazards apart
  i64 issued_at = -1;    // of its last instruction
  i64 constants_at = 0;  // the constants of its last instruction are there
  Stall why = launch;
  bool in_sync = false;
  std::array<std::vector<i64>, 6> pending;  // completion times of what a barrier counts
  std::array<i64, 256> ready{};             // registers of fixed-latency results
  std::array<i64, 256> ready_wide{};        // the same for an instruction of the wide multiplier
  i64 copies = 0;                           // completion of all LDGSTS so far
  int constants = 0;                        // sets of column constants given so far, one a CTA
  std::vector<i64> clocks;
};

// A server that takes requests in order.
struct Server {
  double free = 0;
  double serve(double from, double cycles) { return free = std::max(from, free) + cycles; }
};

class Units {
 public:
  Units(const Trace& trace, const Params& params);

  /// To be called once a cycle, before the questions about it.
  void begin_cycle(int subcore, i64 now);
  /// Time from which the unit of `in` accepts it from warp `w`; `why` says which hazard it is.
  double free_at(int subcore, const Warp& w, const Instruction& in, Stall& why) const;
  /// Issues `in`, instruction number `index`: unit occupancy, results, barriers.
  void issue(const Instruction& in, int index, Warp& w, i64 now);
  /// When all stores are through.
  double drained() const { return std::max(l2_write_.free, dram_.free); }

  double bytes_l2 = 0, bytes_dram = 0;

 private:
  struct Bank {
    int cta = -1, version = -1;  // whose constants, set by its warps' how manieth SETC
    double busy = 0;             // until the last tile that uses them is through
  };
  struct Subcore {
    std::vector<Bank> banks;  // of column constants in the FHEC unit; none: any set at any time
    std::array<double, 2> register_bank{};  // when it can begin the next instruction's reads
    double alu = 0, heavy = 0, lite = 0, uni = 0, mufu = 0, fp64 = 0, port = 0, fhec = 0;
    std::deque<double> queue;  // departure times of what the MIO queue holds
    double mio_free = 0, last_departure = 0;
    int last = -1;  // warp of the last issue: its reused operands are at hand
  };

  double unit_free_at(const Subcore& s, const Warp& w, const Instruction& in, Stall& why) const;
  double bank_free(const Subcore& s, const Warp& w) const;
  static int reads(const Subcore& s, const Warp& w, const Instruction& in, int bank) {
    return in.reads[bank] + (s.last == w.id ? 0 : in.lost[bank]);
  }
  double constants_at(int line, double t);
  void results(const Instruction& in, Warp& w, i64 now, i64 at) const;
  void take_bank(Subcore& s, const Warp& w, double until);
  void memory(Subcore& s, const Instruction& in, int index, double t, double& done, double& read);
  double global(const Instruction& in, int index, double from);

  std::array<Subcore, kSubcores> subcores_;
  std::vector<double> carry_;    // sectors of an instruction that are not whole yet
  std::map<int, double> lines_;  // of constants: when they come, or came, from beyond the SM
  std::array<double, kUnits> interval_{}, latency_{};
  std::size_t depth_ = 1;
  double fill_rate_ = 1, l2_rate_ = 1, l2_write_rate_ = 1, dram_rate_ = 1, dram_write_rate_ = 1;
  Server lsu_, l1_, fill_, l2_, l2_write_, dram_;
  struct {
    double dram_latency, fhec_port_registers, l1_latency, l1_sectors_per_cycle, l2_latency,
        ldc_latency, lds_latency, lsu_cycles_per_wavefront, mio_interval, mio_latency, read_release,
        s2r_latency, setc_cycles, shfl_latency, store_queue_bytes, tensor32_interval, bank_interval,
        bank_queue, l2_read_on_write, wide_stall, wide_alu_cycles, constant_miss;
  } p_{};
};

}  // namespace crenel::fhecore::sim
