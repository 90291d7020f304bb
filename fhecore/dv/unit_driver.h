// Drives the wrapper clock by clock: command, operand and result channels, checks of every beat,
// and the edges at which things happened.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "Vfhecore.h"
#include "Vfhecore___024root.h"
#include "fhecore/dv/unit_coverage.h"
#include "fhecore/dv/unit_stimulus.h"
#include "verilated.h"

namespace crenel::fhecore::dv {

struct Command {
  bool setc = false, use_c = false;
  u32 slot = 0, tag = 0;
  std::vector<Beat> beats;
};
struct Expected {
  u32 tag = 0;
  Outcome outcome;
  std::array<bool, C> checked{};
};

/// Edges from the take of a tile's command, and from the start before, to its earliest start: its
/// constants are looked up meanwhile. From a start of the same slot that loaded no bank: one less.
inline constexpr u64 kLookup = 4, kLookupAgain = kLookup - 1;
/// Edges from the one that writes a set to the earliest start of a tile (without C) behind it.
inline constexpr u64 kSetToStart = std::max<u64>(kBeatsA + kBeatsB + 1, kLookup);
/// A SETC in the cycle of a start, and so many cycles later.
inline const Names kLags{"same", "1", "2", "3"};

/// How willing a side of a channel is, cycle by cycle.
inline const Names kFlows{"always", "half", "sparse", "bursts"};
inline constexpr u32 kNever = 4;
class Gate {
 public:
  u32 flow = 0;
  bool open(Random& random) {
    switch (flow) {
      case kNever:
        return false;
      case 0:
        return true;
      case 1:
        return random.one_in(2);
      case 2:
        return random.one_in(6);
      default:  // runs of both kinds, up to 64 cycles
        if (left_ == 0) {
          state_ = !state_;
          left_ = 1 + random.below(64);
        }
        --left_;
        return state_;
    }
  }

 private:
  u32 left_ = 0;
  bool state_ = false;
};

/// Clock edges at which things happened, each list in order. A value is sampled at the edge.
struct Edges {
  std::vector<u64> command, start, step0, last_element, first_beat, last_beat;
};

class Bench {
 public:
  Gate gate_cmd, gate_rf, gate_res;
  std::deque<Command> commands;
  std::deque<Expected> expected;
  Edges edges;
  u64 now = 0, tiles = 0;

  Bench(u64 seed, Coverage& coverage)
      : random_(seed), coverage_(coverage), top_(std::make_unique<Vfhecore>()) {
    coverage_.declare("flow", {"cmd_waits", "rf_waits", "rf_gap", "res_waits", "res_waits_64",
                               "start_waits_buffer", "start_waits_bank", "start_back_to_back"});
    coverage_.declare("bank", {"held", "loaded"}, {"0", "1"});
    coverage_.declare("set_after_start", kLags, {"own_slot", "other_slot"});
    coverage_.declare("next_slot", {"stays", "changes"}, {"collected", "collecting"});
    coverage_.declare("set_to_start", {"soonest", "later"});
  }

  /// Reset at once, whatever is in flight; everything queued is forgotten.
  void reset(u32 cycles) {
    top_->rst = 1;
    top_->cmd_valid = top_->rf_valid = top_->res_ready = 0;
    for (u32 n = 0; n < cycles; ++n) edge();
    top_->rst = 0;
    commands.clear();
    expected.clear();
    beats_.clear();
    edges = {};
    held_ = waited_ = false;
    beat_ = column_rows_ = res_wait_ = 0;
    started_.reset();
    set_.reset();
  }

  void push(Command command) {
    beats_.insert(beats_.end(), command.beats.begin(), command.beats.end());
    command.beats.clear();
    commands.push_back(std::move(command));
  }

  void cycle() {
    drive();
    top_->clk = 0;
    top_->eval();
    watch();
    const bool cmd = top_->cmd_valid && top_->cmd_ready, rf = top_->rf_valid && top_->rf_ready;
    const bool res = top_->res_valid && top_->res_ready;
    if (cmd) edges.command.push_back(now);
    if (res) take_result();
    edge();
    if (cmd) {
      commands.pop_front();
      held_ = false;
    }
    if (rf) beats_.pop_front();
  }

  u64 set_edge() const { return set_ ? set_->edge : 0; }  ///< of the latest SETC

  void drain() {
    for (u64 limit = now + 100000; !expected.empty() || !commands.empty() || !beats_.empty();
         cycle())
      if (now > limit) fail("the unit hangs");
    for (u32 n = 0; n < 4; ++n) cycle();  // nothing may come after the last result
  }

  [[noreturn]] void fail(const std::string& what) const {
    std::ostringstream text;
    text << "clock edge " << now << ", tile " << tiles << ": " << what;
    throw std::runtime_error(text.str());
  }

 private:
  Random random_;
  Coverage& coverage_;
  std::unique_ptr<Vfhecore> top_;
  std::deque<Beat> beats_;
  Beat shown_{};
  bool held_ = false, waited_ = false;
  u32 beat_ = 0, column_rows_ = 0, res_wait_ = 0;
  struct At {
    u64 edge;
    u32 slot;
  };
  std::optional<At> started_, set_;  // the latest start and the latest SETC
  u32 slot_before_ = 0;

  void edge() {
    top_->clk = 0;
    top_->eval();
    top_->clk = 1;
    top_->eval();
    ++now;
  }

  void drive() {
    held_ = held_ || (!commands.empty() && gate_cmd.open(random_));  // a command stays once shown
    top_->cmd_valid = held_;
    if (held_) {
      top_->cmd_setc = commands.front().setc;
      top_->cmd_slot = commands.front().slot;
      top_->cmd_use_c = commands.front().use_c;
      top_->cmd_tag = commands.front().tag;
    }
    top_->rf_valid = !beats_.empty() && gate_rf.open(random_);
    for (u32 l = 0; l < L; ++l)  // noise when it is not valid
      top_->rf_data[l] = top_->rf_valid ? beats_.front()[l] : static_cast<u32>(random_.word());
    top_->res_ready = gate_res.open(random_);
  }

  void watch() {
    const auto& inside = *top_->rootp;
    if (inside.fhecore__DOT__start) edges.start.push_back(now);
    if (inside.fhecore__DOT__k_valid && inside.fhecore__DOT__step == 0) edges.step0.push_back(now);
    if (inside.fhecore__DOT__d_valid >> (C - 1) & 1 && ++column_rows_ == R) {
      edges.last_element.push_back(now);
      column_rows_ = 0;
    }
    res_wait_ = top_->res_valid && !top_->res_ready ? res_wait_ + 1 : 0;
    const bool ready = inside.fhecore__DOT__tile_ready;
    if (top_->cmd_valid && !top_->cmd_ready) coverage_.hit("flow", "cmd_waits");
    if (top_->rf_valid && !top_->rf_ready) coverage_.hit("flow", "rf_waits");
    if (!top_->rf_valid && top_->rf_ready) coverage_.hit("flow", "rf_gap");
    if (res_wait_ != 0) coverage_.hit("flow", "res_waits");
    if (res_wait_ == 64) coverage_.hit("flow", "res_waits_64");
    if (ready && !inside.fhecore__DOT__free) coverage_.hit("flow", "start_waits_buffer");
    if (ready && inside.fhecore__DOT__vacant && !inside.fhecore__DOT__bank_ready)
      coverage_.hit("flow", "start_waits_bank");
    if (inside.fhecore__DOT__start && inside.fhecore__DOT__run)
      coverage_.hit("flow", "start_back_to_back");
    watch_constants();
    check_stable();
  }

  /// Constants are looked up ahead of the start: what the lookup relies on, and the close calls.
  void watch_constants() {
    const auto& inside = *top_->rootp;
    const u32 slot = inside.fhecore__DOT__tile_slot;
    const bool start = inside.fhecore__DOT__start;
    if (start && slot != slot_before_) fail("the slot of a starting tile came in the same cycle");
    slot_before_ = slot;
    if (started_ && now == started_->edge + 1) {
      const bool there = inside.fhecore__DOT__tile_ready;
      coverage_.hit("next_slot", slot == started_->slot ? "stays" : "changes",
                    there ? "collected" : "collecting");
    }
    if (start) {
      coverage_.hit("bank", inside.fhecore__DOT__constants__DOT__miss ? "loaded" : "held",
                    inside.fhecore__DOT__bank ? "1" : "0");
      started_ = At{now, slot};
      if (set_ && set_->slot == slot)
        coverage_.hit("set_to_start", now - set_->edge == kSetToStart ? "soonest" : "later");
    }
    if (!inside.fhecore__DOT__write_set || !inside.fhecore__DOT__write_last) return;
    set_ = At{now, inside.fhecore__DOT__write_slot};
    if (started_ && now - started_->edge < kLags.size())
      coverage_.hit("set_after_start", kLags[now - started_->edge],
                    set_->slot == started_->slot ? "own_slot" : "other_slot");
  }

  /// A result beat that is not taken stays as it is.
  void check_stable() {
    if (waited_ && !top_->res_valid) fail("res_valid fell before the beat was taken");
    for (u32 l = 0; l < L && top_->res_valid; ++l) {
      if (waited_ && shown_[l] != top_->res_data[l]) fail("res_data changed before it was taken");
      shown_[l] = top_->res_data[l];
    }
    waited_ = res_wait_ != 0;
  }

  void take_result() {
    static const std::vector<Spot> order = spots('C');
    if (expected.empty()) fail("a result that nobody asked for");
    const Expected& e = expected.front();
    const auto differ = [&](const std::string& what, u32 got, u32 want) {
      std::ostringstream text;
      text << what << " of beat " << beat_ << ": " << got << ", expected " << want;
      fail(text.str());
    };
    if (top_->res_tag != e.tag) differ("tag", top_->res_tag, e.tag);
    if (top_->res_fault != e.outcome.fault) differ("fault", top_->res_fault, e.outcome.fault);
    for (u32 l = 0; l < L; ++l) {
      const u32 element = order[beat_ * L + l].element;
      if (e.checked[element % C] && top_->res_data[l] != e.outcome.d[element])
        differ("word " + std::to_string(l), top_->res_data[l], e.outcome.d[element]);
    }
    if (beat_ == 0) edges.first_beat.push_back(now);
    const bool last = ++beat_ == kBeatsC;
    if (bool(top_->res_last) != last) differ("res_last", top_->res_last, last);
    if (!last) return;
    beat_ = 0;
    edges.last_beat.push_back(now);
    expected.pop_front();
    ++tiles;
  }
};

}  // namespace crenel::fhecore::dv
