// The private halves of the public objects; for ckks/ and serialize/ only.
#pragma once

#include "ckks/encoder.h"
#include "crenel/ckks/evaluator.h"
#include "rlwe/key_switcher.h"
#include "rlwe/keys.h"
#include "rlwe/ring_context.h"
#include "rlwe/secret/secret_key.h"

namespace crenel::ckks {

struct Plaintext::Data {
  Metadata meta;
  std::string params_id;
  rlwe::Poly poly;  ///< 1 component, window of the level, evaluation form
};

struct Ciphertext::Data {
  Metadata meta;
  std::string params_id;
  rlwe::Poly poly;  ///< 2 or 3 components, window of the level, evaluation form
  /// Set while component 1 is still what this seed expands to: the wire form is then half as long.
  std::optional<random::Seed> seed;
};

struct Context::State {
  Params params;
  std::shared_ptr<const rlwe::RingContext> ring;
  Encoder encoder;
};

struct EvaluationKeys::Data {
  std::string params_id;
  std::shared_ptr<const rlwe::RingContext> ring;  ///< where the keys live
  rlwe::EvaluationKeySet set;
};

struct PublicKey::Data {
  Context context;
  rlwe::PublicKey key;
};

struct Client::State {
  Context context;
  rlwe::SecretKey secret;
};

/// Throws StateError when an object ("ciphertext", ...) has other parameters than `context` or
/// lives on another device; both names are in the message and in the fields `found` and `expected`.
void expect_home(const std::string& params_id, const rlwe::Poly& poly,
                 const Context::State& context, const char* what);
void expect_same_device(const device::Device& found, const Context::State& context,
                        const char* what);

}  // namespace crenel::ckks
