// Arrays of encrypted messages.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "crenel/core/secret_key_id.h"
#include "crenel/device/device.h"

namespace crenel::tfhe {

/// `size()` messages modulo p, r under each mask. Move-only; clone() copies. Payload on the device.
class Ciphertext {
 public:
  struct Data;
  explicit Ciphertext(std::unique_ptr<Data> data);
  Ciphertext(Ciphertext&&) noexcept;
  Ciphertext& operator=(Ciphertext&&) noexcept;
  ~Ciphertext();

  u64 size() const;           ///< messages
  u32 plain_modulus() const;  ///< p: a message m stands at m q / p
  u64 bytes() const;          ///< device bytes of the payload
  /// Every message is below it by what made it, or 0 where nothing is known (fresh encryptions that
  /// did not say, loaded arrays but those of element "bool", linear combinations). 2 and less are
  /// bits; gates refuse what is known to hold more (StateError). Tells nothing of the messages.
  u32 bound() const;
  /// Params::id() of its parameters.
  const std::string& params_id() const;
  /// Which secret keys decrypt it; none for known messages (Evaluator::trivial): any do.
  const SecretKeyId& secret_key_id() const;
  /// Variance that the phases' errors have by the noise model, in squared units of the integers of
  /// the ciphertext's modulus; the largest of all messages. Of loaded ciphertexts what their file
  /// claims.
  double noise_variance() const;
  /// A copy with a payload of its own.
  Ciphertext clone() const;
  /// Messages [first, first + count), copied. `first` must be a multiple of r: throws
  /// ParameterError otherwise or when out of range.
  Ciphertext slice(u64 first, u64 count) const;
  /// Messages index[0], index[1], ..., copied; any number of times each, in any order.
  /// ParameterError for none or one out of range, UnsupportedError where messages share masks.
  Ciphertext take(std::span<const u64> index) const;

  const Data& data() const { return *data_; }
  Data& data() { return *data_; }

 private:
  std::unique_ptr<Data> data_;
};

/// One array from several, one after the other (all but the last hold multiples of r messages;
/// ParameterError otherwise). Equal parameters, secret keys, plain modulus and device, else
/// StateError.
Ciphertext concatenate(std::span<const Ciphertext* const> parts);

}  // namespace crenel::tfhe
