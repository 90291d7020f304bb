#include "serialize/secret_key_io.h"

#include <cstring>
#include <numeric>

#include "ckks/objects.h"
#include "serialize/reject.h"

namespace crenel::serialize {
namespace {

constexpr const char* kCoefficients = "coefficients";

}  // namespace

std::vector<u8> write_secret_key(std::string_view kind, const std::string& params_id,
                                 const SecretKeyId& id, std::vector<u64> shape,
                                 std::span<const i8> coefficients) {
  DocumentWriter file(kind, params_id);
  file.secret_key_id(id);
  const std::size_t tensor = file.tensor(kCoefficients, DType::u8, std::move(shape));
  file.allocate();
  std::memcpy(file.data(tensor).data(), coefficients.data(), coefficients.size());
  return file.finish();
}

SecretKeyFile read_secret_key(std::string_view kind,
                              const std::function<void(DocumentReader&)>& require_params,
                              std::span<const u64> shape, std::span<const u8> bytes) {
  const u64 count = std::accumulate(shape.begin(), shape.end(), u64{1}, std::multiplies<>());
  // A file of that many coefficients is longer than they are.
  if (bytes.size() == count)
    reject("secret key", "bare coefficients, the export of crenel before files of version 2",
           cat("a file of kind ", quote(kind), "; export the key anew"));
  DocumentReader file(bytes, kind);
  require_params(file);
  SecretKeyFile key;
  key.id = file.secret_key_id(false);
  const Tensor& tensor = file.tensor(kCoefficients, DType::u8, shape);
  file.finish();
  const std::span<const u8> data = file.data(tensor);
  key.coefficients.resize(data.size());
  std::memcpy(key.coefficients.data(), data.data(), data.size());
  return key;
}

}  // namespace crenel::serialize

namespace crenel::ckks {

using namespace serialize;

std::vector<u8> Client::export_secret_key() const {
  const auto coefficients = state_->secret.export_coefficients();
  return write_secret_key(kind::kSecretKey, context().params().id(), state_->id,
                          {coefficients.size()}, coefficients);
}

Client Client::import_secret_key(const Context& context, std::span<const u8> bytes) {
  const u64 shape[] = {context.params().ring_dim()};
  const auto require = [&](DocumentReader& file) { file.require_params(context.params().id()); };
  const auto key = read_secret_key(kind::kSecretKey, require, shape, bytes);
  return client_of(context, key.coefficients, key.id);
}

}  // namespace crenel::ckks
