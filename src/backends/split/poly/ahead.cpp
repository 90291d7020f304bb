// What of a division goes beside the key switch, or the hoisted sums, before it.
//
// A division needs the limbs that it drops, those of all parts: their inverse transforms and an
// exchange stood between a key switch and its division, with nothing else to do meanwhile. Where it
// is said that a division follows, parts make these limbs first, and all that the division needs of
// them beside the rest of the switch: on a queue of its own, from the base conversion of the switch
// on. The division waits for both.
//
// Turns of exchanges stay in one order: who gathers ahead keeps the rooms until the division is
// queued or given up. What goes beside uses the result's memory, its own and the rooms; the
// switch's workspace and keys are free for what the stream does after the switch (MadeFirst).
#include "backends/split/poly/ahead.h"

#include <mutex>
#include <utility>

#include "backends/split/poly/kernels.h"

namespace crenel::backend::split {

void SplitPolyKernels::do_division_follows(Stream& stream, const Prepared<rns::Divide>* table,
                                           ConstView of) {
  try {
    settle(stream);
  } catch (...) {  // NOLINT(bugprone-empty-catch): a device that failed says so to who comes next
  }
  ahead_.end(stream);
  if (table == nullptr) return;
  Ahead& ahead = ahead_.begin(stream);
  ahead.table = *table;
  ahead.of = of;
}

// Memory for what goes beside comes first: what the operation gives back may still be read while
// others take it.
Ahead* SplitPolyKernels::begin_ahead(SplitStream& stream, const View* out) {
  settle(stream);
  Ahead* const ahead = ahead_.find(stream);
  if (ahead == nullptr || !ahead->expects || (ahead->of.data == nullptr) != (out != nullptr))
    return nullptr;
  ahead->expects = false;
  if (out != nullptr) ahead->of = *out;
  const auto& split = ahead->table.on_device<SplitTable<rns::Divide>>();
  ahead->what = {ahead->of.shape, split.order};
  if (split.order.empty() || ahead->table->input != ahead->of.limbs ||
      !Exchange::can_go_beside(stream, ahead->what))
    return nullptr;
  ahead->workspace = workspace(stream, ahead->of.shape, split.order, split.scales, ahead->kept);
  return ahead;
}

void SplitPolyKernels::make_first(SplitStream& stream, Ahead& ahead, const LimbSet& limbs,
                                  const Make& make) {
  ahead.beside = true;
  for (u32 p = 0; p < parts(); ++p) {  // also those that keep nothing: all come to the meeting
    Stream& part = stream.part(p);
    const device::Stage stage(part, stream.stage());
    device::MadeFirst first(part, own(p, ahead.what.order));
    if (!own(p, limbs).empty()) make(p, *kernels_[p], part);
    if (!first.made()) device::fork_beside(part);
  }
}

void SplitPolyKernels::gather_ahead(SplitStream& stream, Ahead& ahead, Exchange exchange) {
  const auto& split = ahead.table.on_device<SplitTable<rns::Divide>>();
  ahead.exchange.emplace(std::move(exchange));
  fill(stream, *ahead.exchange, ahead.of, ahead.workspace, ahead.table->output, split.scales, true);
}

const Exchange* SplitPolyKernels::gathered_ahead(SplitStream& stream, const ConstView& in,
                                                 const Prepared<rns::Divide>& table) {
  Ahead* const ahead = ahead_.find(stream);
  if (ahead == nullptr || !ahead->exchange || ahead->table.device != table.device) return nullptr;
  const ConstView& of = ahead->of;
  if (of.data != in.data || of.component_stride != in.component_stride ||
      of.batch_stride != in.batch_stride || of.shape != in.shape)
    return nullptr;
  join(stream, *ahead);
  return &*ahead->exchange;
}

void SplitPolyKernels::join(SplitStream& stream, Ahead& ahead) {
  if (!std::exchange(ahead.beside, false)) return;
  for (u32 p = 0; p < parts(); ++p) device::join_beside(stream.part(p));
}

// What memory was kept for goes before the memory does. A switch that failed has let the rooms go:
// nobody else may be beside meanwhile.
void SplitPolyKernels::settle(Stream& stream) {
  Ahead* const ahead = ahead_.find(stream);
  if (ahead == nullptr || !(ahead->exchange || ahead->beside)) return;
  std::unique_lock<ForkMutex> held;
  if (!ahead->exchange) held = split_stream(stream).rooms().held();
  join(split_stream(stream), *ahead);
  ahead->exchange.reset();
  ahead->workspace.clear();
  ahead->kept.clear();
}

}  // namespace crenel::backend::split
