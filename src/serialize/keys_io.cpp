// Evaluation keys and public keys to files and back; uniform halves travel as seeds.
#include "ckks/objects.h"
#include "crenel/ckks/serialize.h"
#include "serialize/poly_io.h"
#include "serialize/reject.h"
#include "serialize/scalars.h"

namespace crenel::ckks {
namespace {

using namespace serialize;
using ring::Domain;

constexpr std::string_view kRelinearisation = "relinearisation", kGalois = "galois/";
constexpr std::string_view kHalf = "/b", kSeed = "/seed";

std::string galois_name(u64 element) { return cat(kGalois, element); }

/// The two tensors of one key.
struct KeyTensors {
  std::size_t half, seed;
};

KeyTensors declare(DocumentWriter& file, const std::string& name, const rlwe::SwitchKey& key) {
  const auto& p = key.pairs;
  return {file.tensor(cat(name, kHalf), DType::u32,
                      {p.shape().batch, p.limbs().size(), p.shape().ring_dim()}),
          file.tensor(cat(name, kSeed), DType::u8, {key.seed.size()})};
}

void fill(DocumentWriter& file, const KeyTensors& tensors, const rlwe::Poly& pairs,
          const random::Seed& seed) {
  copy_out(pairs, 0, file.data(tensors.half));
  std::copy(seed.begin(), seed.end(), file.data(tensors.seed).begin());
}

/// One key of a file, checked but not yet on the device.
struct KeyData {
  const Tensor* half;
  const Tensor* seed;
};

/// Elements the library makes keys for: powers of 5 (which are the elements = 1 mod 4), without the
/// identity, and 2N - 1.
bool usable_element(u64 element, u64 ring_dim) {
  return element == 2 * ring_dim - 1 || (element > 1 && element < 2 * ring_dim && element % 4 == 1);
}

class KeyLoader {
 public:
  KeyLoader(const rlwe::RingContext& ring, std::span<const u8> bytes, const Params& params)
      : ring_(ring), file_(bytes, kind::kEvaluationKeys) {
    file_.require_params(params.id());
    const u32 dnum = ring.chain().dnum();
    if (file_.integer("digits", 1, kMaxLimbs) != dnum) file_.refuse("digits", cat(dnum));
    if (file_.has_tensor(cat(kRelinearisation, kHalf)))
      relinearisation_ = find(std::string(kRelinearisation));
    for (const auto& [name, tensor] : file_.file().tensors())
      if (name.starts_with(kGalois) && name.ends_with(kHalf)) {
        const u64 element = element_of(tensor);
        galois_.emplace(element, find(galois_name(element)));
      }
    file_.finish();
  }

  /// Nothing was allocated on the device before this.
  rlwe::EvaluationKeySet load() {
    if (relinearisation_) check_residues(file_, *relinearisation_->half, ring_, ring_.everything());
    for (const auto& [element, key] : galois_)
      check_residues(file_, *key.half, ring_, ring_.everything());
    rlwe::EvaluationKeySet set;
    if (relinearisation_) set.relinearisation = upload(*relinearisation_);
    for (const auto& [element, key] : galois_) set.galois.emplace(element, upload(key));
    return set;
  }

 private:
  u64 element_of(const Tensor& tensor) const {
    const std::string_view digits =
        std::string_view(tensor.name)
            .substr(kGalois.size(), tensor.name.size() - kGalois.size() - kHalf.size());
    const auto element = parse_integer(digits);
    if (!element || !usable_element(*element, ring_.ring_dim()))
      reject("tensor " + quote(tensor.name), cat("Galois element ", quote(digits)),
             cat("an integer 1 mod 4 in (1, ", 2 * ring_.ring_dim(), ") or ",
                 2 * ring_.ring_dim() - 1),
             tensor.offset);
    return *element;
  }

  KeyData find(const std::string& name) {
    return {&file_.tensor(cat(name, kHalf), DType::u32,
                          {ring_.chain().dnum(), ring_.everything().size(), ring_.ring_dim()}),
            &file_.tensor(cat(name, kSeed), DType::u8, {sizeof(random::Seed)})};
  }

  rlwe::SwitchKey upload(const KeyData& source) {
    rlwe::SwitchKey key{rlwe::Poly(ring_.stream(), {ring_.log_n(), 2, ring_.chain().dnum()},
                                   ring_.everything(), Domain::eval),
                        read_seed(file_.data(*source.seed))};
    copy_in(key.pairs, 0, file_.data(*source.half));
    rlwe::expand_uniform(ring_, key.pairs.view().components(1, 1), key.seed);
    return key;
  }

  const rlwe::RingContext& ring_;
  DocumentReader file_;
  std::optional<KeyData> relinearisation_;
  std::map<u64, KeyData> galois_;
};

}  // namespace

std::vector<u8> to_bytes(const Context& context, const EvaluationKeys& keys) {
  static const rlwe::EvaluationKeySet kNone;
  const std::string& id = context.params().id();
  if (keys.data()) require_context("evaluation keys", keys.data()->params_id, id);
  const rlwe::EvaluationKeySet& set = keys.data() ? keys.data()->set : kNone;

  DocumentWriter file(kind::kEvaluationKeys, id);
  file.integer("digits", context.state().ring->chain().dnum());
  std::vector<std::pair<const rlwe::SwitchKey*, KeyTensors>> parts;
  const auto add = [&](const std::string& name, const rlwe::SwitchKey& key) {
    parts.emplace_back(&key, declare(file, name, key));
  };
  if (set.relinearisation) add(std::string(kRelinearisation), *set.relinearisation);
  for (const auto& [element, key] : set.galois) add(galois_name(element), key);
  file.allocate();
  for (const auto& [key, tensors] : parts) fill(file, tensors, key->pairs, key->seed);
  return file.finish();
}

EvaluationKeys evaluation_keys_from_bytes(const Context& context, std::span<const u8> bytes) {
  const auto& ring = context.state().ring;
  auto data = std::make_shared<EvaluationKeys::Data>();
  data->params_id = context.params().id();
  data->ring = ring;
  data->set = KeyLoader(*ring, bytes, context.params()).load();
  return EvaluationKeys(std::move(data));
}

std::vector<u8> to_bytes(const Context& context, const PublicKey& key) {
  const std::string& id = context.params().id();
  require_context("a public key", key.data().context.params().id(), id);
  const rlwe::PublicKey& source = key.data().key;
  DocumentWriter file(kind::kPublicKey, id);
  const KeyTensors tensors{
      file.tensor("b", DType::u32, {source.pair.limbs().size(), source.pair.shape().ring_dim()}),
      file.tensor("seed", DType::u8, {source.seed.size()})};
  file.allocate();
  fill(file, tensors, source.pair, source.seed);
  return file.finish();
}

PublicKey public_key_from_bytes(const Context& context, std::span<const u8> bytes) {
  const rlwe::RingContext& ring = *context.state().ring;
  const rns::LimbSet limbs = rns::LimbSet::range(0, ring.chain().chain_limbs);
  DocumentReader file(bytes, kind::kPublicKey);
  file.require_params(context.params().id());
  const Tensor& half = file.tensor("b", DType::u32, {limbs.size(), ring.ring_dim()});
  const Tensor& seed = file.tensor("seed", DType::u8, {sizeof(random::Seed)});
  file.finish();
  check_residues(file, half, ring, limbs);

  rlwe::PublicKey key;
  key.seed = read_seed(file.data(seed));
  key.pair = rlwe::Poly(ring.stream(), {ring.log_n(), 2, 1}, limbs, Domain::eval);
  copy_in(key.pair, 0, file.data(half));
  rlwe::expand_uniform(ring, key.pair.view().components(1, 1), key.seed);
  return PublicKey(
      std::make_shared<const PublicKey::Data>(PublicKey::Data{context, std::move(key)}));
}

}  // namespace crenel::ckks
