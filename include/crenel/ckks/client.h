// Client: the holder of the secret key.
#pragma once

#include <complex>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "crenel/ckks/context.h"

namespace crenel::ckks {

/// Which evaluation keys to make; only what is asked for is generated.
///
/// A key serves the levels up to one, and is the smaller the lower that is; the same keys made for
/// all levels give the same bits at those.
struct KeyRequest {
  std::vector<i64> rotations;  ///< steps to the left; negative: to the right; 0 needs no key
  bool conjugate = false;
  bool relinearisation = true;
  /// The pair of keys between the secret and an ephemeral sparse one that bootstrapping needs.
  /// Refused where the sparse secret would be weaker than 128 bits (SECURITY.md), and by parameters
  /// with more than two primes at level 0 or fewer than two special primes.
  bool encapsulation = false;
  /// Rotations that lead back from the sparse secret as well, 0 for none: of a bootstrap with
  /// OverModRaise. With `encapsulation` only. UnsupportedError with too few special primes.
  std::vector<i64> encapsulation_rotations = {};
  /// The highest level that keys serve (not those of encapsulation) where none of their own is
  /// given; none: all levels. Levels above Params::max_level(): ParameterError.
  std::optional<u32> max_level = {};
  std::map<i64, u32> rotation_levels = {};        ///< of some of `rotations`
  std::optional<u32> conjugation_level = {};      ///< of `conjugate`
  std::optional<u32> relinearisation_level = {};  ///< of `relinearisation`
  /// Keys of their own for the aligned levels up to one (Params::highest_aligned), beside those
  /// above or without them: operations at these levels take a digit less with them
  /// (docs/theory/ckks-primes.md, "Aligned digits"). ParameterError where no level is aligned.
  std::map<i64, u32> aligned_rotations = {};  ///< steps, 0 excepted, to levels
  std::optional<u32> aligned_conjugation = {};
  std::optional<u32> aligned_relinearisation = {};
};
/// The keys of both, each for the higher level.
KeyRequest merge(const KeyRequest& a, const KeyRequest& b);

/// Memory of evaluation keys, exact: EvaluationKeys::count() and bytes() of what a request makes.
struct KeySizes {
  u32 count = 0;  ///< keys, of encapsulation all
  u64 bytes = 0;  ///< on the device, of all
  u64 each = 0;   ///< of the largest rotation, conjugation or relinearisation key
};
/// Without a client, a device or a key: what the request would take. UnsupportedError and
/// ParameterError where Client::evaluation_keys throws them.
KeySizes key_sizes(const Params& params, const KeyRequest& request = {});

/// What a server holds: no secret. Cheap to copy (shared, immutable); any number of threads may
/// compute with it, staged or not.
class EvaluationKeys {
 public:
  struct Data;
  EvaluationKeys() = default;  ///< no keys
  explicit EvaluationKeys(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

  /// Whether there is such a key.
  bool has_relinearisation() const;
  bool has_conjugation() const;
  bool has_encapsulation() const;
  /// Of the client that made them; none for no keys that nobody made.
  SecretKeyId secret_key_id() const;
  /// Rotation steps with a key, in (-N/4, N/4], ascending.
  std::vector<i64> rotations() const;
  /// The highest level that a key serves; nothing where there is no such key.
  std::optional<u32> rotation_level(i64 steps) const;
  std::optional<u32> conjugation_level() const;
  std::optional<u32> relinearisation_level() const;
  /// Rotation steps with a key for aligned levels, as rotations().
  std::vector<i64> aligned_rotations() const;
  /// The highest level that such a key serves.
  std::optional<u32> aligned_rotation(i64 steps) const;
  std::optional<u32> aligned_conjugation() const;
  std::optional<u32> aligned_relinearisation() const;
  u32 count() const;       ///< keys, of encapsulation all
  u64 bytes() const;       ///< on the device: of several parts more where some share keys
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
  /// Public-key encryption with fresh randomness of the operating system. A bound that was stated
  /// for the plaintext goes with the ciphertext.
  Ciphertext encrypt(const Plaintext& plaintext) const;
  /// Of the client that made it.
  const SecretKeyId& secret_key_id() const;
  const Data& data() const { return *data_; }

 private:
  std::shared_ptr<const Data> data_;
};

struct ErrorBound;

/// What a result that leaves the key holder is protected by (SECURITY.md).
struct Sharing {
  /// Whoever sees all shares and everything else that is public tells the circuit's exact result
  /// plus noise from the share with an advantage below 2^-(statistical_bits / 2 + 2); 30..64.
  u32 statistical_bits = 0;
  u64 queries = 1;  ///< vectors to be shared under this key, all told; at least 1
};

/// A result that may leave the key holder.
struct Share {
  /// The slots, row after row, rounded to multiples of `grid`.
  std::vector<std::complex<double>> values;
  bool real = false;            ///< by the model: imaginary parts are zero
  double noise_std = 0.0;       ///< root mean square of the noise in a slot
  double error_rms = 0.0;       ///< what the circuit itself loses, at most
  double precision_bits = 0.0;  ///< log2 of the largest message over the noise: what remains
  double bits_lost = 0.0;       ///< log2 of noise over error: what sharing costs
  double grid = 0.0;            ///< a power of two, a quarter of the noise or less
  Sharing sharing;
  u64 given = 0;  ///< vectors that this client has shared, these among them
};

/// What the shares of a key have used up: goes where the key goes.
struct ShareAccount {
  u64 shares = 0;      ///< vectors
  double spent = 0.0;  ///< sum over them of 2^-statistical_bits / queries
};

/// Holder of the secret. Any number of threads may encrypt, decrypt and make keys with one client.
class Client {
 public:
  struct State;
  explicit Client(std::shared_ptr<State> state);
  Client(Client&&) noexcept;
  ~Client();

  /// The context whose parameters and device it has.
  const Context& context() const;
  /// The public name of the secret key, which keys and ciphertexts made with it carry.
  const SecretKeyId& secret_key_id() const;
  /// Secret-key encryption; the uniform half is expanded from a seed. The ciphertext carries a
  /// bound where one was stated (Context::encode), and operations on it are refused where a result
  /// could leave the modulus.
  Ciphertext encrypt(const Plaintext& plaintext);
  /// Context::encode, then encrypt: arguments, ranges and errors as there.
  Ciphertext encrypt(std::span<const std::complex<double>> values, std::optional<u32> level = {},
                     double scale = 0.0, u64 slots = 0, u32 batch = 1,
                     double bound = kUnknownBound);
  Ciphertext encrypt(std::span<const double> values, std::optional<u32> level = {},
                     double scale = 0.0, u64 slots = 0, u32 batch = 1,
                     double bound = kUnknownBound);
  /// The slots, row after row, exactly as they decrypt: for the key holder's own eyes. One such
  /// result of a fresh ciphertext, in the hands of somebody who has the ciphertext, gives the
  /// secret key away, and rounding it for display is no protection. StateError for another
  /// context's or another secret key's ciphertext.
  std::vector<std::complex<double>> decrypt(const Ciphertext& ciphertext);
  /// The slots for somebody else: Gaussian noise that hides the errors of the circuit (and with
  /// them the key), of standard deviation sqrt(12 queries) 2^(statistical_bits / 2) times the bound
  /// of their 2-norm, is added to the integer coefficients. `bound` is what the client's own
  /// ErrorModel gives for the circuit that it asked for.
  ///
  /// ParameterError where nothing of the message would remain, naming the numbers, for `sharing`
  /// out of range, and for bounds that fail too often. StateError where level, scale, slots,
  /// components or parameters of the ciphertext are not the bound's or its secret key is another,
  /// where the account of this key does not allow as many shares, and where the noisy result lies
  /// beyond the bounds: the circuit was not followed. That last refusal counts as a share, and
  /// tells whoever learns of it about the result as a share does.
  Share decrypt_to_share(const Ciphertext& ciphertext, const ErrorBound& bound,
                         const Sharing& sharing);
  /// Counted in this object: a client imported from the same key, in this process or another,
  /// starts at nothing and is to be told.
  ShareAccount share_account() const;
  /// Counts shares that were given under this key elsewhere. ParameterError unless `spent` is
  /// finite and not negative.
  void add_to_share_account(const ShareAccount& earlier);
  /// The noisy plaintext polynomial of a ciphertext (for precision measurements): as exact as
  /// decrypt(). It cannot be encrypted or computed with, and is serialised only by explicit wish.
  Plaintext decrypt_to_plaintext(const Ciphertext& ciphertext) const;

  /// Before any key is made: OutOfMemoryError where key_sizes() and what the making takes are more
  /// than the device has, ParameterError for a level that the parameters do not have.
  EvaluationKeys evaluation_keys(const KeyRequest& request = {});
  /// A key with which anyone can encrypt, with randomness of the operating system.
  PublicKey public_key();

  /// The secret key as an explicit export, a file like the others (docs/reference/file-format.md):
  /// guard these bytes, and wipe them.
  std::vector<u8> export_secret_key() const;
  /// The client with the same secret_key_id(). SerializationError for bytes that no export for
  /// these parameters gives: damaged ones, coefficients other than -1, 0, 1, numbers of them that
  /// no key generation gives, and the bare coefficients that were exported before files of version
  /// 2.
  static Client import_secret_key(const Context& context, std::span<const u8> bytes);

  const State& state() const { return *state_; }
  const std::shared_ptr<State>& shared_state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace crenel::ckks
