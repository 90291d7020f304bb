// Objects to bytes and back: safetensors files (docs/design/0004).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "crenel/ckks/evaluator.h"
#include "crenel/core/limits.h"

namespace crenel::ckks {

/// Each returns a complete safetensors file; uniform halves travel as seeds where they still can.
std::vector<u8> to_bytes(const Params& params);
std::vector<u8> to_bytes(const Context& context, const Ciphertext& ciphertext);
/// StateError for what Client::decrypt_to_plaintext gave, unless `allow_exact`: whoever reads that
/// file and the ciphertext has the secret key.
std::vector<u8> to_bytes(const Context& context, const Plaintext& plaintext,
                         bool allow_exact = false);
std::vector<u8> to_bytes(const Context& context, const EvaluationKeys& keys);
std::vector<u8> to_bytes(const Context& context, const PublicKey& key);

/// Each validates every field against the context before touching data and throws
/// SerializationError saying what is wrong and where, also for contents that would take more memory
/// than `limits` allow. Nothing may change the bytes during the call.
Params params_from_bytes(std::span<const u8> bytes, bool allow_insecure = false,
                         const LoadLimits& limits = {});
Ciphertext ciphertext_from_bytes(const Context& context, std::span<const u8> bytes,
                                 const LoadLimits& limits = {});
Plaintext plaintext_from_bytes(const Context& context, std::span<const u8> bytes,
                               const LoadLimits& limits = {});
EvaluationKeys evaluation_keys_from_bytes(const Context& context, std::span<const u8> bytes,
                                          const LoadLimits& limits = {});
PublicKey public_key_from_bytes(const Context& context, std::span<const u8> bytes,
                                const LoadLimits& limits = {});

/// Which keys of a file to load. What a flag names is loaded when the file has it.
struct KeySelection {
  std::optional<std::vector<i64>> rotations;  ///< steps; nullopt: all that the file has
  bool relinearisation = true;
  bool conjugation = true;
  bool encapsulation = true;
};

/// The file that to_bytes makes, written key by key: peak memory is that of one key beyond the keys
/// themselves. The file takes its name when it is complete and on the disk, as write_file's do
/// (crenel/core/file.h, which states the errors).
void save_evaluation_keys(const Context& context, const EvaluationKeys& keys,
                          const std::string& path);
/// The file that to_bytes makes of Client::evaluation_keys(request), written while its keys are
/// made: one of them is in memory at a time. For clients with little memory that send keys.
class EvaluationKeyStream {
 public:
  struct State;
  /// Refuses what Client::evaluation_keys refuses, but needs room for one key only.
  EvaluationKeyStream(const Client& client, const KeyRequest& request);
  EvaluationKeyStream(EvaluationKeyStream&&) noexcept;
  EvaluationKeyStream& operator=(EvaluationKeyStream&&) noexcept;
  ~EvaluationKeyStream();

  u32 count() const;       ///< parts that next() gives: one a key, those of encapsulation in one
  u64 file_bytes() const;  ///< of the whole file
  /// Makes the next key: the bytes of the file that follow those of the one before, the first of
  /// which follow the head. Empty after the last.
  std::vector<u8> next();
  /// What the file begins with, checksums of all keys among it. StateError before the last key.
  std::vector<u8> head() const;

 private:
  std::unique_ptr<State> state_;
};

/// Reads a key file: the whole header is checked, but only the keys selected are read, checked and
/// expanded, and only they count for `limits`. KeyMissingError names every selected rotation that
/// the file lacks; SerializationError as ever, and for a file that cannot be read. A file that
/// changes meanwhile gives an error or the keys that were checked. With `staged_bytes` the keys go
/// to page-locked host memory and never need more than that of the device: EvaluationKeys::staged,
/// which states the errors.
EvaluationKeys load_evaluation_keys(const Context& context, const std::string& path,
                                    const KeySelection& selection = {},
                                    std::optional<u64> staged_bytes = {},
                                    const LoadLimits& limits = {});

}  // namespace crenel::ckks
