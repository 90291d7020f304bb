// What a division drops, gathered while the key switch before it makes the rest.
#pragma once

#include <map>
#include <optional>
#include <thread>

#include "backends/split/poly/tables.h"
#include "backends/split/rooms.h"
#include "device/poly/compose/workspace.h"

namespace crenel::backend::split {

/// Of one thread, while it says that a division follows (PolyKernels::division_follows()).
struct Ahead {
  Prepared<rns::Divide> table;
  bool expects = true;  ///< the next key switch is the one
  // Of that key switch; nothing where it gathered nothing.
  ring::PolyView<const u32> of;                  ///< its result
  Exchange::Gathered what;                       ///< what is gathered of it
  std::vector<ring::PolyView<u32>> workspace;    ///< by part
  std::vector<device::compose::Temporary> kept;  ///< where that lies
  std::optional<Exchange> exchange;  ///< nobody else gathers until it is read or given up
  bool beside = false;               ///< something went beside the streams of the parts
};

/// By stream and thread.
class AheadOf {
 public:
  /// Null where nothing is said.
  Ahead* find(const device::Stream& stream) {
    const std::lock_guard lock(mutex_);
    const auto it = all_.find({&stream, std::this_thread::get_id()});
    return it == all_.end() ? nullptr : &it->second;
  }
  Ahead& begin(const device::Stream& stream) {
    const std::lock_guard lock(mutex_);
    return all_[{&stream, std::this_thread::get_id()}];
  }
  void end(const device::Stream& stream) {
    const std::lock_guard lock(mutex_);
    all_.erase({&stream, std::this_thread::get_id()});
  }

 private:
  ForkMutex mutex_;
  std::map<std::pair<const device::Stream*, std::thread::id>, Ahead> all_;
};

}  // namespace crenel::backend::split
