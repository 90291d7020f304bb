// Where operations find switching keys: in device memory, behind addresses that can be exchanged
// (key_slots.h), or on their way from the host (staged_keys.h).
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "rlwe/keys.h"

namespace crenel::rlwe {

/// Keys of one operation. They stay where they are until the lease ends, and so long as work that
/// was queued before that on the stream of the lease reads them.
class KeyLease {
 public:
  explicit KeyLease(std::vector<KeyView> views, std::shared_ptr<void> hold = nullptr)
      : views_(std::move(views)), hold_(std::move(hold)) {}
  const KeyView& operator[](std::size_t i) const { return views_[i]; }
  std::span<const KeyView> views() const { return views_; }

 private:
  std::vector<KeyView> views_;
  std::shared_ptr<void> hold_;  ///< its deleter ends the lease
};

class KeySource {
 public:
  virtual ~KeySource() = default;
  bool has(KeyId id) const { return max_level(id).has_value(); }
  /// The highest level that the key serves, SwitchKey::kAny for all; nothing where there is none.
  virtual std::optional<u32> max_level(KeyId id) const = 0;
  /// SwitchKey::shared_by of a key that it has: another layout in memory.
  virtual u32 shared_by(KeyId id) const = 0;
  /// All at once, for work on `stream`. kNoKey gives an empty view; every other id must be one that
  /// the source has.
  virtual KeyLease lease(device::Stream& stream, std::span<const KeyId> ids) = 0;
  /// Whether the addresses of a lease stay those of these keys: they may then be recorded.
  /// Addresses that are to be exchanged (key_slots.h) do not.
  virtual bool fixed() const { return true; }

  /// Leases of one thread that come in the same order every time: keys are then read ahead of use.
  /// Of passes that overlap (of several threads) one is followed; the others' leases are leases.
  class Pass {
   public:
    /// `order` tells one order from another.
    Pass(std::shared_ptr<KeySource> source, const void* order)
        : source_(std::move(source)),
          exceptions_(std::uncaught_exceptions()),
          followed_(source_->begin_pass(order)) {}
    ~Pass() {
      if (followed_) source_->end_pass(std::uncaught_exceptions() == exceptions_);
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

   private:
    std::shared_ptr<KeySource> source_;
    int exceptions_;  ///< on their way when the pass began
    bool followed_;
  };

 protected:
  /// Whether this pass is followed: end_pass() is then called by the same thread.
  virtual bool begin_pass(const void* order) {
    static_cast<void>(order);
    return false;
  }
  /// `whole`: the pass came to its end.
  virtual void end_pass(bool whole) noexcept { static_cast<void>(whole); }
};

/// Keys in device memory. Does not own them.
class ResidentKeys final : public KeySource {
 public:
  explicit ResidentKeys(const EvaluationKeySet& set) : set_(set) {}
  std::optional<u32> max_level(KeyId id) const override { return set_.max_level(id); }
  u32 shared_by(KeyId id) const override { return set_.find(id)->shared_by; }
  KeyLease lease(device::Stream&, std::span<const KeyId> ids) override {
    std::vector<KeyView> views;
    for (KeyId id : ids) views.push_back(id == kNoKey ? KeyView() : set_.find(id)->view());
    return KeyLease(std::move(views));
  }

 private:
  const EvaluationKeySet& set_;
};

}  // namespace crenel::rlwe
