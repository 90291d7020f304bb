// The fuzzers: one program a target, each of which also runs in the corpus test.
#pragma once

#include <functional>
#include <map>

#include "fuzz/tfhe_entry.h"
#include "fuzz/worlds.h"

namespace crenel::test {

using Bytes = std::vector<u8>;

struct FuzzTarget {
  std::string name;
  /// Returns for bytes that load and for bytes that are refused as they should be; anything else
  /// is a crash.
  std::function<void(std::span<const u8>)> run;
  /// Valid files under the names that their bytes get in the first corpus.
  std::function<std::map<std::string, Bytes>()> seeds;
};

/// json, safetensors and scalars.
std::vector<FuzzTarget> container_targets();
/// ckks_params, ckks_ciphertext, ckks_plaintext, ckks_public_key, ckks_evaluation_keys,
/// ckks_key_file, ckks_secret_key, ckks_operations.
std::vector<FuzzTarget> ckks_targets();
/// tfhe_params, tfhe_ciphertext, tfhe_integers, tfhe_evaluation_keys, tfhe_secret_key,
/// tfhe_operations.
std::vector<FuzzTarget> tfhe_targets();

inline const std::vector<FuzzTarget>& fuzz_targets() {
  static const std::vector<FuzzTarget> all = [] {
    std::vector<FuzzTarget> targets = container_targets();
    for (auto& target : ckks_targets()) targets.push_back(std::move(target));
    for (auto& target : tfhe_targets()) targets.push_back(std::move(target));
    return targets;
  }();
  return all;
}

/// run(bytes) and, where the checksums are wrong and the container is not, run(the same resealed).
template <class Run>
void with_reseal(std::span<const u8> bytes, const Run& run) {
  run(bytes);
  const Bytes sealed = reseal(bytes);
  if (!sealed.empty() && !std::equal(sealed.begin(), sealed.end(), bytes.begin(), bytes.end()))
    run(sealed);
}

/// What an honest caller sees at worst: one of the library's errors.
template <class Operation>
void allow_errors(const Operation& operation) {
  try {
    operation();
  } catch (const Error& error) {
    if (std::string(error.what()).empty()) throw std::logic_error("an error without a message");
  }
}

/// Imports a secret key: what it accepts, it exports again. Exports may differ in how they say the
/// same key, so that of the second import must be that of the first.
template <class Context, class Import>
void run_secret_loader(std::span<const u8> bytes, const Context& context, const Import& import) {
  try {
    const Bytes once = import(context, bytes).export_secret_key();
    if (import(context, once).export_secret_key() != once)
      throw std::logic_error("a secret key that changes when it is imported");
    ++accepted_loads();
  } catch (const SerializationError&) {
  }
}

/// Memory that a fuzzer's loads may take: enough for every seed, and no mutation waits for more.
inline constexpr LoadLimits kFuzzLimits{u64{8} << 20};

}  // namespace crenel::test
