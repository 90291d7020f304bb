// Entries of a batch on different parts of a device ("cuda:0+1"): what needs nothing of one another
// is computed side by side, without an exchange of limbs.
#pragma once

#include "device/poly/kernels.h"

namespace crenel::device {

/// How many groups of parts the entries of a batch may be dealt out to: 2 where the device has an
/// even number of parts, else 1.
u32 entry_groups(const Stream& stream);

/// While it lives, polynomials that the calling thread allocates on this stream have their first
/// half of the rows on one group of parts and the second one on the other: operations on them
/// exchange limbs within a group only. Batches are even then, views have all entries, and keys are
/// shared (share_between_groups()). Nothing changes on streams of fewer than two groups, nor for
/// what is called at a point of this work to poll or to report: it may use the library
/// (watch::Shield).
class EntriesApart {
 public:
  explicit EntriesApart(const Stream& stream);
  ~EntriesApart() { apart_ = before_; }
  EntriesApart(const EntriesApart&) = delete;
  EntriesApart& operator=(const EntriesApart&) = delete;
  /// Whether the calling thread has one of this stream.
  static bool on(const Stream& stream);

 private:
  struct Apart {
    const Stream* stream = nullptr;
    bool watched = false;  ///< since it began there is a watch::Scope, but while a Shield hides it
  };
  static thread_local constinit Apart apart_;
  Apart before_;
};

/// The polynomials of `from` in memory of the other kind, of the same shape, limbs and domain:
/// allocated while there was an EntriesApart, or while there was none. Capturable. StateError for
/// a stream of fewer than two groups.
void regroup(Stream& stream, const PolyView<u32>& to, const PolyView<const u32>& from);

/// A copy of polynomials that operations on memory of either kind read: every part has the limbs
/// that its group needs of it. `limbs`: their address, allocated while there was no EntriesApart.
/// Nobody writes to the copy. StateError for a stream of fewer than two groups.
Buffer share_between_groups(Stream& stream, const void* limbs);

}  // namespace crenel::device
