// Random instruction streams with their expected results.
#pragma once

#include <optional>
#include <utility>

#include "fhecore/dv/unit_driver.h"

namespace crenel::fhecore::dv {

class Stream {
 public:
  Stream(u64 seed, Coverage& coverage, Bench& bench)
      : random_(seed), coverage_(coverage), bench_(bench) {
    coverage.declare("modulus*b", kModuli, kOperands);
    coverage.declare("modulus*c", kModuli, kAddends);
    coverage.declare("a", kOperands);
    coverage.declare("set", {"uniform", "mixed"});
    coverage.declare("broken", kBroken);
    coverage.declare("broken", {"never_set", "mu_spoiled"});
    coverage.declare("overflow", {"b", "c"}, {"first", "middle", "last"});
    coverage.declare("fault", {"none", "some", "all"});
    coverage.declare("order", {"slot_again", "slot_before_that", "third_slot", "set_anew",
                               "set_after_own_tile", "set_twice", "reset_in_flight"});
    coverage.declare("flows_cmd*rf", kFlows, kFlows);
    coverage.declare("flows_rf*res", kFlows, kFlows);
  }

  /// `tiles` random tiles in phases of one mood each, some cut short by a reset.
  void run(u64 tiles) {
    for (const u64 goal = bench_.tiles + tiles; bench_.tiles < goal;) phase();
    bench_.drain();
  }

  void forget() { sets_ = {}, last_.reset(), before_.reset(), after_setc_ = false; }

  void setc(u32 slot, const Set& set) {
    if (sets_.at(slot)) coverage_.hit("order", "set_anew");
    sets_.at(slot) = set;
    bench_.push({true, false, slot, 0, set.beats()});
    if (last_ == slot && !after_setc_) coverage_.hit("order", "set_after_own_tile");
    if (after_setc_) coverage_.hit("order", "set_twice");
    after_setc_ = true;
  }

  /// A tile of given operands (c null: RZ) on the constants that `slot` has now.
  void fhec(u32 slot, const Words& a, const Words& b, const Words* c) {
    const Set set = sets_.at(slot).value_or(Set{});
    Expected e{tag_++ & 0xff, golden(a, b, c, set), {}};
    const Outcome other = model(a, b, c, set);
    for (u32 j = 0; j < C; ++j) {
      e.checked[j] = set.checked[j] || !set.valid[j];
      for (u32 i = 0; e.checked[j] && i < R; ++i)
        if (other.d[i * C + j] != e.outcome.d[i * C + j]) bench_.fail("model and golden differ");
    }
    if (other.fault != e.outcome.fault) bench_.fail("faults of model and golden differ");
    Command command{false, c != nullptr, slot, e.tag, {}};
    append_beats(command.beats, 'A', a);
    append_beats(command.beats, 'B', b);
    if (c != nullptr) append_beats(command.beats, 'C', *c);
    note(slot, e.outcome.fault);
    bench_.push(std::move(command));
    bench_.expected.push_back(std::move(e));
  }

  Set random_set() {
    const u32 group = random_.below(kModuli.size() * 2);
    Set set = draw_set(random_, group);
    coverage_.hit("set", group >= kModuli.size() ? "mixed" : "uniform");
    for (bool all = random_.one_in(24); all || random_.one_in(6);) {
      for (u32 j = all ? 0 : random_.below(C), end = all ? C : j + 1; j < end; ++j) {
        const u32 how = random_.below(kBroken.size());
        if (how == 4 && !has_reserved_word(j)) continue;
        break_column(random_, set, j, how);
        coverage_.hit("broken", kBroken[how]);
      }
      if (all) break;
    }
    if (random_.one_in(8)) {
      const u32 j = random_.below(C);
      if (set.valid[j]) {
        spoil_mu(random_, set, j);
        coverage_.hit("broken", "mu_spoiled");
      }
    }
    return set;
  }

  void random_tile(u32 slot) {
    const Set set = sets_.at(slot).value_or(Set{});
    if (!sets_.at(slot)) coverage_.hit("broken", "never_set");
    const std::string &kind_a = kOperands[random_.below(kOperands.size())],
                      &kind_b = kOperands[random_.below(kOperands.size())],
                      &kind_c = kAddends[random_.below(kAddends.size())];
    Words b = draw_operand(random_, kind_b, set, K), c = draw_operand(random_, kind_c, set, R);
    const bool use_c = kind_c != "none";
    if (random_.one_in(8)) overflow(b, set, K, "b");
    if (use_c && random_.one_in(8)) overflow(c, set, R, "c");
    fhec(slot, draw_a(random_, kind_a, set), b, use_c ? &c : nullptr);
    coverage_.hit("a", kind_a);
    for (u32 j = 0; j < C; ++j)
      if (set.valid[j] && set.checked[j]) {
        coverage_.hit("modulus*b", kModuli[set.group[j]], kind_b);
        coverage_.hit("modulus*c", kModuli[set.group[j]], kind_c);
      }
  }

 private:
  Random random_;
  Coverage& coverage_;
  Bench& bench_;
  std::array<std::optional<Set>, S.warp_slots> sets_;
  std::optional<u32> last_, before_;  // slots of the last two tiles
  bool after_setc_ = false;
  u32 tag_ = 0;

  static bool has_reserved_word(u32 j) { return 3 * C + j < kBeatsSet * L; }

  /// One word that loses bits in its column's shift; nothing when the column has none.
  void overflow(Words& words, const Set& set, u32 rows, const std::string& which) {
    const u32 j = random_.below(C), s = shift_of(set, j);
    if (s == 0 || !set.valid[j]) return;
    const u32 where = random_.below(3);
    const u32 row = where == 0 ? 0 : where == 2 ? rows - 1 : random_.below(rows);
    words[row * C + j] = static_cast<u32>(random_.word()) | 1u << (32 - s + random_.below(s));
    coverage_.hit("overflow", which, where == 0 ? "first" : where == 2 ? "last" : "middle");
  }

  void note(u32 slot, u32 fault) {
    coverage_.hit("fault", fault == 0 ? "none" : fault == (1u << C) - 1 ? "all" : "some");
    if (last_ == slot)
      coverage_.hit("order", "slot_again");
    else if (before_ == slot)
      coverage_.hit("order", "slot_before_that");
    else if (last_ && before_ && last_ != before_)
      coverage_.hit("order", "third_slot");
    before_ = std::exchange(last_, slot);
    after_setc_ = false;
  }

  void phase() {
    const u32 flow_cmd = bench_.gate_cmd.flow = random_.below(kFlows.size());
    const u32 flow_rf = bench_.gate_rf.flow = random_.below(kFlows.size());
    const u32 flow_res = bench_.gate_res.flow = random_.below(kFlows.size());
    coverage_.hit("flows_cmd*rf", kFlows[flow_cmd], kFlows[flow_rf]);
    coverage_.hit("flows_rf*res", kFlows[flow_rf], kFlows[flow_res]);
    const u32 policy = random_.below(4), base = random_.below(S.warp_slots);
    const u32 setc_rate = random_.one_in(4) ? 2 : 8, count = 4 + random_.below(40);
    for (u32 n = 0; n < count; ++n) {
      // policy 0: one warp; 1: two in turn; 2: three in turn; 3: any
      const u32 slot =
          policy == 3 ? random_.below(S.warp_slots) : (base + n % (policy + 1)) % S.warp_slots;
      if (random_.one_in(setc_rate) || (!sets_.at(slot) && !random_.one_in(16)))
        setc(slot, random_set());
      if (setc_rate == 2 && random_.one_in(4)) setc(random_.below(S.warp_slots), random_set());
      random_tile(slot);
      for (const u64 limit = bench_.now + 100000; bench_.commands.size() > 6; bench_.cycle())
        if (bench_.now > limit) bench_.fail("the unit hangs");
    }
    if (random_.one_in(5)) {
      for (u32 n = random_.below(120); n > 0; --n) bench_.cycle();
      if (!bench_.expected.empty()) coverage_.hit("order", "reset_in_flight");
      bench_.reset(1 + random_.below(3));
      forget();
    } else if (random_.one_in(4)) {
      bench_.drain();
    }
  }
};

}  // namespace crenel::fhecore::dv
