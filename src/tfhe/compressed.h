// The private half of Compressed, and its sizes; for tfhe/ and serialize/ only.
#pragma once

#include <vector>

#include "crenel/tfhe/compressed.h"
#include "crenel/tfhe/context.h"
#include "device/torus/plan.h"
#include "tfhe/bit_packing.h"

namespace crenel::tfhe {

struct Compressed::Data {
  std::string params_id;
  SecretKeyId secret_key;
  u64 size = 0;  ///< messages, at least 1
  u32 plain_modulus = 0;
  u32 bound = 0;  ///< Ciphertext::bound()
  u32 integer_bits = 0;
  bool is_signed = false;
  StoredForm form = StoredForm::switched;
  /// Of the array that was compressed, at q: a file's claim where it was loaded.
  double noise_variance = 0;
  std::vector<u8> words;  ///< rows of stored_row_bytes, or lists (lists.h), one behind the other
};

/// Throws UnsupportedError for sets whose ciphertexts rest behind the key switch.
void expect_compression(const Context::State& home);

/// The modulus of messages that compression takes: p itself where it does, else another.
u32 compressible_modulus(const Params& params, u32 plain_modulus);

/// log2 of the modulus of stored words: 2N, or Q_KS where that is less.
u32 stored_log_modulus(const device::TorusPlan& plan);
/// Rows of so many messages, and bytes of a row.
inline u64 stored_rows(const device::TorusPlan& plan, u64 size) {
  return (size + plan.slots - 1) / plan.slots;
}
inline u64 stored_row_bytes(const device::TorusPlan& plan) {
  return packed_bytes(plan.read_words(), stored_log_modulus(plan));
}

}  // namespace crenel::tfhe
