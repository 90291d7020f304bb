// Ciphertexts in the form for storage and transport: host memory, a fraction of their size at rest.
#pragma once

#include <memory>
#include <string>

#include "crenel/core/secret_key_id.h"
#include "crenel/core/types.h"

namespace crenel::tfhe {

/// What messages are stored as. Both take one rotation a message to come back.
enum class StoredForm : u8 {
  switched,  ///< each by itself: under the LWE secret, rounded to the 2N steps of a rotation, n + 1
             ///< words of log2 2N bits
  lists,     ///< up to N in one ciphertext of the ring, modulo 2^(log2 2N + 4) - 1: N words and one
             ///< for each message
};

/// What Evaluator::compress gives and Evaluator::decompress reads. Immutable, cheap to copy.
class Compressed {
 public:
  struct Data;
  explicit Compressed(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

  u64 size() const;           ///< messages
  u32 plain_modulus() const;  ///< of the messages
  u64 bytes() const;          ///< of the payload, in host memory
  /// Params::id() of its parameters, and whose it is.
  const std::string& params_id() const;
  const SecretKeyId& secret_key_id() const;
  /// Of encrypted integers: bits of each, whose blocks are the messages, block by block. 0: none.
  u32 integer_bits() const;
  bool is_signed() const;  ///< of integers
  /// How the messages are stored.
  StoredForm form() const;
  const Data& data() const { return *data_; }

 private:
  std::shared_ptr<const Data> data_;
};

}  // namespace crenel::tfhe
