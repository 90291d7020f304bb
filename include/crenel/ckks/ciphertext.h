// Plaintext and Ciphertext: metadata on the host, payload on the device.
#pragma once

#include <complex>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "crenel/core/secret_key_id.h"
#include "crenel/core/types.h"
#include "crenel/device/device.h"

namespace crenel::ckks {

/// Most vectors of one plaintext or ciphertext: more would overflow counters of 32 bits long before
/// memory is found for it.
inline constexpr u32 kMaxBatch = 1u << 20;

/// A bound of slots that nobody stated.
inline constexpr double kUnknownBound = std::numeric_limits<double>::infinity();

/// Level, scale, slot count, whose, and how large: decided before any kernel runs.
struct Metadata {
  u32 level = 0;       ///< index of the modulus; 0 is the last level
  double scale = 0.0;  ///< message = decoded polynomial / scale
  u64 slots = 0;       ///< power of two, at most N/2; fewer slots repeat in the full vector
  bool real = false;   ///< every slot is known to be real (decryption then returns real numbers)
  SecretKeyId secret_key{};  ///< which one decrypts; none for plaintexts
  /// Largest |slot| that the message can have, errors not counted (docs/theory/precision.md, "How
  /// large values may be"); infinity: unknown. A claim of who encrypted, carried through every
  /// operation in the clear, never derived from what is encrypted.
  double bound = kUnknownBound;
};

/// An encoded vector: one polynomial at a level and scale. Move-only; clone() copies.
class Plaintext {
 public:
  struct Data;
  explicit Plaintext(std::unique_ptr<Data> data);
  Plaintext(Plaintext&&) noexcept;
  Plaintext& operator=(Plaintext&&) noexcept;
  ~Plaintext();

  /// Level, scale, slots, bound: what is known without a key. A plaintext is of no secret key.
  const Metadata& metadata() const;
  u32 level() const { return metadata().level; }
  double scale() const { return metadata().scale; }
  u64 slots() const { return metadata().slots; }
  /// What was stated, else the largest |slot| that was encoded: a plaintext is in the clear.
  double bound() const { return metadata().bound; }
  /// Params::id() of its parameters.
  const std::string& params_id() const;
  Plaintext clone() const;  ///< StateError for one that came of a decryption
  const Data& data() const { return *data_; }
  Data& data() { return *data_; }

 private:
  std::unique_ptr<Data> data_;
};

/// Two (three before relinearisation) polynomials. Move-only; clone() copies.
class Ciphertext {
 public:
  struct Data;
  explicit Ciphertext(std::unique_ptr<Data> data);
  Ciphertext(Ciphertext&&) noexcept;
  Ciphertext& operator=(Ciphertext&&) noexcept;
  ~Ciphertext();

  /// Level, scale, slots, bound, secret key: what is known without a key.
  const Metadata& metadata() const;
  u32 level() const { return metadata().level; }
  double scale() const { return metadata().scale; }
  u64 slots() const { return metadata().slots; }
  /// Largest |slot| of the message; infinity where nobody stated it (Metadata::bound).
  double bound() const { return metadata().bound; }
  /// States that every |slot| is at most `bound`, instead of what was known: of a result that is
  /// smaller than its operations tell. kUnknownBound takes the bound away. ParameterError unless it
  /// is positive.
  void state_bound(double bound);
  /// 2, or 3 before relinearisation.
  u32 components() const;
  /// Vectors side by side, 1 to 2^20.
  u32 batch() const;
  u64 bytes() const;  ///< device bytes of the payload
  /// Params::id() of its parameters, and whose it is.
  const std::string& params_id() const;
  const SecretKeyId& secret_key_id() const { return metadata().secret_key; }
  /// A copy with a payload of its own.
  Ciphertext clone() const;
  /// The rows [first, first + count) of the batch, copied. ParameterError for no rows or rows that
  /// are not there.
  Ciphertext slice(u32 first, u32 count) const;
  const Data& data() const { return *data_; }
  Data& data() { return *data_; }

 private:
  std::unique_ptr<Data> data_;
};

/// The rows of all parts, one after the other, as one batch. StateError unless the parts have equal
/// parameters, device, secret key, level, scale, slots and components; ParameterError for no parts.
/// The bound is the largest of theirs.
Ciphertext concatenate(std::span<const Ciphertext* const> parts);

}  // namespace crenel::ckks
