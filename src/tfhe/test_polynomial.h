// Functions on the torus as test polynomials: v with coefficient v_f the value at phase f of 2N
// steps, f < N; blind rotation reads -v_(f - N) at f >= N.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "device/torus/kernels.h"

namespace crenel::tfhe {

/// Coefficients and offset canonical modulo Q.
struct TestPolynomial {
  std::vector<u64> coefficients;  ///< [N]
  u64 offset = 0;
};

/// round(x Q / y) modulo Q, any sign of x; |x| < 2^63, 0 < y < 2^63.
u64 scaled_to_modulus(i64 x, u64 y, u64 modulus);

/// -value in the window of N phases from `start` (below 2N), +value outside, plus `offset`; both
/// canonical modulo Q.
TestPolynomial window_polynomial(const device::TorusPlan& plan, u32 start, u64 value, u64 offset);

/// table[m] Q / out_modulus for phases nearest to message m < p / 2 at m 2N / p; table.size() = p
/// / 2. The half window below phase 0 reads table[0] too.
TestPolynomial table_polynomial(const device::TorusPlan& plan, u32 p, std::span<const u64> table,
                                u32 out_modulus);

/// The phase f itself in [N/2, 3N/2), as f 2^log_range / 2N of 2^log_modulus (OpenFHE's f2 of
/// EvalFloor): what stands in the low log_range bits of a phase modulo 2^log_modulus.
TestPolynomial ramp_polynomial(const device::TorusPlan& plan, u32 log_range, u32 log_modulus);

/// Test polynomials on the device.
struct DeviceTables {
  device::Buffer polys, offsets;
  u32 count = 0;
  device::LutView view(const u32* index = nullptr) const {
    return {polys.as<const u64>(), offsets.as<const u64>(), count, index};
  }
};

/// Tables by content, the least recently used dropped first. Work queued with a table that is
/// dropped is safe: its memory returns to the stream's pool in stream order.
class TableCache {
 public:
  /// `key` states the content; `make` is called when it is not here.
  template <class Make>
  std::shared_ptr<const DeviceTables> get(device::Stream& stream, const std::string& key,
                                          Make make) {
    const std::lock_guard lock(mutex_);
    if (auto found = find(key)) return found;
    const std::vector<TestPolynomial> tables = make();
    return insert(stream, key, tables);
  }
  u64 bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

  static constexpr u64 kMaxBytes = u64(64) << 20;
  static constexpr std::size_t kMaxEntries = 256;

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const DeviceTables> tables;
    u64 bytes = 0;
  };
  std::shared_ptr<const DeviceTables> find(const std::string& key);
  std::shared_ptr<const DeviceTables> insert(device::Stream& stream, const std::string& key,
                                             std::span<const TestPolynomial> tables);

  mutable std::mutex mutex_;
  std::list<Entry> entries_;  ///< most recently used first
  u64 bytes_ = 0;
};

}  // namespace crenel::tfhe
