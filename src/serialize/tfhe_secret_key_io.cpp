// Secret keys of TFHE to files and back.
#include "serialize/secret_key_io.h"
#include "serialize/tfhe_io.h"
#include "tfhe/objects.h"

namespace crenel::tfhe {

using namespace serialize;

std::vector<u8> Client::export_secret_key() const {
  const auto& plan = state_->context.state().plan;
  return write_secret_key(kind::kTfheSecretKey, context().params().id(), state_->id,
                          {plan.slots, SecretKeys::slot_words(plan)},
                          state_->secret.coefficients());
}

Client Client::import_secret_key(const Context& context, std::span<const u8> bytes) {
  const auto& home = context.state();
  const u64 shape[] = {home.plan.slots, SecretKeys::slot_words(home.plan)};
  const auto require = [&](DocumentReader& file) { require_set(file, context.params()); };
  const auto key = read_secret_key(kind::kTfheSecretKey, require, shape, bytes);
  return Client(
      std::make_shared<State>(State{context,
                                    SecretKeys(home.plan, *home.stream, *home.poly,
                                               random::SecretSource::from_os(), key.coefficients),
                                    key.id}));
}

}  // namespace crenel::tfhe
