// What a backend with more than one device offers beside backend.h.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <span>

#include "crenel/device/link.h"
#include "device/apart.h"
#include "device/backend.h"
#include "device/limb_room.h"

namespace crenel::device {

/// A device of several parts.
class DividedDevice : public Backend {
 public:
  ExchangeBy exchanges_by() const { return way_.load(std::memory_order_relaxed); }
  void exchange_by(ExchangeBy way) { way_.store(way, std::memory_order_relaxed); }

 private:
  std::atomic<ExchangeBy> way_{ExchangeBy::transforms};
};

/// A stream whose memory lies on several devices.
class DividedStream : public Stream {
 public:
  using Stream::Stream;
  /// The streams of the parts.
  virtual std::vector<std::shared_ptr<Stream>> parts() const = 0;
  /// (stream of the part, address there, bytes before it, bytes)
  using Piece = std::function<void(Stream&, void*, std::size_t, std::size_t)>;
  /// f for the pieces of a stretch of memory, in order; of what all parts have, for every copy
  /// where `all`, otherwise for one.
  virtual void for_pieces(const void* address, std::size_t bytes, bool all, const Piece& f) = 0;

  /// As the functions of these names (limb_room.h).
  virtual std::size_t room_bytes(std::span<const LimbShape> shapes) const = 0;
  virtual Buffer allocate_room(std::span<const LimbShape> shapes) = 0;
  virtual void reshape(const Buffer& room, const LimbShape& shape) = 0;

  /// Groups of equally many parts that batches may be dealt out to (device/apart.h); 1: none.
  virtual u32 groups() const = 0;
  /// As share_between_groups() and regroup() there.
  virtual Buffer share(const void* limbs) = 0;
  virtual void regroup(const PolyView<u32>& to, const PolyView<const u32>& from) = 0;
};

/// One device of several ("cuda:0+1"), two or more of one kind and model (DeviceError otherwise).
std::shared_ptr<Backend> make_split_device(const std::string& name,
                                           std::vector<std::shared_ptr<Device>> parts);

/// Where limbs go: to a view of the limbs `from` and others.
struct SpreadTarget {
  Stream* stream;
  PolyView<u32> to;
};
/// What the spreads of a turn wait for one another with: kMeetingBytes in the memory of every part,
/// zeros at first and then nobody else's.
struct Meeting {
  std::span<void* const> words;  ///< by part
  u32 part;                      ///< whose spread it is
};
inline constexpr std::size_t kMeetingBytes = 256;
/// No place: a limb that does not go.
inline constexpr u32 kNowhere = 0xff;
/// Limb i of `from` to the limb at `position[i]` of every target, of the same components and batch.
/// Queued on `from`, and on nothing else: who calls has made it wait for what was queued on the
/// targets before, and makes them wait for it. Devices of one kind. Stated to the accounts of the
/// targets as "copy_within", "copy_peer" or "copy_host".
///
/// With a meeting (can_meet()) what is queued on `stream` after it starts after the spreads of this
/// turn of all parts: each part calls it once a turn, with or without limbs, all turns of all
/// streams of the process in the same order (meeting_order()). A part that is not heard of for two
/// minutes is a failure of the device.
void spread(Stream& stream, const PolyView<const u32>& from, std::span<const u32> position,
            std::span<const SpreadTarget> targets, const Meeting* meeting = nullptr);
/// spread() of streams of CUDA.
void cuda_spread(Stream& stream, const PolyView<const u32>& from, std::span<const u32> position,
                 std::span<const SpreadTarget> targets, const Meeting* meeting);

/// PolyKernels::sources() in two steps, for what can_spread_sources(): all but their last pass,
/// into `workspace` of their shape and limbs, and that pass, which stores them to the targets as
/// spread() does, with a meeting. The second step allocates nothing and loads no kernel. `tiled`:
/// the same of both, only where all that goes on from them takes_tiles().
void begin_sources(PolyKernels& kernels, Stream& stream, const PolyView<u32>& workspace,
                   const SourcesOf& of, bool tiled);
void spread_sources(PolyKernels& kernels, Stream& stream, const PolyView<u32>& workspace,
                    const Prepared<rns::BaseConversion>& scales, std::span<const u32> position,
                    std::span<const SpreadTarget> targets, const Meeting& meeting, bool tiled);
bool can_spread_sources(const PolyKernels& kernels, const Stream& stream, const SourcesOf& of);
/// Of what can_spread_sources(): whether what goes on from them by this table, a ModUp's or a
/// division's, wants them tiled (SourcesView), not limb by limb. Null, where no kernel of a
/// conversion reads it, does not.
bool takes_tiles(Stream& stream, const DeviceTable* conversions, u32 log_n);
/// The same of kernels of CUDA.
void cuda_begin_sources(PolyKernels& kernels, Stream& stream, const PolyView<u32>& workspace,
                        const SourcesOf& of, bool tiled);
void cuda_spread_sources(PolyKernels& kernels, Stream& stream, const PolyView<u32>& workspace,
                         const Prepared<rns::BaseConversion>& scales, std::span<const u32> position,
                         std::span<const SpreadTarget> targets, const Meeting& meeting, bool tiled);
bool cuda_can_spread_sources(const PolyKernels& kernels, const SourcesOf& of);
bool cuda_takes_tiles(Stream& stream, const DeviceTable* conversions, u32 log_n);

/// Whether spread() takes a meeting of these streams: kernels of each reach the memory of all.
bool can_meet(std::span<const std::shared_ptr<Stream>> streams);
/// can_meet() of streams of CUDA.
bool cuda_can_meet(std::span<const std::shared_ptr<Stream>> streams);
/// Held while work is queued on several devices of which each part waits for the others: two
/// devices that got it in different orders would wait for ever.
std::unique_lock<ForkMutex> meeting_order();

/// Records what `work` queues on the streams, the parts of one. As a graph of each where they wait
/// for one another by meetings only (`each`), in their order; otherwise as one graph, to be
/// launched on the first stream. Nothing where the backend has no graphs.
std::vector<std::unique_ptr<GraphExec>> record_together(
    std::span<const std::shared_ptr<Stream>> streams, bool each, const std::function<void()>& work);
/// record_together() of streams of CUDA.
std::vector<std::unique_ptr<GraphExec>> cuda_record_together(
    std::span<const std::shared_ptr<Stream>> streams, bool each, const std::function<void()>& work);

/// road_between() of two devices of CUDA.
Road cuda_road(const Device& from, const Device& to);
/// copy_across() of two streams of CUDA, `bytes` at least 1.
void cuda_copy_across(Stream& to, void* target, Stream& from, const void* source,
                      std::size_t bytes);

}  // namespace crenel::device
