// Context: parameters on a device. The root of every other object.
#pragma once

#include <complex>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "crenel/ckks/ciphertext.h"
#include "crenel/ckks/params.h"
#include "crenel/device/device.h"

namespace crenel::ckks {

class Client;
class EvaluationKeys;
class Evaluator;

/// Cheap to copy: shared, immutable state (tables, device, default stream). Any number of threads
/// may use it, make contexts of one Device, and load objects.
class Context {
 public:
  struct State;
  /// Tables for `params` on a device that other contexts, of any scheme, may share: objects of
  /// contexts of equal parameters on one device work together. ParameterError for a null device.
  Context(const Params& params, std::shared_ptr<device::Device> device);
  /// On a device of its own (a name for device::open). Throws DeviceError.
  explicit Context(const Params& params, const std::string& device = "auto");

  /// What it was made of: parameters, the device, and the device's shared stream, which operations
  /// queue on where no other is given (Evaluator::on).
  const Params& params() const;
  device::Device& device() const;
  const std::shared_ptr<device::Device>& shared_device() const;
  device::Stream& stream() const;
  /// Waits until everything queued so far is done. DeviceError when some of it failed.
  void synchronize() const;

  /// A new secret key with randomness of the operating system.
  Client keygen() const;
  /// Operations with these keys (empty keys: everything that needs none).
  Evaluator evaluator(EvaluationKeys keys) const;

  /// Encodes values at `level` (default: the top normal level) and `scale` (default: the level's
  /// canonical scale; at least 1, at most the level's modulus). values.size() <= slots; fewer are
  /// padded with zeros; `slots` (0: all N/2) is a power of two. With batch > 1, `values` holds
  /// `batch` rows of equal length and the result carries one polynomial a row. Throws
  /// ParameterError for NaN or infinity, too many values, and values whose scaled coefficients do
  /// not fit the modulus or 62 bits; it names places, not values.
  ///
  /// `bound` states that every |value| is at most that: it is checked here, goes with what is
  /// encrypted and is public. ParameterError for a bound that is not positive or exceeds
  /// Params::max_value, and for a value beyond it. Without, a plaintext still knows its largest
  /// |slot|, but what is encrypted of it does not tell.
  Plaintext encode(std::span<const std::complex<double>> values, std::optional<u32> level = {},
                   double scale = 0.0, u64 slots = 0, u32 batch = 1,
                   double bound = kUnknownBound) const;
  Plaintext encode(std::span<const double> values, std::optional<u32> level = {},
                   double scale = 0.0, u64 slots = 0, u32 batch = 1,
                   double bound = kUnknownBound) const;
  /// A public number in all slots. The same as encode() of a vector of it, to the bit where the
  /// transform of such a vector is exact, but without it: two launches that wait for nothing. What
  /// it throws, too; the number may not be a secret.
  Plaintext encode_constant(std::complex<double> value, std::optional<u32> level = {},
                            double scale = 0.0, u64 slots = 0, double bound = kUnknownBound) const;
  /// The slots of a plaintext, row after row. StateError when they are beyond 2^900, as of a file
  /// with anything for a message.
  std::vector<std::complex<double>> decode(const Plaintext& plaintext) const;

  const State& state() const { return *state_; }
  const std::shared_ptr<const State>& shared_state() const { return state_; }

 private:
  std::shared_ptr<const State> state_;
};

}  // namespace crenel::ckks
