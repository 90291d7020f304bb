// Composed circuits of a context, by what they depend on: an operation that was seen before starts
// with its first look-up.
#pragma once

#include <array>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>

#include "crenel/core/fork_mutex.h"
#include "tfhe/content_key.h"
#include "tfhe/integer/schedule.h"

namespace crenel::tfhe::radix {

/// May be called from several threads, which compose without waiting for each other. Bounded in
/// bytes of the host, the least recently used dropped first; what was handed out stays.
class CircuitCache {
 public:
  using Ready = std::shared_ptr<const Program>;
  using Make = std::function<Program(Form)>;

  static constexpr u64 kMaxBytes = u64(64) << 20;
  explicit CircuitCache(u64 max_bytes = kMaxBytes) : max_bytes_(max_bytes) {}

  /// What choose() takes of the forms that `make` gives. `key` states everything that these depend
  /// on. Of several forms all are composed once, to be compared, and of those that were taken the
  /// circuits are kept.
  Ready get(const ContentKey& key, CircuitForm form, u64 size, u32 processors, const Make& make);
  u64 bytes() const;

 private:
  /// Of one key.
  struct Known {
    std::array<std::shared_ptr<const Shape>, kFormCount> shapes;
    std::array<Ready, kFormCount> programs;
    u64 bytes() const;
  };
  struct Entry {
    std::string key;
    Known known;
    u64 bytes() const { return key.size() + known.bytes(); }
  };

  /// Of a process that forked while another thread held the lock there is no cache: its operations
  /// compose as the first ones did.
  bool usable() const { return !mutex_.abandoned(); }
  Known known(const std::string& key);
  void keep(const std::string& key, const Known& found);

  const u64 max_bytes_;
  mutable ForkMutex mutex_;
  std::list<Entry> entries_;  ///< the last used first
  std::unordered_map<std::string, std::list<Entry>::iterator> places_;
  u64 bytes_ = 0;
};

/// Outputs of a circuit, of one form.
using Compose = std::function<Blocks(Circuit&, Form)>;
/// What a circuit takes in the form that is asked for, or that is chosen. ParameterError for a
/// max_norm2 below kMaxNorm2.
IntegerCost cost_of(const Compose& compose, CircuitForm form, u64 size, u32 processors,
                    const Room& room);

}  // namespace crenel::tfhe::radix
