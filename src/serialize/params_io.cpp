// Parameters to files and back: the numbers of the Spec, checked again when loaded.
#include <cstring>

#include "crenel/ckks/serialize.h"
#include "serialize/document.h"
#include "serialize/reject.h"

namespace crenel::ckks {
namespace {

using namespace serialize;

constexpr u64 kMaxU32 = ~u32{0};
/// As in ckks/params/validate.cpp, but before anything is allocated.
constexpr u64 kMaxLevels = 256;

/// Bytes of the transforms' tables of a context: for either direction a root and its companion for
/// every coefficient of every prime.
u64 table_bytes(const Spec& spec) {
  const u64 primes = spec.main.size() + spec.terminal.size() + spec.auxiliary.size();
  return (primes << spec.log_n) * 2 * 2 * sizeof(u32);
}

void fill(std::span<u8> to, const void* from) {
  if (!to.empty()) std::memcpy(to.data(), from, to.size());
}

std::vector<u64> read_primes(DocumentReader& file, const std::string& name) {
  const Tensor& tensor = file.tensor(name, DType::u64, {DocumentReader::kAny});
  if (tensor.shape[0] > kMaxLimbs)
    reject("tensor " + quote(name), shape_text(tensor.shape), cat("at most ", kMaxLimbs, " primes"),
           tensor.offset);
  std::vector<u64> primes(tensor.shape[0]);
  const auto bytes = file.data(tensor);
  if (!bytes.empty()) std::memcpy(primes.data(), bytes.data(), bytes.size());
  for (std::size_t i = 0; i < primes.size(); ++i)
    if (primes[i] < kPrimeMin || primes[i] >= kPrimeMax)
      reject("tensor " + quote(name), cat(primes[i]),
             cat("primes in [", kPrimeMin, ", ", kPrimeMax, ")"), tensor.begin + 8 * i);
  return primes;
}

std::vector<LevelModulus> read_levels(DocumentReader& file) {
  const Tensor& tensor = file.tensor("levels", DType::u32, {DocumentReader::kAny, 2});
  if (tensor.shape[0] > kMaxLevels)
    reject("tensor 'levels'", shape_text(tensor.shape), cat("at most ", kMaxLevels, " levels"),
           tensor.offset);
  std::vector<LevelModulus> levels(tensor.shape[0]);
  const u8* at = file.data(tensor).data();
  for (auto& level : levels) {
    std::memcpy(&level.main, at, 4);
    std::memcpy(&level.terminal, at + 4, 4);
    at += 8;
  }
  return levels;
}

Spec read_spec(DocumentReader& file) {
  Spec spec;
  spec.name = file.text("name");
  spec.provenance = file.text("provenance");
  spec.log_n = static_cast<u32>(file.integer("log_n", 10, 17));
  spec.log_scale = static_cast<u32>(file.integer("log_scale", 1, kMaxU32));
  spec.normal_top_level = static_cast<u32>(file.integer("normal_top_level", 0, kMaxU32));
  spec.hamming_weight = static_cast<u32>(file.integer("hamming_weight", 0, kMaxU32));
  spec.main = read_primes(file, "main");
  spec.terminal = read_primes(file, "terminal");
  spec.auxiliary = read_primes(file, "auxiliary");
  spec.levels = read_levels(file);
  return spec;
}

Params checked(Spec spec, bool allow_insecure) {
  try {
    return Params::from_spec(std::move(spec), allow_insecure);
  } catch (const ParameterError& error) {
    std::vector<ErrorField> fields{
        {"where", "params"}, {"found", error.what()}, {"expected", "a valid parameter set"}};
    fields.insert(fields.end(), error.fields().begin(), error.fields().end());
    throw SerializationError(cat("cannot load params: ", error.what()), std::move(fields));
  }
}

}  // namespace

std::vector<u8> to_bytes(const Params& params) {
  const Spec& spec = params.spec();
  DocumentWriter file(kind::kParams, params.id());
  file.text("name", spec.name);
  file.text("provenance", spec.provenance);
  file.integer("log_n", spec.log_n);
  file.integer("log_scale", spec.log_scale);
  file.integer("normal_top_level", spec.normal_top_level);
  file.integer("hamming_weight", spec.hamming_weight);
  const std::size_t main = file.tensor("main", DType::u64, {spec.main.size()});
  const std::size_t terminal = file.tensor("terminal", DType::u64, {spec.terminal.size()});
  const std::size_t auxiliary = file.tensor("auxiliary", DType::u64, {spec.auxiliary.size()});
  const std::size_t levels = file.tensor("levels", DType::u32, {spec.levels.size(), 2});
  file.allocate();
  fill(file.data(main), spec.main.data());
  fill(file.data(terminal), spec.terminal.data());
  fill(file.data(auxiliary), spec.auxiliary.data());
  static_assert(sizeof(LevelModulus) == 8, "levels are written as pairs of words");
  fill(file.data(levels), spec.levels.data());
  return file.finish();
}

Params params_from_bytes(std::span<const u8> bytes, bool allow_insecure, const LoadLimits& limits) {
  DocumentReader file(bytes, kind::kParams, limits);
  Spec spec = read_spec(file);
  file.require_memory(table_bytes(spec));
  file.text("params_id");  // compared when the parameters are known
  file.finish();
  Params params = checked(std::move(spec), allow_insecure);
  file.require_params(params.id());
  return params;
}

}  // namespace crenel::ckks
