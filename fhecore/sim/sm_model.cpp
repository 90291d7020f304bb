#include "sm_model.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

#include "sm_units.h"

namespace crenel::fhecore::sim {
namespace {

constexpr i64 kNever = std::numeric_limits<i64>::max() / 4;
enum Policy { kGreedyOldest, kRoundRobin, kLeastRecent };  // the last is greedy, too
struct Cta {
  std::vector<int> warps;
  int live = 0, arrived = 0;
};

struct Subcore {
  std::vector<int> warps;  // oldest first
  int last = -1;           // warp of the last issue
  bool stay = true;        // it did not ask to yield
};

class Sm {
 public:
  Sm(const Trace& trace, const Params& params)
      : trace_(trace),
        units_(trace, params),
        resident_(resident_ctas(trace, params)),
        policy_(static_cast<int>(params["scheduler"])),
        cta_launch_(params["cta_launch"]),
        cta_interval_(params["cta_interval"]),
        bar_latency_(static_cast<i64>(params["bar_latency"])),
        branch_cycles_(static_cast<i64>(params["branch_cycles"])),
        clock_cycles_(static_cast<i64>(params["clock_cycles"])),
        wide_stall_(static_cast<i64>(params["wide_stall"])) {}

  Result run() {
    result_.ctas_resident = resident_;
    for (int c = 0; c < resident_ && next_cta_ < trace_.ctas.size(); ++c) start_cta(0);
    i64 now = 0, last_change = 0;
    while (live_warps_ > 0) {
      bool issued = false;
      for (int k = 0; k < kSubcores; ++k) {
        units_.begin_cycle(k, now);
        issued |= issue_one(subcores_[k], now);
      }
      if (issued) {
        active_sum_ +=
            static_cast<double>(live_warps_) * static_cast<double>(now + 1 - last_change);
        last_change = ++now;
        continue;
      }
      const i64 next = next_time(now);
      if (next >= kNever)
        throw SimError(trace_.kernel + ": no warp can go on (a barrier that not all warps reach?)");
      result_.idle_cycles += next - now;
      now = next;
    }
    finish(now);
    return std::move(result_);
  }

 private:
  const Instruction& current(const Warp& w) const { return trace_.code[w.at]; }

  // Of a place that is free from `from` on. CTAs of the multiprocessor start one after the other.
  void start_cta(i64 from) {
    const i64 at = static_cast<i64>(
        std::ceil(launcher_.serve(static_cast<double>(from), cta_interval_) + cta_launch_));
    Cta cta;
    const int id = static_cast<int>(ctas_.size());
    for (const int path : trace_.ctas[next_cta_]) {
      Warp w;
      w.path = &trace_.paths[path];
      w.at = w.path->front().first;
      w.cta = id;
      w.subcore = static_cast<int>(std::min_element(subcores_.begin(), subcores_.end(),
                                                    [](const Subcore& a, const Subcore& b) {
                                                      return a.warps.size() < b.warps.size();
                                                    }) -
                                   subcores_.begin());
      w.earliest = at;
      w.id = static_cast<int>(warps_.size());
      cta.warps.push_back(static_cast<int>(warps_.size()));
      subcores_[w.subcore].warps.push_back(static_cast<int>(warps_.size()));
      warps_.push_back(std::move(w));
      ++cta.live, ++live_warps_;
    }
    ctas_.push_back(std::move(cta));
    ++next_cta_;
  }

  bool can_issue(int id, i64 now) const {
    Stall why;
    const Warp& w = warps_[id];
    return w.earliest <= now &&
           units_.free_at(w.subcore, w, current(w), why) <= static_cast<double>(now);
  }

  bool issue_one(Subcore& s, i64 now) {
    if (s.warps.empty()) return false;
    int chosen =
        policy_ != kRoundRobin && s.stay && s.last >= 0 && can_issue(s.last, now) ? s.last : -1;
    if (chosen < 0) chosen = next_warp(s, now);
    if (chosen < 0) return false;
    issue(s, chosen, now);
    return true;
  }

  // Of the warps that can issue, the one whose turn it is; -1 where none can.
  int next_warp(const Subcore& s, i64 now) const {
    const std::size_t n = s.warps.size();
    std::size_t first = 0;
    const auto last = std::find(s.warps.begin(), s.warps.end(), s.last);
    if (policy_ == kRoundRobin && last != s.warps.end())
      first = static_cast<std::size_t>(last - s.warps.begin()) + 1;
    int best = -1;
    for (std::size_t k = 0; k < n; ++k) {
      const int id = s.warps[(first + k) % n];
      if (!can_issue(id, now)) continue;
      if (policy_ != kLeastRecent) return id;
      if (best < 0 || warps_[id].issued_at < warps_[best].issued_at) best = id;
    }
    return best;
  }

  i64 next_time(i64 now) {
    i64 best = kNever;
    Stall reason = end;
    for (const Subcore& s : subcores_)
      for (const int id : s.warps) {
        const Warp& w = warps_[id];
        Stall why = w.why, hazard;
        i64 t = w.earliest;
        const double free = units_.free_at(w.subcore, w, current(w), hazard);
        if (free > static_cast<double>(t)) t = static_cast<i64>(std::ceil(free)), why = hazard;
        if (t < best) best = t, reason = why;
      }
    best = std::max(best, now + 1);
    if (best < kNever) result_.stalled[reason] += best - now;
    return best;
  }

  void issue(Subcore& s, int id, i64 now) {
    Warp& w = warps_[id];
    const int index = w.at;
    const Instruction& in = trace_.code[index];
    s.last = id, s.stay = !in.yield, w.issued_at = now;
    ++result_.issued, ++result_.by_unit[static_cast<int>(in.unit)];
    units_.issue(in, index, w, now);
    advance(s, id, in, index, now);
  }

  // The warp's next instruction and its earliest time.
  void advance(Subcore& s, int id, const Instruction& in, int index, i64 now) {
    Warp& w = warps_[id];
    const bool last_of_segment = index + 1 == (*w.path)[w.segment].second;
    bool over = in.unit == Unit::exit && last_of_segment && w.segment + 1 == w.path->size();
    int next = index + 1;
    if (last_of_segment && !over) {
      if (++w.segment == w.path->size())
        over = true;
      else
        next = (*w.path)[w.segment].first;
    }
    if (over) return retire(s, id, now);
    w.at = next;
    i64 stall = std::max(1, in.stall);
    if (in.unit == Unit::bra && next != index + 1) stall = std::max(stall, branch_cycles_);
    if (in.unit == Unit::clock) stall = std::max(stall, clock_cycles_);
    if (in.unit == Unit::fmawide) stall += wide_stall_;
    w.earliest = std::max(now + stall, w.constants_at), w.why = fixed;
    wait_for(w, trace_.code[next]);
    if (in.unit == Unit::bar) {
      w.in_sync = true;
      ++ctas_[w.cta].arrived;
      release(ctas_[w.cta], now);
    }
  }

  void wait_for(Warp& w, const Instruction& in) {
    const auto until = [&](i64 t, Stall why) {
      if (t > w.earliest) w.earliest = t, w.why = why;
    };
    for (int b = 0; b < 6; ++b) {
      if (!(in.wait >> b & 1)) continue;
      for (const i64 t : w.pending[b]) until(t, barrier);
      w.pending[b].clear();
    }
    if (in.unit == Unit::depbar) {
      auto& times = w.pending[in.depbar];
      std::sort(times.begin(), times.end());
      const std::size_t stay = std::min(times.size(), static_cast<std::size_t>(in.arg));
      for (std::size_t k = 0; k + stay < times.size(); ++k) until(times[k], barrier);
    }
    for (const auto& [first, count] : in.sources)
      for (int r = first; r < first + count; ++r)
        until(in.unit == Unit::fmawide ? w.ready_wide[r] : w.ready[r], scoreboard);
    for (int r = 0; r < in.dst_count; ++r) until(w.ready[in.dst + r], scoreboard);
  }

  // Lets the warps of a CTA go on when all that still live have arrived.
  void release(Cta& cta, i64 now) {
    if (cta.live == 0 || cta.arrived < cta.live) {
      for (const int id : cta.warps)
        if (warps_[id].in_sync && warps_[id].earliest < kNever) park(warps_[id]);
      return;
    }
    const i64 go = now + bar_latency_;
    for (const int id : cta.warps) {
      Warp& w = warps_[id];
      if (!w.in_sync) continue;
      w.in_sync = false;
      if (w.earliest >= kNever) w.earliest -= kNever;
      if (go > w.earliest) w.earliest = go, w.why = sync;
    }
    cta.arrived = 0;
  }
  // Beyond all times, what else it waits for kept.
  static void park(Warp& w) { w.earliest += kNever, w.why = sync; }

  void retire(Subcore& s, int id, i64 now) {
    Warp& w = warps_[id];
    std::erase(s.warps, id);
    if (s.last == id) s.last = -1;
    --live_warps_;
    Cta& cta = ctas_[w.cta];
    if (--cta.live > 0) return release(cta, now);
    if (next_cta_ < trace_.ctas.size()) start_cta(now + 1);
  }

  void finish(i64 now) {
    // Stores that are still on their way belong to the kernel.
    const double drained = units_.drained();
    result_.bytes_l2 = units_.bytes_l2, result_.bytes_dram = units_.bytes_dram;
    result_.cycles = std::max(now, static_cast<i64>(std::ceil(drained)));
    result_.stalled[end] += result_.cycles - now;
    if (result_.cycles > 0)
      result_.warps_active = active_sum_ / static_cast<double>(result_.cycles);
    for (Warp& w : warps_) result_.clocks.push_back(std::move(w.clocks));
  }

  const Trace& trace_;
  Units units_;
  int resident_;
  std::array<Subcore, kSubcores> subcores_;
  std::deque<Warp> warps_;
  std::vector<Cta> ctas_;
  std::size_t next_cta_ = 0;
  int live_warps_ = 0;
  int policy_;
  double active_sum_ = 0, cta_launch_, cta_interval_;
  Server launcher_;
  i64 bar_latency_, branch_cycles_, clock_cycles_, wide_stall_;
  Result result_;
};

}  // namespace

int resident_ctas(const Trace& trace, const Params& params) {
  const auto whole = [](double x) { return static_cast<i64>(std::floor(x)); };
  const i64 granule = whole(params["register_granule"]);
  const i64 of_warp = (trace.registers * 32 + granule - 1) / granule * granule;
  i64 fit = std::min(whole(params["max_ctas"]), whole(params["max_warps"]) / trace.warps_per_cta);
  if (of_warp > 0)  // whole warps a sub-core
    fit = std::min(
        fit, whole(params["registers"]) / kSubcores / of_warp * kSubcores / trace.warps_per_cta);
  const double shared = trace.shared_bytes + params["shared_reserved"];
  if (shared > 0) fit = std::min(fit, whole(params["shared_bytes"] / shared));
  if (fit < 1) throw SimError(trace.kernel + ": a CTA does not fit a multiprocessor");
  return static_cast<int>(fit);
}

Result simulate(const Trace& trace, const Params& params) { return Sm(trace, params).run(); }

}  // namespace crenel::fhecore::sim
