// Evaluation keys in files of their own: written key by key, read by memory map.
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "ckks/objects.h"
#include "crenel/ckks/serialize.h"
#include "serialize/key_set.h"
#include "serialize/mapped_file.h"
#include "serialize/poly_io.h"
#include "serialize/reject.h"

namespace crenel::ckks {
namespace {

using namespace serialize;

/// A file that appears under its name when it is complete, replacing an older one: readers that
/// mapped that keep it.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path) : path_(path), partial_(path + ".partial") {
    errno = 0;
    file_.open(partial_, std::ios::binary | std::ios::trunc);
    check();
  }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile() {
    if (committed_) return;
    file_.close();
    std::error_code ignored;
    std::filesystem::remove(partial_, ignored);
  }

  void write(u64 at, std::span<const u8> bytes) {
    file_.seekp(static_cast<std::streamoff>(at));
    file_.write(reinterpret_cast<const char*>(bytes.data()),
                static_cast<std::streamsize>(bytes.size()));
    check();
  }
  void commit() {
    file_.close();
    check();
    std::error_code error;
    std::filesystem::rename(partial_, path_, error);
    if (error) fail(error.message());
    committed_ = true;
  }

 private:
  void check() {
    if (!file_) fail(errno ? std::generic_category().message(errno) : "a write that failed");
  }
  [[noreturn]] void fail(const std::string& found) const {
    throw SerializationError(cat("cannot save the file '", path_, "': found ", found,
                                 ", expected a file that can be written"),
                             {{"where", "file '" + path_ + "'"},
                              {"found", found},
                              {"expected", "a file that can be written"}});
  }

  std::string path_, partial_;
  std::ofstream file_;
  bool committed_ = false;
};

}  // namespace

void save_evaluation_keys(const Context& context, const EvaluationKeys& keys,
                          const std::string& path) {
  const std::string& id = context.params().id();
  if (keys.data()) require_context("evaluation keys", keys.data()->params_id, id);

  DocumentWriter document(kind::kEvaluationKeys, id);
  document.secret_key_id(keys.secret_key_id());
  const auto parts = declare_keys(document, *context.state().ring, resident_keys(keys));
  document.layout();
  OutputFile out(path);
  std::vector<u8> half;
  for (const auto& [key, half_index, seed_index] : parts) {
    const Tensor &t = document.laid_out(half_index), &s = document.laid_out(seed_index);
    half.resize(t.end - t.begin);
    copy_out(key->pairs, 0, half);
    out.write(t.begin, half);
    out.write(s.begin, key->seed);
    document.set_digest(half_index, half);
    document.set_digest(seed_index, key->seed);
  }
  out.write(0, document.head());  // last: until then the file is no safetensors file
  out.commit();
}

EvaluationKeys load_evaluation_keys(const Context& context, const std::string& path,
                                    const KeySelection& selection,
                                    std::optional<u64> staged_bytes) {
  const MappedFile file(path);
  auto data = std::make_shared<EvaluationKeys::Data>();
  data->params_id = context.params().id();
  data->ring = context.state().ring;
  KeyReader reader(*data->ring, data->params_id, file.bytes());
  data->secret_key = reader.secret_key_id();
  if (staged_bytes)
    data->staged = std::make_shared<rlwe::StagedKeys>(data->ring, reader.load_to_host(selection),
                                                      *staged_bytes);
  else
    data->set = reader.load(selection);
  return EvaluationKeys(std::move(data));
}

}  // namespace crenel::ckks
