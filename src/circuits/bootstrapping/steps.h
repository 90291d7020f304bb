// Steps of a bootstrap that are no circuits of their own.
#pragma once

#include <functional>

#include "ckks/evaluator_state.h"

namespace crenel::circuits {

/// Batch 2 B from batch B: rows a + conj(a) = 2 Re a, then i (conj(a) - a) = 2 Im a. Real slots.
ckks::Ciphertext split_real_imaginary(const ckks::Evaluator& evaluator, const ckks::Ciphertext& a);
/// The reverse without the factor: first half of the batch + i times the second half.
ckks::Ciphertext join_real_imaginary(const ckks::Evaluator& evaluator, const ckks::Ciphertext& a);
/// Sum over the rotations steps[0], then steps[1], ...: each adds the rotated sum to itself.
ckks::Ciphertext trace(const ckks::Evaluator& evaluator, ckks::Ciphertext a,
                       std::span<const i64> steps);
/// a + conj(a)
ckks::Ciphertext add_conjugate(const ckks::Evaluator& evaluator, ckks::Ciphertext a);
/// The same polynomial, read as a vector of `slots` slots.
ckks::Ciphertext with_slots(ckks::Ciphertext a, u64 slots);
/// The same polynomial with another scale (and so other values).
ckks::Ciphertext with_scale(ckks::Ciphertext a, double scale);

/// Groups of a device's parts that entries_apart() deals a batch out to, with keys that they share;
/// 1: none.
u32 groups_apart(const device::Stream& stream, u32 batch);
/// With those of an evaluator, of the relinearisation key for a level.
u32 groups_apart(const ckks::Evaluator& ev, u32 batch, u32 level);
/// f(a), whose entries do not need one another and stay a batch: on a device of several parts with
/// the first half of the entries on some of them and the second half on the others. By itself where
/// the device, the batch or the relinearisation key for it is not so (device/apart.h).
ckks::Ciphertext entries_apart(const ckks::Evaluator& ev, ckks::Ciphertext a,
                               const std::function<ckks::Ciphertext(ckks::Ciphertext)>& f);

}  // namespace crenel::circuits
