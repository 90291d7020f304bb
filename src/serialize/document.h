// A crenel file: a safetensors file with the metadata and checksums of
// docs/reference/file-format.md.
#pragma once

#include <set>
#include <string_view>

#include "crenel/core/secret_key_id.h"
#include "serialize/safetensors.h"

namespace crenel::serialize {

inline constexpr std::string_view kFormat = "crenel";
/// 2: files name their secret key, and there are files of secret keys.
inline constexpr u64 kFormatVersion = 2;

/// Kinds of files.
namespace kind {
inline constexpr std::string_view kParams = "params";
inline constexpr std::string_view kCiphertext = "ciphertext";
inline constexpr std::string_view kPlaintext = "plaintext";
inline constexpr std::string_view kEvaluationKeys = "evaluation_keys";
inline constexpr std::string_view kPublicKey = "public_key";
inline constexpr std::string_view kBridgeKeys = "bridge_keys";
inline constexpr std::string_view kSecretKey = "secret_key";
inline constexpr std::string_view kTfheSecretKey = "tfhe_secret_key";
}  // namespace kind

/// A file is either built in memory (allocate, data, finish) or streamed by its owner: layout, then
/// the bytes of each tensor with set_digest, and last of all the head.
class DocumentWriter {
 public:
  DocumentWriter(std::string_view kind, const std::string& params_id);
  DocumentWriter(const DocumentWriter&) = delete;
  DocumentWriter& operator=(const DocumentWriter&) = delete;
  /// Wipes what is left of a secret key's file.
  ~DocumentWriter();
  void secret_key_id(const SecretKeyId& id);
  void text(const std::string& name, std::string value) {
    file_.set_metadata(name, std::move(value));
  }
  void integer(const std::string& name, u64 value) { text(name, std::to_string(value)); }
  void flag(const std::string& name, bool value) { text(name, value ? "true" : "false"); }
  void real(const std::string& name, double value);
  std::size_t tensor(std::string name, DType dtype, std::vector<u64> shape);

  /// After the last declaration, before the first data().
  void allocate();
  std::span<u8> data(std::size_t index) {
    const Tensor& t = file_.tensors()[index];
    return std::span(bytes_).subspan(t.begin, t.end - t.begin);
  }
  /// Fills in the checksums.
  std::vector<u8> finish();

  /// After the last declaration.
  void layout() { file_.layout(); }
  const Tensor& laid_out(std::size_t index) const { return file_.tensors()[index]; }
  void set_digest(std::size_t index, std::span<const u8> data);
  /// What comes before the first tensor, when every digest is set.
  std::vector<u8> head();

 private:
  bool secret_;  ///< holds a secret key
  SafetensorsLayout file_;
  std::vector<u8> bytes_;
};

/// Reads what must be there and remembers it; finish() refuses whatever was not asked for.
class DocumentReader {
 public:
  /// Any number of entries along this axis.
  static constexpr u64 kAny = ~u64{0};

  /// Checks structure, format, version, header checksum and kind, in this order. `usual`: the
  /// default bound of this kind's memory.
  DocumentReader(std::span<const u8> bytes, std::string_view kind, const LoadLimits& limits = {},
                 u64 usual = LoadLimits::kArrayBytes)
      : DocumentReader(SafetensorsFile(bytes, limits.bound(usual, bytes.size())), kind,
                       limits.bound(usual, bytes.size())) {}
  DocumentReader(const InputFile& file, std::string_view kind, const LoadLimits& limits, u64 usual)
      : DocumentReader(SafetensorsFile(file, limits.bound(usual, file.size())), kind,
                       limits.bound(usual, file.size())) {}

  const SafetensorsFile& file() const { return file_; }
  const std::string& text(const std::string& name) { return entry(name).value; }
  /// A decimal integer in [low, high].
  u64 integer(const std::string& name, u64 low, u64 high);
  bool flag(const std::string& name);
  /// A positive normal double.
  double real(const std::string& name);
  /// Nothing where the file does not have it.
  std::optional<double> optional_real(const std::string& name) {
    if (!file_.metadata().contains(name)) return std::nullopt;
    return real(name);
  }
  /// Whose the object is; "none" only where `may_be_none`.
  SecretKeyId secret_key_id(bool may_be_none);
  /// Refuses the file unless it was made for these parameters.
  void require_params(const std::string& id);
  /// Refuses the value of the metadata `name`.
  [[noreturn]] void refuse(const std::string& name, const std::string& expected) const;

  bool has_tensor(const std::string& name) const { return file_.tensors().contains(name); }
  /// The tensor of this name with exactly this type and shape.
  const Tensor& tensor(const std::string& name, DType dtype, std::span<const u64> shape);
  const Tensor& tensor(const std::string& name, DType dtype, std::initializer_list<u64> shape) {
    return tensor(name, dtype, std::span(shape.begin(), shape.size()));
  }
  std::span<const u8> data(const Tensor& t) const { return file_.data(t); }
  void copy_data(const Tensor& t, std::span<u8> to) const { file_.copy_data(t, to); }
  /// Refuses the file when what its fields describe takes more memory than allowed. After the
  /// shapes were checked (they bound the numbers), and before any of that memory is taken.
  void require_memory(u64 bytes) const;
  /// No unknown metadata, no unknown tensor, a checksum for each: tensors themselves are not read.
  void check_names();
  /// `data` are the bytes of `t`, in the file or copied from it.
  void check_digest(const Tensor& t, std::span<const u8> data);
  /// check_names, and every checksum right.
  void finish();

 private:
  DocumentReader(SafetensorsFile file, std::string_view kind, u64 max_bytes);
  const JsonString& entry(const std::string& name);
  void check_version();
  void check_header_digest();
  /// "SHA-256 ...", but of a secret key's file no more than that it is another.
  std::string shown(const std::string& digest) const;

  SafetensorsFile file_;
  std::string kind_;
  bool secret_;
  u64 max_bytes_;
  std::set<std::string> used_metadata_, used_tensors_;
};

}  // namespace crenel::serialize
