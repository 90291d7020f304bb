// Objects of TFHE for another device: what several GPUs need to compute with the same keys.
#pragma once

#include "crenel/tfhe/context.h"
#include "crenel/tfhe/integer.h"

namespace crenel::tfhe {

/// The same object on the device of `to`, bit for bit; the one given stays. GPUs copy from memory
/// to memory (device/link.h). Keys for a device of another model, which may want them in another
/// order, are loaded anew from what they travel as; those of further steps (EvaluationKeys::steps)
/// are made there when an evaluator asks for them. StateError where the parameters are not those
/// of `to`; OutOfMemoryError, before a key is copied, where they do not fit.
EvaluationKeys copy_to(const Context& to, const EvaluationKeys& keys);
Ciphertext copy_to(const Context& to, const Ciphertext& ciphertext);
Integers copy_to(const Context& to, const Integers& integers);

}  // namespace crenel::tfhe
