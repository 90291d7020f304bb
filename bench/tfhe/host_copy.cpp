// Transfers are timed on the payloads themselves, not through files with checksums: this file alone
// of the suite sees what is inside a ciphertext.
#include "tfhe/host_copy.h"

#include "tfhe/host_words.h"
#include "tfhe/objects.h"

namespace crenel::bench {

struct HostCopy::State {
  std::vector<const tfhe::Ciphertext::Data*> models;
  std::vector<HostWords> words, results;
  bool lock = false;
};

HostCopy::HostCopy(const Operation::Inputs& inputs, bool lock) : state_(new State) {
  state_->lock = lock;
  for (const tfhe::Ciphertext* input : inputs) {
    const auto& data = input->data();
    state_->models.push_back(&data);
    state_->words.emplace_back(data.bytes() / sizeof(u32), lock);
    data.payload.stream()->copy_out(state_->words.back().data(), data.payload.data(), data.bytes());
  }
}

HostCopy::~HostCopy() = default;

void HostCopy::call(const Operation& op, const tfhe::Evaluator& ev) {
  auto& words = state_->words;
  std::vector<tfhe::Ciphertext> inputs;
  Operation::Inputs pointers;
  inputs.reserve(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    auto data = state_->models[i]->like();
    auto& stream = *state_->models[i]->payload.stream();
    data->payload = stream.allocate(data->bytes());
    stream.copy_in(data->payload.data(), words[i].data(), data->bytes());
    inputs.emplace_back(std::move(data));
    pointers.push_back(&inputs.back());
  }
  const auto outputs = op.run(ev, pointers);
  auto& results = state_->results;
  for (std::size_t j = 0; j < outputs.size(); ++j) {
    const auto& data = outputs[j].data();
    if (j == results.size()) results.emplace_back(data.bytes() / sizeof(u32), state_->lock);
    data.payload.stream()->copy_out(results[j].data(), data.payload.data(), data.bytes());
  }
}

double HostCopy::bytes() const {
  u64 total = 0;
  for (const auto& w : state_->words) total += w.bytes();
  for (const auto& r : state_->results) total += r.bytes();
  return static_cast<double>(total);
}

bool HostCopy::locked() const { return state_->words.front().locked(); }

}  // namespace crenel::bench
