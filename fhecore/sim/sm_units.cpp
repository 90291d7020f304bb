#include "sm_units.h"

#include <cmath>

namespace crenel::fhecore::sim {
namespace {

constexpr int kSector = 32;

// When a pipe that was free from `free` on and issues at `t` is free again. Issues are in whole
// cycles: back to back, the fraction of an interval that waits for the next cycle is not lost.
double paced(double free, double t, double interval) {
  return (t - free < 1 ? free : t) + interval;
}

bool through_mio(Unit u) { return u >= Unit::ldg && u <= Unit::s2r; }

}  // namespace

Units::Units(const Trace& trace, const Params& p) : carry_(trace.code.size(), 0.0) {
  const double sms = p["sms"];
  // The SM's share, when as many SMs work as have a CTA.
  const double busy = std::min<double>(sms, static_cast<double>(trace.grid_ctas));
  fill_rate_ = p["sm_fill_bytes_per_cycle"];
  l2_rate_ = p["l2_bytes_per_cycle"] / busy;
  l2_write_rate_ = p["l2_write_bytes_per_cycle"] / busy;
  dram_rate_ = p["dram_bytes_per_cycle"] / busy;
  dram_write_rate_ = p["dram_write_bytes_per_cycle"] / busy;
  const auto pipe = [&](Unit u, const char* name) {
    const std::string base = name;
    interval_[static_cast<int>(u)] = p[base + "_interval"];
    latency_[static_cast<int>(u)] = p[base + "_latency"];
  };
  pipe(Unit::alu, "alu"), pipe(Unit::fma, "fma"), pipe(Unit::fmawide, "fmawide");
  pipe(Unit::fmalite, "fmalite"), pipe(Unit::uni, "uni"), pipe(Unit::mufu, "mufu");
  pipe(Unit::fp64, "fp64"), pipe(Unit::tensor, "tensor"), pipe(Unit::fhec, "fhec");
  latency_[static_cast<int>(Unit::fhec)] += p["fhec_extra_latency"];
  depth_ = static_cast<std::size_t>(p["mio_depth"]);
  for (Subcore& s : subcores_) s.banks.resize(static_cast<std::size_t>(p["fhec_banks"]));
  p_ = {p["dram_latency"],      p["fhec_port_registers"],
        p["l1_latency"],        p["l1_sectors_per_cycle"],
        p["l2_latency"],        p["ldc_latency"],
        p["lds_latency"],       p["lsu_cycles_per_wavefront"],
        p["mio_interval"],      p["mio_latency"],
        p["read_release"],      p["s2r_latency"],
        p["setc_cycles"],       p["shfl_latency"],
        p["store_queue_bytes"], p["tensor32_interval"],
        p["bank_interval"],     p["bank_queue"],
        p["l2_read_on_write"],  p["wide_stall"],
        p["wide_alu_cycles"],   p["constant_miss"]};
}

void Units::begin_cycle(int subcore, i64 now) {
  auto& queue = subcores_[subcore].queue;
  while (!queue.empty() && queue.front() <= static_cast<double>(now)) queue.pop_front();
}

double Units::free_at(int subcore, const Warp& w, const Instruction& in, Stall& why) const {
  const Subcore& s = subcores_[subcore];
  double registers = 0;
  for (int b = 0; b < 2; ++b)
    if (reads(s, w, in, b) > 0) registers = std::max(registers, s.register_bank[b] - p_.bank_queue);
  return std::max(registers, unit_free_at(s, w, in, why));
}

double Units::unit_free_at(const Subcore& s, const Warp& w, const Instruction& in,
                           Stall& why) const {
  why = pipe;
  switch (in.unit) {
    case Unit::alu:
      return s.alu;
    case Unit::fma:
    case Unit::fmawide:
      return s.heavy;
    case Unit::fmalite:
      return s.lite;
    case Unit::uni:
      return s.uni;
    case Unit::mufu:
      return s.mufu;
    case Unit::fp64:
      return s.fp64;
    case Unit::tensor:
    case Unit::setc:
      return s.port;
    case Unit::fhec:
      return std::max({s.port, s.fhec, bank_free(s, w)});
    default:
      break;
  }
  if (through_mio(in.unit) && s.queue.size() >= depth_) {
    why = mio;
    return s.queue[s.queue.size() - depth_];
  }
  return 0;
}

// A tile needs a bank with its warp's constants: the one that has them, or one that no tile uses.
// The unit compares words; the warps of a CTA of our kernels set the same ones in the same order,
// and those of other CTAs are taken for different.
double Units::bank_free(const Subcore& s, const Warp& w) const {
  if (s.banks.empty()) return 0;
  double first = s.banks.front().busy;
  for (const Bank& b : s.banks) {
    if (b.cta == w.cta && b.version == w.constants) return 0;
    first = std::min(first, b.busy);
  }
  return first;
}

void Units::take_bank(Subcore& s, const Warp& w, double until) {
  if (s.banks.empty()) return;
  Bank* chosen = &s.banks.front();
  for (Bank& b : s.banks) {
    if (b.cta == w.cta && b.version == w.constants) {
      b.busy = until;
      return;
    }
    if (b.busy < chosen->busy) chosen = &b;
  }
  *chosen = {w.cta, w.constants, until};
}

void Units::issue(const Instruction& in, int index, Warp& w, i64 now) {
  Subcore& s = subcores_[w.subcore];
  const int u = static_cast<int>(in.unit);
  const double t = static_cast<double>(now);
  const double step = interval_[u];
  for (int b = 0; b < 2; ++b)
    if (const int n = reads(s, w, in, b); n > 0)
      s.register_bank[b] = std::max(s.register_bank[b], t) + n * p_.bank_interval;
  s.last = w.id;
  double done = t + latency_[u], read = t + p_.read_release;
  switch (in.unit) {
    case Unit::alu:
      s.alu = paced(s.alu, t, step);
      break;
    case Unit::fma:
      s.heavy = paced(s.heavy, t, step);
      break;
    case Unit::fmawide:
      // It takes time of the ALU pipe too, but does not wait for it.
      s.heavy = paced(s.heavy, t, step);
      s.alu = std::max(s.alu, t) + p_.wide_alu_cycles;
      break;
    case Unit::fmalite:
      s.lite = paced(s.lite, t, step);
      break;
    case Unit::uni:
      s.uni = paced(s.uni, t, step);
      break;
    case Unit::mufu:
      s.mufu = paced(s.mufu, t, step);
      break;
    case Unit::fp64:
      s.fp64 = paced(s.fp64, t, step);
      break;
    case Unit::tensor:
      s.port = paced(s.port, t, in.arg == 2 ? p_.tensor32_interval : step);
      break;
    case Unit::setc:
      s.port = t + p_.setc_cycles;
      ++w.constants;
      break;
    case Unit::fhec: {
      const double operands = std::ceil(in.source_registers() / p_.fhec_port_registers);
      s.port = t + operands;
      s.fhec = t + std::max(step, operands);
      take_bank(s, w, done);
      break;
    }
    case Unit::ldgdepbar:
      done = std::max(t, static_cast<double>(w.copies));
      break;
    case Unit::clock:
      w.clocks.push_back(now);
      break;
    default:
      break;
  }
  if (through_mio(in.unit)) memory(s, in, index, t, done, read);
  const i64 at = static_cast<i64>(std::ceil(done));
  if (in.unit <= Unit::setc) results(in, w, now, at);
  if (in.constants >= 0 && in.unit != Unit::ldc)
    w.constants_at = static_cast<i64>(std::ceil(constants_at(in.constants, t)));
  if (in.unit == Unit::ldgsts) w.copies = std::max(w.copies, at);
  if (in.write_bar < 6) w.pending[in.write_bar].push_back(at);
  if (in.read_bar < 6) w.pending[in.read_bar].push_back(static_cast<i64>(std::ceil(read)));
}

// When registers can be read. Stall counts of the code cover narrow readers of a wide product; wide
// ones read later than others, and the high half (a single result counts as one) last.
void Units::results(const Instruction& in, Warp& w, i64 now, i64 at) const {
  const bool wide = in.unit == Unit::fmawide;
  const bool narrow = in.unit == Unit::alu || in.unit == Unit::fma;
  const i64 last = static_cast<i64>(
      std::ceil(static_cast<double>(now) + latency_[static_cast<int>(Unit::fmawide)]));
  for (int r = 0; r < in.dst_count; ++r) {
    const bool high = wide && r + 1 == in.dst_count;
    w.ready[in.dst + r] = wide ? now : at;
    w.ready_wide[in.dst + r] =
        wide || narrow ? last - (high ? 0 : static_cast<i64>(p_.wide_stall)) : at;
  }
}

// The first reader of a line in a launch waits for it, and so do those that come before it is
// there.
double Units::constants_at(int line, double t) {
  return lines_.try_emplace(line, t + p_.constant_miss).first->second;
}

void Units::memory(Subcore& s, const Instruction& in, int index, double t, double& done,
                   double& read) {
  double begin = std::max(t + p_.mio_latency, s.mio_free);
  s.mio_free = paced(s.mio_free, begin, p_.mio_interval);
  const bool lsu = in.unit != Unit::ldc && in.unit != Unit::s2r;
  double end = begin;
  if (lsu) {
    // Stores wait where too many bytes are on their way already.
    if (in.unit == Unit::stg)
      begin = std::max(begin, l2_write_.free - p_.store_queue_bytes / l2_write_rate_);
    const double passes = std::max(1.0, in.wavefronts) * p_.lsu_cycles_per_wavefront;
    end = lsu_.serve(begin, passes);
    begin = end - passes;
  }
  // The queue is left in order.
  s.last_departure = std::max(s.last_departure, begin);
  s.queue.push_back(s.last_departure);
  read = begin + p_.read_release;
  switch (in.unit) {
    case Unit::lds:
    case Unit::sts:
      done = end + p_.lds_latency;
      break;
    case Unit::shfl:
      done = end + p_.shfl_latency;
      break;
    case Unit::ldc:
      if (in.constants >= 0) begin = std::max(begin, constants_at(in.constants, begin));
      done = begin + p_.ldc_latency;
      break;
    case Unit::s2r:
      done = begin + p_.s2r_latency;
      break;
    default:
      done = global(in, index, end);
      break;
  }
}

// A request that leaves the LSU at `from`: sectors from L1, L2 and DRAM. Whole sectors: what is
// left over is carried to the instruction's next request.
double Units::global(const Instruction& in, int index, double from) {
  carry_[index] += in.sectors;
  const double sectors = std::floor(carry_[index] + 1e-9);
  carry_[index] -= sectors;
  if (sectors == 0) return from + p_.l1_latency;
  const double missed = sectors * (1 - in.l1_hit) * kSector, far = missed * (1 - in.l2_hit);
  if (in.unit == Unit::stg) {
    const double bytes = sectors * kSector;
    bytes_l2 += bytes, bytes_dram += bytes * (1 - in.l2_hit);
    dram_.serve(from, bytes * (1 - in.l2_hit) / dram_write_rate_);
    return l2_write_.serve(from, bytes / l2_write_rate_);
  }
  double done = l1_.serve(from, sectors / p_.l1_sectors_per_cycle) + p_.l1_latency;
  if (missed > 0) {
    bytes_l2 += missed, bytes_dram += far;
    const double fill = fill_.serve(from, missed / fill_rate_);
    const double l2 = std::max(fill, l2_.serve(from, missed / l2_rate_));
    l2_write_.serve(from,
                    p_.l2_read_on_write * missed / l2_rate_);  // stores go slower beside loads
    done = std::max(done, l2 + p_.l2_latency);
    if (far > 0) done = std::max(done, dram_.serve(from, far / dram_rate_) + p_.dram_latency);
  }
  return done;
}

}  // namespace crenel::fhecore::sim
