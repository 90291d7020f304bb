// Directed runs: latency, initiation interval, back pressure. All figures are exact expectations.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "fhecore/dv/unit_random.h"

namespace crenel::fhecore::dv {

/// Clock edges of an undisturbed unit, from the specification (doc/microarchitecture.md).
inline constexpr u64 kLatency = K + (R - 1) + (C - 1) + kLevels;  ///< 44 for the paper's unit
inline constexpr u64 kPeriod = K > R ? K : R;
inline constexpr u64 beats_of(bool use_c) { return kBeatsA + kBeatsB + (use_c ? kBeatsC : 0); }
inline constexpr u64 interval(bool use_c, u64 lookup = kLookup) {
  return std::max({kPeriod, beats_of(use_c), lookup});
}
/// From the start of a tile to that of one that has to load its bank: the array's latency, and one
/// edge more where only three diagonals arrive.
inline constexpr u64 kBankGap = kLatency + (R + C == 4 ? 1 : 0);
/// A tile has a result buffer from its start to its last beat.
inline constexpr u64 kBuffers =
    (kLatency + 3 + interval(false, kLookupAgain) - 1) / interval(false, kLookupAgain);

/// From the edge that can sample the first word of a tile to the one that takes the last of its
/// first `beats` beats: a beat leaves an edge after its latest word, one beat an edge.
inline u64 drain_edges(u32 beats) {
  std::vector<u64> latest(kBeatsC, 0);
  for (const Spot& s : spots('C'))
    latest[s.beat] = std::max<u64>(latest[s.beat], s.element / C + s.element % C);
  u64 edge = 0;
  for (u32 n = 0; n < beats; ++n) edge = std::max(edge + 1, latest[n] + 1);
  return edge;
}

/// Measured and asserted figures, for the report.
using Figures = std::vector<std::pair<std::string, u64>>;

class Timing {
 public:
  Timing(u64 seed, Stream& stream, Bench& bench) : random_(seed), stream_(stream), bench_(bench) {}

  Figures run() {
    bench_.gate_cmd.flow = bench_.gate_rf.flow = bench_.gate_res.flow = 0;
    for (const bool use_c : {true, false}) {
      latency(use_c);
      for (u32 sets = 1; sets <= std::min(3u, S.warp_slots); ++sets) rotation(sets, use_c);
      shared(use_c);
      renewed(use_c);
    }
    alike();
    behind_setc();
    back_pressure();
    return figures_;
  }

 private:
  Random random_;
  Stream& stream_;
  Bench& bench_;
  Figures figures_;

  void expect(const std::string& name, u64 got, u64 want) {
    figures_.emplace_back(name, got);
    if (got != want)
      bench_.fail(name + " is " + std::to_string(got) + ", expected " + std::to_string(want));
  }
  static std::string suffix(bool use_c) { return use_c ? "_with_c" : "_without_c"; }

  void fresh() {
    bench_.reset(2);
    stream_.forget();
  }
  void tile(u32 slot, bool use_c) {
    const Set none = draw_set(random_, 0);
    const Words a = draw_a(random_, "any_word", none),
                b = draw_operand(random_, "any_word", none, K),
                c = draw_operand(random_, "any_word", none, R);
    stream_.fhec(slot, a, b, use_c ? &c : nullptr);
  }
  void set(u32 slot) { stream_.setc(slot, draw_set(random_, 0)); }

  void latency(bool use_c) {
    fresh();
    set(0);
    bench_.drain();
    tile(0, use_c);
    bench_.drain();
    const Edges& e = bench_.edges;
    expect("array_latency" + suffix(use_c), e.last_element.at(0) - e.step0.at(0), kLatency);
    // take, beats, start, step 0 (the slot has been looked up: it is that of the last command); the
    // array to the first word; the beats of the result
    const u64 first_word = 1 + beats_of(use_c) + 2 + (kLatency - (R + C - 2)),
              from = e.command.back();
    expect("command_to_first_beat" + suffix(use_c), e.first_beat.at(0) - from,
           first_word + drain_edges(1));
    expect("command_to_last_beat" + suffix(use_c), e.last_beat.at(0) - from,
           first_word + drain_edges(kBeatsC));
  }

  /// Sums of two successive gaps, all equal: twice the mean interval.
  u64 pair_gap(const std::vector<u64>& at, const std::string& what) {
    for (std::size_t n = 4; n < at.size(); ++n)
      if (at[n] - at[n - 2] != at[3] - at[1]) bench_.fail(what + ": the interval is not steady");
    return at.at(3) - at.at(1);
  }

  void rotation(u32 sets, bool use_c) {
    fresh();
    for (u32 slot = 0; slot < sets; ++slot) set(slot);
    bench_.drain();
    for (u32 n = 0; n < 48; ++n) tile(n % sets, use_c);
    bench_.drain();
    const std::string name = "interval_x2_" + std::to_string(sets) + "_sets" + suffix(use_c);
    const u64 each = interval(use_c, sets == 1 ? kLookupAgain : kLookup), steady = 2 * each;
    const u64 want = sets < 3 ? steady : std::max(steady, kBankGap);
    expect(name, pair_gap(bench_.edges.start, name), want);
    if (pair_gap(bench_.edges.last_beat, name) != want)
      bench_.fail(name + " differs at the results");
    for (std::size_t n = 1; sets < 3 && n < bench_.edges.start.size(); ++n)
      if (bench_.edges.start[n] - bench_.edges.start[n - 1] !=
          (n == 1 ? interval(use_c) : each))  // the first tile loads its bank
        bench_.fail(name + ": tile " + std::to_string(n) + " started late");
  }

  /// All warps with the same constants, as in a transform of one limb: banks go by words.
  void shared(bool use_c) {
    fresh();
    const Set common = draw_set(random_, 0);
    for (u32 slot = 0; slot < S.warp_slots; ++slot) stream_.setc(slot, common);
    bench_.drain();
    for (u32 n = 0; n < 48; ++n) tile(n % S.warp_slots, use_c);
    bench_.drain();
    const std::string name = "interval_x2_shared_set" + suffix(use_c);
    expect(name, pair_gap(bench_.edges.start, name), 2 * interval(use_c));
  }

  /// Sets that differ in one column's q' or mu only, in turn, with either one first: a bank that is
  /// taken for the other's gives wrong words. Only the set whose mu belongs to q' is checked there.
  void alike() {
    const std::size_t before = bench_.tiles;
    for (u32 n = 0; n < 4 * C; ++n) {
      const u32 j = n / 4, first = n % 2;
      fresh();
      const Set right = draw_set(random_, 0);
      Set wrong = right;
      auto& q = wrong.words[j][0];
      if (n / 2 % 2 == 0)
        spoil_mu(random_, wrong, j);
      else
        q ^= q == (1u << 28) + 1 ? 2 : 1;  // stays valid
      wrong.checked[j] = false;
      stream_.setc(0, wrong);
      stream_.setc(1, right);
      for (u32 t = 0; t < 4; ++t) tile((first + t) % 2, false);
      bench_.drain();
    }
    expect("tiles_of_sets_alike", bench_.tiles - before, 16 * C);
  }

  /// New constants for one warp before each of its tiles.
  void renewed(bool use_c) {
    fresh();
    for (u32 n = 0; n < 48; ++n) {
      set(0);
      tile(0, use_c);
    }
    bench_.drain();
    const std::string name = "interval_x2_setc_each_tile" + suffix(use_c);
    expect(name, pair_gap(bench_.edges.start, name),
           std::max({2 * (beats_of(use_c) + kBeatsSet), 2 * interval(use_c), kBankGap}));
  }

  /// A tile right behind the SETC of its own slot starts when its operands are there: the lookup is
  /// over by then. Each time the slot held another set, which is in a bank.
  void behind_setc() {
    fresh();
    set(0);
    for (u32 n = 0; n < 8; ++n) {
      tile(0, false);
      bench_.drain();
      set(0);
      tile(0, false);
      bench_.drain();
      const u64 edges = bench_.edges.start.back() - bench_.set_edge();
      if (n == 0)
        expect("setc_to_start", edges, kSetToStart);
      else if (edges != kSetToStart)
        bench_.fail("a tile behind a SETC started late");
    }
  }

  /// A reader that stops: the unit fills up and no more, and loses nothing.
  void back_pressure() {
    fresh();
    set(0);
    bench_.drain();
    for (u32 n = 0; n < 20; ++n) tile(0, true);
    const std::size_t before = bench_.edges.command.size();
    bench_.gate_res.flow = kNever;
    for (u32 n = 0; n < 1000; ++n) bench_.cycle();
    expect("tiles_started_without_reader", bench_.edges.start.size(), kBuffers);
    expect("commands_taken_without_reader", bench_.edges.command.size() - before, kBuffers + 2 + 2);
    bench_.gate_res.flow = 0;
    bench_.drain();
    expect("tiles_after_all", bench_.edges.last_beat.size(), 20);
  }
};

}  // namespace crenel::fhecore::dv
