#include "crenel/ckks/ciphertext.h"

#include "ckks/objects.h"

namespace crenel::ckks {

Plaintext::Plaintext(std::unique_ptr<Data> data) : data_(std::move(data)) {}
Plaintext::Plaintext(Plaintext&&) noexcept = default;
Plaintext& Plaintext::operator=(Plaintext&&) noexcept = default;
Plaintext::~Plaintext() = default;
const Metadata& Plaintext::metadata() const { return data_->meta; }
const std::string& Plaintext::params_id() const { return data_->params_id; }

Ciphertext::Ciphertext(std::unique_ptr<Data> data) : data_(std::move(data)) {}
Ciphertext::Ciphertext(Ciphertext&&) noexcept = default;
Ciphertext& Ciphertext::operator=(Ciphertext&&) noexcept = default;
Ciphertext::~Ciphertext() = default;
const Metadata& Ciphertext::metadata() const { return data_->meta; }
const std::string& Ciphertext::params_id() const { return data_->params_id; }
u32 Ciphertext::components() const { return data_->poly.shape().components; }
u32 Ciphertext::batch() const { return data_->poly.shape().batch; }
u64 Ciphertext::bytes() const { return data_->poly.bytes(); }

Ciphertext Ciphertext::clone() const {
  auto copy = std::make_unique<Data>();
  copy->meta = data_->meta;
  copy->params_id = data_->params_id;
  copy->seed = data_->seed;
  copy->poly = data_->poly.clone(data_->poly.stream());
  return Ciphertext(std::move(copy));
}

}  // namespace crenel::ckks
