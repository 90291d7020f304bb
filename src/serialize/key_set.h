// The evaluation keys of a file: names, shapes, checks, and what goes to the device.
#pragma once

#include "crenel/ckks/serialize.h"
#include "device/room.h"
#include "rlwe/staged_keys.h"
#include "serialize/document.h"

namespace crenel::serialize {

/// One key with the indices of its two tensors.
struct KeyPart {
  const rlwe::SwitchKey* key;
  std::size_t half, seed;
};

/// The keys in device memory, none for no keys. UnsupportedError for staged keys.
const rlwe::EvaluationKeySet& resident_keys(const ckks::EvaluationKeys& keys);

/// Indices of a key's two tensors.
struct KeyTensors {
  std::size_t half, seed;
};
/// Declares one key of this shape, and its metadata.
KeyTensors declare_key(DocumentWriter& file, const rlwe::RingContext& ring, rlwe::KeyId id,
                       u32 digits, u32 limbs, u32 max_level);

/// Declares every key of the set, and the metadata of the kind, in file order.
std::vector<KeyPart> declare_keys(DocumentWriter& file, const rlwe::RingContext& ring,
                                  const rlwe::EvaluationKeySet& set);

/// The keys of untrusted bytes. The constructor checks structure, metadata, names and shapes of the
/// whole file and reads no tensor.
class KeyReader {
 public:
  KeyReader(const rlwe::RingContext& ring, const std::string& params_id, std::span<const u8> bytes,
            const LoadLimits& limits);
  /// The file outlives this object.
  KeyReader(const rlwe::RingContext& ring, const std::string& params_id, const InputFile& file,
            const LoadLimits& limits);

  /// Whose the keys are; none only in a file without keys.
  const SecretKeyId& secret_key_id() const { return secret_key_; }
  /// Every key, of bytes in memory; all of them are checked before any goes to the device.
  rlwe::EvaluationKeySet load_all();
  /// The keys selected, one by one through a copy that is checked: the bytes of the others are not
  /// read, and bytes that change meanwhile do not get past the checks.
  rlwe::EvaluationKeySet load(const ckks::KeySelection& selection);
  /// The same to host memory, for keys that take at most `device_bytes` of the device.
  std::map<rlwe::KeyId, rlwe::HostKey> load_to_host(const ckks::KeySelection& selection,
                                                    u64 device_bytes);

 private:
  struct Entry {
    const Tensor* half = nullptr;
    const Tensor* seed = nullptr;
    u32 digits = 1;
    rns::LimbSet limbs;
    u32 first_digit = 0, max_level = rlwe::SwitchKey::kAny;
  };
  struct Encapsulation {
    Entry dense_to_sparse, sparse_to_dense;
    std::map<u64, Entry> turned;
    u32 weight = 0;
  };

  void find_all(const std::string& params_id);
  /// Bytes of the halves that travel, of the selected keys and of the largest of them.
  struct Sizes {
    u64 count = 0, all = 0, largest = 0;
  };
  Sizes sizes(const ckks::KeySelection& selection) const;
  void expect_room(const device::Need& need) const;
  void find_galois();
  void find_aligned();
  void find_encapsulation();
  Entry find(const std::string& name, u32 digits, const rns::LimbSet& limbs);
  /// Of a relinearisation or Galois key: its shape is that of the levels which the file states.
  Entry find_switch_key(const std::string& name);
  Entry find_switch_key(const std::string& name, u32 level);
  /// Of a tensor whose name is `prefix`, the element, and what halves end with.
  u64 element_of(const Tensor& tensor, std::string_view prefix) const;
  u64 half_bytes(const Entry& entry) const;
  void check(const Entry& entry, std::span<const u8> half, std::span<const u8> seed);
  rlwe::SwitchKey upload(const Entry& entry, std::span<const u8> half, std::span<const u8> seed);
  /// The elements selected; KeyMissingError names every rotation that is not there.
  std::vector<u64> elements(const ckks::KeySelection& selection) const;
  /// visit(id, entry) for every key selected.
  template <class Visit>
  void for_selected(const ckks::KeySelection& selection, const Visit& visit) const;
  template <class Load>
  rlwe::EvaluationKeySet assemble(const ckks::KeySelection& selection, Load load) const;

  const rlwe::RingContext& ring_;
  DocumentReader file_;
  SecretKeyId secret_key_;
  std::optional<Entry> relinearisation_;
  std::map<u64, Entry> galois_;
  std::map<rlwe::KeyId, Entry> aligned_;  ///< by rlwe::plain_key()
  std::optional<Encapsulation> encapsulation_;
};

}  // namespace crenel::serialize
