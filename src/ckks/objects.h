// The private halves of the public objects; for ckks/ and serialize/ only.
#pragma once

#include <map>
#include <mutex>

#include "ckks/encoder.h"
#include "ckks/monomial.h"
#include "ckks/share.h"
#include "core/watch_lock.h"
#include "crenel/ckks/evaluator.h"
#include "crenel/core/fork_mutex.h"
#include "random/secret_key_id.h"
#include "rlwe/key_source.h"
#include "rlwe/key_switcher.h"
#include "rlwe/ring_context.h"
#include "rlwe/secret/secret_key.h"
#include "rlwe/staged_keys.h"

namespace crenel::ckks {

struct Plaintext::Data {
  Metadata meta;
  std::string params_id;
  rlwe::Poly poly;         ///< 1 component, window of the level, evaluation form
  bool decrypted = false;  ///< by a client: message and error, which stay with the key holder
  bool stated = false;     ///< the bound, by whom encoded: it goes with what is encrypted
};

struct Ciphertext::Data {
  Metadata meta;
  std::string params_id;
  rlwe::Poly poly;  ///< 2 or 3 components, window of the level, evaluation form
  /// Set while component 1 is still what this seed expands to: the wire form is then half as long.
  std::optional<random::Seed> seed;
};

/// Objects that belong to a context and are made once for all who ask by the same key. They live as
/// long as somebody uses them.
class SharedObjects {
 public:
  template <class T, class Make>
  std::shared_ptr<T> get(const std::string& key, const Make& make) {
    const auto lock = watch::lock(mutex_);
    auto& entry = entries_[key];
    auto found = std::static_pointer_cast<T>(entry.lock());
    if (!found) entry = found = make();
    return found;
  }

 private:
  ForkMutex mutex_;
  std::map<std::string, std::weak_ptr<void>> entries_;
};

struct Context::State {
  State(Params p, std::shared_ptr<const rlwe::RingContext> r, Encoder e)
      : params(std::move(p)), ring(std::move(r)), encoder(std::move(e)) {}

  Params params;
  std::shared_ptr<const rlwe::RingContext> ring;
  Encoder encoder;
  mutable SharedObjects shared;  ///< keyed by kind and content
  mutable Monomials monomials;   ///< by power
};

struct EvaluationKeys::Data {
  std::string params_id;
  SecretKeyId secret_key;                         ///< none only where there are no keys
  std::shared_ptr<const rlwe::RingContext> ring;  ///< where the keys live
  rlwe::EvaluationKeySet set;                     ///< in device memory
  std::shared_ptr<rlwe::StagedKeys> staged;       ///< or in host memory: the set is then empty

  bool has(rlwe::KeyId id) const { return max_level(id).has_value(); }
  /// The highest level that the key serves, rlwe::SwitchKey::kAny for all.
  std::optional<u32> max_level(rlwe::KeyId id) const {
    return staged ? staged->max_level(id) : set.max_level(id);
  }
  std::vector<rlwe::KeyId> ids() const { return staged ? staged->ids() : set.ids(); }
  std::shared_ptr<rlwe::KeySource> source() const {
    if (staged) return staged;
    return std::make_shared<rlwe::ResidentKeys>(set);
  }
};

struct PublicKey::Data {
  Context context;
  rlwe::PublicKey key;
  SecretKeyId secret_key{};
};

struct Client::State {
  Context context;
  rlwe::SecretKey secret;
  SecretKeyId id = random::draw_secret_key_id();
  std::unique_ptr<ShareLedger> ledger = std::make_unique<ShareLedger>();
};

/// The client of coefficients -1, 0, 1 that were read from a file. SerializationError for what no
/// key generation gives: other coefficients, or numbers of 1 and -1 that are too unlikely
/// (random/plausible.h); neither is printed.
Client client_of(const Context& context, std::span<const i8> coefficients, const SecretKeyId& id);

/// ParameterError unless a bound of slots is positive; infinity is unknown.
void expect_bound(double bound);
/// The largest |slot| of slots in the clear.
double largest_slot(std::span<const std::complex<double>> slots);
/// Metadata of what is encrypted of a plaintext for this secret key: with its bound only where that
/// was stated. A measured one tells of the message.
Metadata encrypted_metadata(const Plaintext& plaintext, const SecretKeyId& secret_key);

/// StateError for a plaintext that a decryption gave: what is made of it carries its error on.
/// `advice` ends the message.
void expect_not_decrypted(const Plaintext& plaintext, const char* what, const char* advice = "");

/// Throws StateError when something ("evaluator", ...) has other parameters than `context` or is
/// at home on another device (on a GPU: device object); both are in the message and in the fields
/// `found` and `expected`.
void expect_home(const std::string& params_id, const device::Device& home,
                 const Context::State& context, const char* what);
void expect_home(const std::string& params_id, const rlwe::Poly& poly,
                 const Context::State& context, const char* what);
void expect_same_device(const device::Device& found, const Context::State& context,
                        const char* what);

}  // namespace crenel::ckks
