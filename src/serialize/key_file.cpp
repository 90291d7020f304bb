// Evaluation keys in files of their own: written key by key, read by selection.
#include "ckks/objects.h"
#include "core/output_file.h"
#include "crenel/ckks/serialize.h"
#include "crenel/core/watch.h"
#include "rlwe/shared_keys.h"
#include "serialize/input_file.h"
#include "serialize/key_set.h"
#include "serialize/poly_io.h"

namespace crenel::ckks {

using namespace serialize;

void save_evaluation_keys(const Context& context, const EvaluationKeys& keys,
                          const std::string& path) {
  const std::string& id = context.params().id();
  if (keys.data()) require_context("evaluation keys", keys.data()->params_id, id);

  DocumentWriter document(kind::kEvaluationKeys, id);
  document.secret_key_id(keys.secret_key_id());
  const auto parts = declare_keys(document, *context.state().ring, resident_keys(keys));
  document.layout();
  OutputFile out(path, FileAccess::usual);  // no secret
  std::vector<u8> half;
  watch::Task task(parts.size() + 1, "saving keys");
  for (const auto& [key, half_index, seed_index] : parts) {
    const Tensor &t = document.laid_out(half_index), &s = document.laid_out(seed_index);
    half.resize(t.end - t.begin);
    copy_out(key->pairs, 0, half);
    out.write(t.begin, half);
    out.write(s.begin, key->seed);
    document.set_digest(half_index, half);
    document.set_digest(seed_index, key->seed);
    watch::advance();
  }
  out.write(0, document.head());  // last: until then the file is no safetensors file
  out.commit();
  task.finish();
}

EvaluationKeys load_evaluation_keys(const Context& context, const std::string& path,
                                    const KeySelection& selection, std::optional<u64> staged_bytes,
                                    const LoadLimits& limits) {
  const InputFile file(path);
  auto data = std::make_shared<EvaluationKeys::Data>();
  data->params_id = context.params().id();
  data->ring = context.state().ring;
  KeyReader reader(*data->ring, data->params_id, file, limits);
  data->secret_key = reader.secret_key_id();
  if (staged_bytes) {
    data->staged = std::make_shared<rlwe::StagedKeys>(
        data->ring, reader.load_to_host(selection, *staged_bytes), *staged_bytes);
  } else {
    data->set = reader.load(selection);
    rlwe::share_between_groups(data->set);
  }
  return EvaluationKeys(std::move(data));
}

}  // namespace crenel::ckks
