#include "serialize/key_set.h"

#include <algorithm>
#include <set>

#include "ckks/key_demand.h"
#include "ckks/key_sizes.h"
#include "ckks/objects.h"
#include "crenel/core/watch.h"
#include "rlwe/encapsulation.h"
#include "rlwe/secret/secret_key.h"
#include "serialize/poly_io.h"
#include "serialize/reject.h"
#include "serialize/scalars.h"

namespace crenel::serialize {
namespace {

constexpr std::string_view kRelinearisation = "relinearisation", kGalois = "galois/";
constexpr std::string_view kAligned = "aligned/", kAlignedGalois = "aligned/galois/";
constexpr std::string_view kDenseToSparse = "encapsulation/dense_to_sparse";
constexpr std::string_view kSparseToDense = "encapsulation/sparse_to_dense";
constexpr std::string_view kTurned = "encapsulation/turned/";
constexpr std::string_view kHalf = "/b", kSeed = "/seed";
constexpr const char* kDigits = "digits";
constexpr std::string_view kMaxLevel = "max_level:";
constexpr const char* kWeight = "encapsulation_weight";

std::string half_name(std::string_view key) { return cat(key, kHalf); }
std::string seed_name(std::string_view key) { return cat(key, kSeed); }
std::string galois_name(u64 element) { return cat(kGalois, element); }
std::string turned_name(u64 element) { return cat(kTurned, element); }

std::string key_name(rlwe::KeyId id) {
  if (rlwe::is_aligned_key(id)) return cat(kAligned, key_name(rlwe::plain_key(id)));
  if (id == rlwe::kRelinearisation) return std::string(kRelinearisation);
  if (id == rlwe::kDenseToSparse) return std::string(kDenseToSparse);
  if (id == rlwe::kSparseToDense) return std::string(kSparseToDense);
  if (rlwe::is_turned(id)) return turned_name(rlwe::turned_element(id));
  return galois_name(id);
}

/// Elements the library makes keys for: powers of 5 (which are the elements = 1 mod 4), without the
/// identity, and 2N - 1.
bool usable_element(u64 element, u64 ring_dim) {
  return element == 2 * ring_dim - 1 || (element > 1 && element < 2 * ring_dim && element % 4 == 1);
}

/// Those of keys that lead back from the sparse secret: powers of 5, the identity among them.
bool turned_element(u64 element, u64 ring_dim) {
  return element < 2 * ring_dim && element % 4 == 1;
}

}  // namespace

const rlwe::EvaluationKeySet& resident_keys(const ckks::EvaluationKeys& keys) {
  static const rlwe::EvaluationKeySet kNone;
  if (!keys.data()) return kNone;
  if (keys.data()->staged)
    throw UnsupportedError("staged keys cannot be saved: save the keys that they were made from",
                           {{"found", "staged keys"}, {"expected", "keys in device memory"}});
  return keys.data()->set;
}

KeyTensors declare_key(DocumentWriter& file, const rlwe::RingContext& ring, rlwe::KeyId id,
                       u32 digits, u32 limbs, u32 max_level) {
  const std::string name = key_name(id);
  if (rlwe::is_aligned(max_level)) max_level = rlwe::ordinary(max_level);  // the name says the rest
  if (max_level != rlwe::SwitchKey::kAny) file.integer(cat(kMaxLevel, name), max_level);
  if (id == rlwe::kDenseToSparse) file.integer(kWeight, rlwe::kEncapsulationWeight);
  const std::size_t half =
      file.tensor(half_name(name), DType::u32, {digits, limbs, ring.ring_dim()});
  return {half, file.tensor(seed_name(name), DType::u8, {sizeof(random::Seed)})};
}

std::vector<KeyPart> declare_keys(DocumentWriter& file, const rlwe::RingContext& ring,
                                  const rlwe::EvaluationKeySet& set) {
  std::vector<KeyPart> parts;
  file.integer(kDigits, ring.chain().dnum());
  for (const rlwe::KeyId id : set.ids()) {
    const rlwe::SwitchKey& key = *set.find(id);
    const auto& p = key.pairs;
    const auto [half, seed] =
        declare_key(file, ring, id, p.shape().batch, p.limbs().size(), key.max_level);
    parts.push_back({&key, half, seed});
  }
  return parts;
}

KeyReader::KeyReader(const rlwe::RingContext& ring, const std::string& params_id,
                     std::span<const u8> bytes, const LoadLimits& limits)
    : ring_(ring), file_(bytes, kind::kEvaluationKeys, limits, LoadLimits::kKeyBytes) {
  find_all(params_id);
}

KeyReader::KeyReader(const rlwe::RingContext& ring, const std::string& params_id,
                     const InputFile& file, const LoadLimits& limits)
    : ring_(ring), file_(file, kind::kEvaluationKeys, limits, LoadLimits::kKeyBytes) {
  find_all(params_id);
}

void KeyReader::find_all(const std::string& params_id) {
  file_.require_params(params_id);
  secret_key_ = file_.secret_key_id(file_.file().tensors().empty());
  const u32 digits = ring_.chain().dnum();
  if (file_.integer(kDigits, 1, rns::kMaxLimbs) != digits) file_.refuse(kDigits, cat(digits));
  if (file_.has_tensor(half_name(kRelinearisation)))
    relinearisation_ = find_switch_key(std::string(kRelinearisation));
  find_galois();
  find_aligned();
  find_encapsulation();
  file_.check_names();
}

void KeyReader::find_galois() {
  for (const auto& [name, tensor] : file_.file().tensors())
    if (name.starts_with(kGalois) && name.ends_with(kHalf)) {
      const u64 element = element_of(tensor, kGalois);
      galois_.emplace(element, find_switch_key(galois_name(element)));
    }
}

void KeyReader::find_aligned() {
  const rlwe::Chain& chain = ring_.chain();
  for (const auto& [name, tensor] : file_.file().tensors()) {
    if (!name.starts_with(kAligned) || !name.ends_with(kHalf)) continue;
    const rlwe::KeyId id = name.starts_with(kAlignedGalois) ? element_of(tensor, kAlignedGalois)
                                                            : rlwe::kRelinearisation;
    const std::string key = key_name(rlwe::aligned_key(id)), stated = cat(kMaxLevel, key);
    if (name != half_name(key))
      reject("tensor " + quote(name), "the name of a key", quote(half_name(key)), tensor.offset);
    const auto highest = chain.highest_aligned(chain.top_level());
    if (!highest)
      reject("tensor " + quote(name), "a key for aligned levels", "none: no level is aligned",
             tensor.offset);
    const u32 level = static_cast<u32>(file_.integer(stated, 0, *highest));
    if (!chain.aligned(level)) file_.refuse(stated, "an aligned level of these parameters");
    aligned_.emplace(id, find_switch_key(key, rlwe::aligned_level(level)));
  }
}

void KeyReader::find_encapsulation() {
  const std::string first = half_name(kDenseToSparse);
  if (!file_.has_tensor(first)) return;
  if (!rlwe::supports_encapsulation(ring_))
    reject("tensor " + quote(first), "an encapsulation key",
           "none, for parameters without encapsulation", file_.file().tensors().at(first).offset);
  const u32 weight = rlwe::kEncapsulationWeight;
  if (file_.integer(kWeight, 1, ring_.ring_dim()) != weight) file_.refuse(kWeight, cat(weight));
  Encapsulation found{find(std::string(kDenseToSparse), 1, rlwe::encapsulation_limbs(ring_)),
                      find(std::string(kSparseToDense), 1, ring_.everything()),
                      {},
                      weight};
  for (const auto& [name, tensor] : file_.file().tensors()) {
    if (!name.starts_with(kTurned) || !name.ends_with(kHalf)) continue;
    const std::string_view digits =
        std::string_view(name).substr(kTurned.size(), name.size() - kTurned.size() - kHalf.size());
    const auto element = parse_integer(digits);
    const bool usable = element && turned_element(*element, ring_.ring_dim());
    if (!usable || !rlwe::supports_over_mod_raise(ring_))
      reject("tensor " + quote(name), cat("Galois element ", quote(digits)),
             usable ? std::string("none, for parameters without OverModRaise")
                    : cat("an integer 1 mod 4 in [1, ", 2 * ring_.ring_dim(), ")"),
             tensor.offset);
    found.turned.emplace(*element, find(turned_name(*element), 1, ring_.everything()));
  }
  encapsulation_ = std::move(found);
}

u64 KeyReader::element_of(const Tensor& tensor, std::string_view prefix) const {
  const std::string_view digits =
      std::string_view(tensor.name)
          .substr(prefix.size(), tensor.name.size() - prefix.size() - kHalf.size());
  const auto element = parse_integer(digits);
  if (!element || !usable_element(*element, ring_.ring_dim()))
    reject(
        "tensor " + quote(tensor.name), cat("Galois element ", quote(digits)),
        cat("an integer 1 mod 4 in (1, ", 2 * ring_.ring_dim(), ") or ", 2 * ring_.ring_dim() - 1),
        tensor.offset);
  return *element;
}

KeyReader::Entry KeyReader::find(const std::string& name, u32 digits, const rns::LimbSet& limbs) {
  return {&file_.tensor(half_name(name), DType::u32, {digits, limbs.size(), ring_.ring_dim()}),
          &file_.tensor(seed_name(name), DType::u8, {sizeof(random::Seed)}), digits, limbs};
}

KeyReader::Entry KeyReader::find_switch_key(const std::string& name) {
  const std::string stated = cat(kMaxLevel, name);
  u32 level = rlwe::SwitchKey::kAny;
  if (file_.file().metadata().contains(stated)) {
    if (ring_.top_level() == 0) file_.refuse(stated, "none: there is one level");
    level = static_cast<u32>(file_.integer(stated, 0, 2 * rlwe::kShortLevel - 1));
    if (!rlwe::is_short(level))
      level = static_cast<u32>(file_.integer(stated, 0, ring_.top_level() - 1));
    else if (!ring_.chain().has_level(level))
      file_.refuse(stated, "a short level of these parameters");
  }
  return find_switch_key(name, level);
}

KeyReader::Entry KeyReader::find_switch_key(const std::string& name, u32 level) {
  const auto extent = ring_.extent(level);
  Entry entry = find(name, extent.digits, extent.limbs);
  entry.first_digit = extent.first_digit;
  entry.max_level = level;
  return entry;
}

u64 KeyReader::half_bytes(const Entry& entry) const {
  return poly_bytes(ring_, 1, entry.digits, entry.limbs);
}

void KeyReader::check(const Entry& entry, std::span<const u8> half, std::span<const u8> seed) {
  file_.check_digest(*entry.seed, seed);
  file_.check_digest(*entry.half, half);
  check_residues(*entry.half, half, ring_, entry.limbs);
}

rlwe::SwitchKey KeyReader::upload(const Entry& entry, std::span<const u8> half,
                                  std::span<const u8> seed) {
  rlwe::SwitchKey key{rlwe::Poly::kept(ring_.stream(), {ring_.log_n(), 2, entry.digits},
                                       entry.limbs, rlwe::Domain::eval),
                      read_seed(seed), entry.first_digit, entry.max_level};
  copy_in(key.pairs, 0, half);
  rlwe::expand_uniform(ring_, key.pairs.view().components(1, 1), key.seed, key.first_digit);
  return key;
}

std::vector<u64> KeyReader::elements(const ckks::KeySelection& selection) const {
  const u64 conjugation = ring::galois_element_for_conjugation(ring_.log_n());
  std::vector<u64> chosen;
  ckks::KeyDemand demand(ring_.log_n());
  const auto has = [&](u64 element) {
    return galois_.contains(element) || aligned_.contains(element);
  };
  if (!selection.rotations)
    for (const auto* keys : {&galois_, &aligned_})
      for (const auto& [element, entry] : *keys)
        if (element != conjugation && element != rlwe::kRelinearisation) chosen.push_back(element);
  for (i64 steps : selection.rotations.value_or(std::vector<i64>())) {
    const u64 element = ring::galois_element_for_rotation(steps, ring_.log_n());
    if (element == 1) continue;
    demand.rotation(steps, has(element));
    if (has(element)) chosen.push_back(element);
  }
  demand.expect("this selection from a key file");
  if (selection.conjugation && has(conjugation)) chosen.push_back(conjugation);
  return chosen;
}

template <class Visit>
void KeyReader::for_selected(const ckks::KeySelection& selection, const Visit& visit) const {
  const std::vector<u64> chosen = elements(selection);
  std::set<rlwe::KeyId> ids(chosen.begin(), chosen.end());
  if (selection.relinearisation) ids.insert(rlwe::kRelinearisation);
  if (selection.relinearisation && relinearisation_)
    visit(rlwe::kRelinearisation, *relinearisation_);
  for (rlwe::KeyId id : ids)
    if (const auto it = galois_.find(id); it != galois_.end()) visit(id, it->second);
  for (rlwe::KeyId id : ids)
    if (const auto it = aligned_.find(id); it != aligned_.end())
      visit(rlwe::aligned_key(id), it->second);
  if (!selection.encapsulation || !encapsulation_) return;
  visit(rlwe::kDenseToSparse, encapsulation_->dense_to_sparse);
  visit(rlwe::kSparseToDense, encapsulation_->sparse_to_dense);
  for (const auto& [element, entry] : encapsulation_->turned)
    visit(rlwe::turned_key(element), entry);
}

KeyReader::Sizes KeyReader::sizes(const ckks::KeySelection& selection) const {
  Sizes s;
  for_selected(selection, [&](rlwe::KeyId, const Entry& entry) {
    ++s.count;
    s.all += half_bytes(entry);
    s.largest = std::max(s.largest, half_bytes(entry));
  });
  return s;
}

void KeyReader::expect_room(const device::Need& need) const {
  device::expect_room(ring_.device(), need, [] {
    return core::MemoryRequest{
        .what = "evaluation keys of a file",
        .advice =
            "load those that are needed (rotations=), or keep them in host memory "
            "(staged_bytes=)"};
  });
}

template <class Load>
rlwe::EvaluationKeySet KeyReader::assemble(const ckks::KeySelection& selection, Load load) const {
  rlwe::EvaluationKeySet set;
  for_selected(selection, [&](rlwe::KeyId id, const Entry& entry) {
    if (id == rlwe::kDenseToSparse)
      set.encapsulation.emplace().dense_to_sparse = load(entry);
    else if (id == rlwe::kSparseToDense)
      set.encapsulation->sparse_to_dense = load(entry);
    else if (rlwe::is_turned(id))
      set.encapsulation->turned.emplace(rlwe::turned_element(id), load(entry));
    else
      set.put(id, load(entry));
  });
  if (set.encapsulation) set.encapsulation->weight = encapsulation_.value().weight;
  return set;
}

rlwe::EvaluationKeySet KeyReader::load_all() {
  const Sizes s = sizes({});
  file_.require_memory(2 * s.all);
  expect_room({.device = 2 * s.all});
  const watch::Task task(2 * s.count, "loading keys");
  const auto verify = [&](const Entry& e) {
    check(e, file_.data(*e.half), file_.data(*e.seed));
    watch::advance();
  };
  if (relinearisation_) verify(*relinearisation_);
  for (const auto& [element, entry] : galois_) verify(entry);
  for (const auto& [id, entry] : aligned_) verify(entry);
  if (encapsulation_) {
    verify(encapsulation_->dense_to_sparse);
    verify(encapsulation_->sparse_to_dense);
    for (const auto& [element, entry] : encapsulation_->turned) verify(entry);
  }
  return assemble({}, [&](const Entry& e) {
    rlwe::SwitchKey key = upload(e, file_.data(*e.half), file_.data(*e.seed));
    watch::advance();
    return key;
  });
}

rlwe::EvaluationKeySet KeyReader::load(const ckks::KeySelection& selection) {
  const Sizes s = sizes(selection);
  file_.require_memory(2 * s.all + s.largest);
  expect_room({.device = 2 * s.all, .host = s.largest});
  std::vector<u8> half, seed(sizeof(random::Seed));
  const watch::Task task(s.count, "loading keys");
  return assemble(selection, [&](const Entry& e) {
    half.resize(half_bytes(e));
    file_.copy_data(*e.half, half);
    file_.copy_data(*e.seed, seed);
    check(e, half, seed);
    rlwe::SwitchKey key = upload(e, half, seed);
    watch::advance();
    return key;
  });
}

std::map<rlwe::KeyId, rlwe::HostKey> KeyReader::load_to_host(const ckks::KeySelection& selection,
                                                             u64 device_bytes) {
  const Sizes s = sizes(selection);
  file_.require_memory(s.all + std::min(device_bytes, 2 * s.all));
  expect_room(
      {.device = ckks::least_staged_bytes(device_bytes, 2 * s.all, 2 * s.largest), .host = s.all});
  std::map<rlwe::KeyId, rlwe::HostKey> keys;
  const watch::Task task(s.count, "loading keys");
  for_selected(selection, [&](rlwe::KeyId id, const Entry& e) {
    rlwe::HostKey key = rlwe::make_host_key(ring_, e.digits, e.limbs);
    const std::span<u8> half(key.half.as<u8>(), key.half.bytes());
    std::vector<u8> seed(sizeof(random::Seed));
    file_.copy_data(*e.half, half);
    file_.copy_data(*e.seed, seed);
    check(e, half, seed);
    key.seed = read_seed(seed);
    key.first_digit = e.first_digit;
    key.max_level = e.max_level;
    keys.emplace(id, std::move(key));
    watch::advance();
  });
  return keys;
}

}  // namespace crenel::serialize
