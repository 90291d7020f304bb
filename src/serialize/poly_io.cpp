#include "serialize/poly_io.h"

#include <algorithm>
#include <cstring>

#include "crenel/core/watch.h"
#include "serialize/reject.h"

namespace crenel::serialize {
namespace {

using rlwe::Word;

/// Words of one limb, at any alignment.
Word load(const u8* words, u64 index) {
  Word w;
  std::memcpy(&w, words + index * sizeof(Word), sizeof(Word));
  return w;
}

/// Index of the first word >= q, or n. The maximum comes first: it vectorises, and files are good.
u64 find_large(const u8* words, u64 n, Word q) {
  Word largest = 0;
  for (u64 i = 0; i < n; ++i) largest = std::max(largest, load(words, i));
  if (largest < q) return n;
  for (u64 i = 0; i < n; ++i)
    if (load(words, i) >= q) return i;
  return n;
}

std::size_t component_bytes(const rlwe::Poly& poly) {
  return poly.limbs().size() * poly.shape().ring_dim() * sizeof(Word);
}

}  // namespace

void copy_out(const rlwe::Poly& poly, u32 component, std::span<u8> to) {
  const std::size_t bytes = component_bytes(poly);
  for (u32 b = 0; b < poly.shape().batch; ++b)
    poly.stream().copy_out(to.subspan(b * bytes, bytes).data(), poly.view().limb(b, component, 0),
                           bytes);
}

void copy_in(rlwe::Poly& poly, u32 component, std::span<const u8> from) {
  const std::size_t bytes = component_bytes(poly);
  for (u32 b = 0; b < poly.shape().batch; ++b)
    poly.stream().copy_in(poly.view().limb(b, component, 0), from.subspan(b * bytes, bytes).data(),
                          bytes);
}

void check_residues(const Tensor& tensor, std::span<const u8> bytes, const rlwe::RingContext& ring,
                    const rns::LimbSet& limbs) {
  const u64 n = ring.ring_dim(), limb_bytes = n * sizeof(Word);
  for (u64 limb = 0; limb * limb_bytes < bytes.size(); ++limb) {
    watch::point();
    const Word q = ring.modulus(limbs[static_cast<u32>(limb % limbs.size())]).q;
    const u8* words = bytes.data() + limb * limb_bytes;
    const u64 bad = find_large(words, n, q);
    if (bad != n)
      reject("tensor " + quote(tensor.name),
             cat("residue ", load(words, bad), " in limb ", limb % limbs.size()),
             cat("values below its prime ", q),
             tensor.begin + limb * limb_bytes + bad * sizeof(Word));
  }
}

random::Seed read_seed(std::span<const u8> bytes) {
  random::Seed seed;
  std::copy_n(bytes.begin(), seed.size(), seed.begin());
  return seed;
}

void require_context(std::string_view what, const std::string& object_id,
                     const std::string& context_id) {
  if (object_id == context_id) return;
  throw StateError(cat("cannot save ", what, ": it belongs to the parameters ", object_id,
                       ", the context to ", context_id),
                   {{"object", std::string(what)}, {"found", object_id}, {"expected", context_id}});
}

}  // namespace crenel::serialize
