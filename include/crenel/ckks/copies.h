// Objects of CKKS for another device: what several GPUs need to compute with the same keys.
#pragma once

#include "crenel/ckks/client.h"

namespace crenel::ckks {

/// The same object on the device of `to`, bit for bit; the one given stays. GPUs copy from memory
/// to memory (device/link.h), nothing is serialised or checked anew. StateError where the
/// parameters are not those of `to`, for staged keys (stage the copies), and for a plaintext that a
/// decryption gave; OutOfMemoryError, before a key is copied, where they do not fit.
EvaluationKeys copy_to(const Context& to, const EvaluationKeys& keys);
Ciphertext copy_to(const Context& to, const Ciphertext& ciphertext);
Plaintext copy_to(const Context& to, const Plaintext& plaintext);

}  // namespace crenel::ckks
