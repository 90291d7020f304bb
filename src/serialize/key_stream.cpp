// Evaluation keys made and written one at a time.
#include <algorithm>

#include "ckks/key_sizes.h"
#include "ckks/objects.h"
#include "crenel/ckks/serialize.h"
#include "rlwe/encapsulation.h"
#include "serialize/key_set.h"
#include "serialize/poly_io.h"

namespace crenel::ckks {

using namespace serialize;

struct EvaluationKeyStream::State {
  struct Entry {
    rlwe::KeyId id;
    u32 max_level;
    KeyTensors tensors;
  };

  State(std::shared_ptr<Client::State> owner, const KeyRequest& request);
  const rlwe::RingContext& ring() const { return *client->context.state().ring; }
  void declare(rlwe::KeyId id, u32 digits, u32 limbs, u32 max_level) {
    entries.push_back({id, max_level, declare_key(file, ring(), id, digits, limbs, max_level)});
  }
  void append(std::vector<u8>& bytes, const KeyTensors& at, const rlwe::SwitchKey& key);

  std::shared_ptr<Client::State> client;
  DocumentWriter file;
  std::vector<Entry> entries;
  std::vector<u64> turned;  ///< elements, of encapsulation
  std::size_t made = 0;
};

EvaluationKeyStream::State::State(std::shared_ptr<Client::State> owner, const KeyRequest& request)
    : client(std::move(owner)), file(kind::kEvaluationKeys, client->context.params().id()) {
  const Params& params = client->context.params();
  if (request.encapsulation) require_secure_encapsulation(params, ring());
  turned = turned_elements(params, request);
  if (!turned.empty()) rlwe::expect_over_mod_raise(ring());
  const auto wanted = switch_keys(params, request);
  // Those of encapsulation are made together: one call knows the sparse secret.
  const u64 pair = 2 * params.primes().size() * params.ring_dim() * sizeof(rlwe::Word);
  const u64 together = request.encapsulation ? (2 + turned.size()) * pair : 0;
  const u64 each = std::max(key_sizes(params, request).each, together);
  device::expect_room(ring().device(), {.device = each + each / 2, .host = each / 2},
                      [] { return core::MemoryRequest{.what = "one evaluation key"}; });
  file.secret_key_id(client->id);
  file.integer("digits", ring().chain().dnum());
  for (const auto& [id, level] : wanted) {
    const auto extent = ring().extent(level);
    declare(id, extent.digits, extent.limbs.size(), level);
  }
  if (request.encapsulation) {
    declare(rlwe::kDenseToSparse, 1, rlwe::encapsulation_limbs(ring()).size(),
            rlwe::SwitchKey::kAny);
    declare(rlwe::kSparseToDense, 1, ring().everything().size(), rlwe::SwitchKey::kAny);
    for (u64 element : turned)
      declare(rlwe::turned_key(element), 1, ring().everything().size(), rlwe::SwitchKey::kAny);
  }
  file.layout();
}

void EvaluationKeyStream::State::append(std::vector<u8>& bytes, const KeyTensors& at,
                                        const rlwe::SwitchKey& key) {
  const Tensor &half = file.laid_out(at.half), &seed = file.laid_out(at.seed);
  const std::size_t begin = bytes.size(), middle = begin + (half.end - half.begin);
  bytes.resize(middle + (seed.end - seed.begin));
  copy_out(key.pairs, 0, std::span(bytes).subspan(begin, middle - begin));
  std::copy(key.seed.begin(), key.seed.end(), bytes.begin() + static_cast<std::ptrdiff_t>(middle));
  file.set_digest(at.half, std::span(bytes).subspan(begin, middle - begin));
  file.set_digest(at.seed, key.seed);
}

EvaluationKeyStream::EvaluationKeyStream(const Client& client, const KeyRequest& request)
    : state_(std::make_unique<State>(client.shared_state(), request)) {}
EvaluationKeyStream::EvaluationKeyStream(EvaluationKeyStream&&) noexcept = default;
EvaluationKeyStream& EvaluationKeyStream::operator=(EvaluationKeyStream&&) noexcept = default;
EvaluationKeyStream::~EvaluationKeyStream() = default;

u32 EvaluationKeyStream::count() const {
  const auto& all = state_->entries;
  const auto together = std::count_if(all.begin(), all.end(), [](const auto& e) {
    return e.id == rlwe::kSparseToDense || rlwe::is_turned(e.id);
  });
  return static_cast<u32>(all.size() - static_cast<std::size_t>(together));
}

u64 EvaluationKeyStream::file_bytes() const {
  const auto& all = state_->entries;
  if (all.empty()) return state_->file.head().size();
  return state_->file.laid_out(all.back().tensors.seed).end;
}

std::vector<u8> EvaluationKeyStream::next() {
  std::vector<u8> bytes;
  State& s = *state_;
  if (s.made == s.entries.size()) return bytes;
  const auto& [id, level, tensors] = s.entries[s.made];
  auto& secret = s.client->secret;
  if (id == rlwe::kDenseToSparse) {
    const auto keys = secret.make_encapsulation_keys(rlwe::kEncapsulationWeight, s.turned);
    s.append(bytes, tensors, keys.dense_to_sparse);
    s.append(bytes, s.entries[s.made + 1].tensors, keys.sparse_to_dense);
    s.made += 2;
    for (u64 element : s.turned)
      s.append(bytes, s.entries[s.made++].tensors, keys.turned.at(element));
    return bytes;
  }
  s.append(bytes, tensors, make_switch_key(secret, id, level));
  ++s.made;
  return bytes;
}

std::vector<u8> EvaluationKeyStream::head() const {
  if (state_->made != state_->entries.size())
    throw StateError(cat("the head of a key file after ", state_->made, " of ",
                         state_->entries.size(), " keys, expected all to be made"),
                     {{"found", state_->made}, {"expected", state_->entries.size()}});
  return state_->file.head();
}

}  // namespace crenel::ckks
