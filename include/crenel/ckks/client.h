// Client: the holder of the secret key.
#pragma once

#include <complex>
#include <memory>
#include <span>
#include <vector>

#include "crenel/ckks/context.h"

namespace crenel::ckks {

/// Which evaluation keys to make; only what is asked for is generated.
struct KeyRequest {
  std::vector<i64> rotations;  ///< steps to the left; negative: to the right; 0 needs no key
  bool conjugate = false;
  bool relinearisation = true;
  /// The pair of keys between the secret and an ephemeral sparse one that bootstrapping needs.
  /// Refused where the sparse secret would be weaker than 128 bits (SECURITY.md), and by parameters
  /// with more than two primes at level 0 or fewer than two special primes.
  bool encapsulation = false;
};

/// What a server holds: no secret. Cheap to copy (shared, immutable); any number of threads may
/// compute with it, staged or not.
class EvaluationKeys {
 public:
  struct Data;
  EvaluationKeys() = default;  ///< no keys
  explicit EvaluationKeys(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

  bool has_relinearisation() const;
  bool has_conjugation() const;
  bool has_encapsulation() const;
  /// Rotation steps with a key, in (-N/4, N/4], ascending.
  std::vector<i64> rotations() const;
  u32 count() const;       ///< keys, of encapsulation both
  u64 bytes() const;       ///< on the device
  u64 host_bytes() const;  ///< of staged keys, in page-locked host memory
  u64 wire_bytes() const;  ///< serialised (uniform halves are seeds)

  /// The same keys in page-locked host memory, half of each beside its seed. Operations bring them
  /// to the device when they need them, and a bootstrap ahead of need; at most `device_bytes` are
  /// there at a time. For keys that do not fit: every key that is not there costs its transfer,
  /// which a batch shares. ParameterError where not even two keys fit, StateError for keys that are
  /// staged. An operation that reads more keys at once than fit throws StateError.
  EvaluationKeys staged(u64 device_bytes) const;
  const Data* data() const { return data_.get(); }

 private:
  std::shared_ptr<const Data> data_;
};

/// Anyone can encrypt with it, nobody can decrypt.
class PublicKey {
 public:
  struct Data;
  explicit PublicKey(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  /// Public-key encryption with fresh randomness of the operating system.
  Ciphertext encrypt(const Plaintext& plaintext) const;
  const Data& data() const { return *data_; }

 private:
  std::shared_ptr<const Data> data_;
};

/// Noise flooding before a decryption is published (SECURITY.md): adds Gaussian noise, rounded to
/// integers, to the coefficients; standard deviation sqrt(12 queries) * 2^(statistical_bits/2) *
/// noise_std, in units of 1/scale.
struct Flooding {
  double noise_std =
      0.0;          ///< estimate of the ciphertext's error, in coefficient units; must be > 0
  u64 queries = 1;  ///< decryptions to be published under this key, >= 1
  u32 statistical_bits = 30;  ///< >= 30
};

/// Holder of the secret. Any number of threads may encrypt, decrypt and make keys with one client.
class Client {
 public:
  struct State;
  explicit Client(std::shared_ptr<State> state);
  Client(Client&&) noexcept;
  ~Client();

  const Context& context() const;
  /// Secret-key encryption; the uniform half is expanded from a seed.
  Ciphertext encrypt(const Plaintext& plaintext);
  Ciphertext encrypt(std::span<const std::complex<double>> values, std::optional<u32> level = {},
                     double scale = 0.0, u64 slots = 0, u32 batch = 1);
  Ciphertext encrypt(std::span<const double> values, std::optional<u32> level = {},
                     double scale = 0.0, u64 slots = 0, u32 batch = 1);
  /// The slots, row after row. Do not publish results without flooding.
  std::vector<std::complex<double>> decrypt(const Ciphertext& ciphertext,
                                            std::optional<Flooding> flooding = {});
  /// The noisy plaintext polynomial of a ciphertext (for precision measurements).
  Plaintext decrypt_to_plaintext(const Ciphertext& ciphertext) const;

  EvaluationKeys evaluation_keys(const KeyRequest& request = {});
  PublicKey public_key();

  /// The secret key's coefficients as an explicit export: guard these bytes.
  std::vector<u8> export_secret_key() const;
  /// SerializationError for another length, coefficients other than -1, 0, 1, and a Hamming weight
  /// that the parameters do not have.
  static Client import_secret_key(const Context& context, std::span<const u8> bytes);

 private:
  std::shared_ptr<State> state_;
};

}  // namespace crenel::ckks
