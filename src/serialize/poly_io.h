// Residue tensors: [batch, limbs, N] words of one component of a polynomial.
#pragma once

#include "crenel/ckks/ciphertext.h"
#include "rlwe/ring_context.h"
#include "serialize/document.h"

namespace crenel::serialize {

/// Bytes of the residues of such polynomials.
inline u64 poly_bytes(const rlwe::RingContext& ring, u64 components, u64 batch,
                      const rns::LimbSet& limbs) {
  return components * batch * limbs.size() * ring.ring_dim() * sizeof(rlwe::Word);
}
/// Device to file: component `component` of every batch entry.
void copy_out(const rlwe::Poly& poly, u32 component, std::span<u8> to);
/// File to device.
void copy_in(rlwe::Poly& poly, u32 component, std::span<const u8> from);
/// Refuses a tensor [..., limbs, N] of these bytes with a word that is not below its limb's prime.
void check_residues(const Tensor& tensor, std::span<const u8> bytes, const rlwe::RingContext& ring,
                    const rns::LimbSet& limbs);
/// A seed of 32 bytes.
random::Seed read_seed(std::span<const u8> bytes);
/// Throws StateError unless the object belongs to the context.
void require_context(std::string_view what, const std::string& object_id,
                     const std::string& context_id);

}  // namespace crenel::serialize
