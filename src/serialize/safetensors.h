// The safetensors container: 8-byte header length, JSON header, contiguous little-endian tensors.
// Nothing here knows what the tensors mean.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "crenel/core/limits.h"
#include "serialize/input_file.h"
#include "serialize/json.h"

namespace crenel::serialize {

inline constexpr u64 kMaxHeaderBytes = u64{16} << 20;

enum class DType : u8 { u8, u32, u64 };
const char* to_string(DType dtype);
u64 size_of(DType dtype);

struct Tensor {
  std::string name;
  DType dtype = DType::u8;
  std::vector<u64> shape;
  u64 begin = 0;   ///< first byte of the file
  u64 end = 0;     ///< one past the last byte of the file
  u64 offset = 0;  ///< of the entry in the header, for messages
};

/// "[2, 5, 1024]"
std::string shape_text(std::span<const u64> shape);

/// Memory that the tables of a header take at most, for each of its bytes: its copy, and a tree
/// node of 128 bytes for a shortest entry, `"a":"",`, of seven.
inline constexpr u64 kHeaderFactor = 24;

/// A file whose structure was checked: header length, UTF-8, JSON, no duplicate names, known
/// dtypes, byte ranges that match the shapes and cover the payload exactly. Holds a copy of the
/// header, so that what was checked is what is used, and none of the payload.
class SafetensorsFile {
 public:
  /// Refuses a header that would take more than `max_bytes`, and than LoadLimits::kReadHeader,
  /// before it is copied. The bytes must stay as they are while this object and what is loaded from
  /// it are being made.
  explicit SafetensorsFile(std::span<const u8> bytes, u64 max_bytes = LoadLimits::kArrayBytes);
  /// Reads the header only. The file outlives this object.
  explicit SafetensorsFile(const InputFile& file, u64 max_bytes = LoadLimits::kArrayBytes);

  u64 file_bytes() const { return file_bytes_; }
  std::span<const u8> header() const { return header_; }
  const std::map<std::string, JsonString>& metadata() const { return metadata_; }
  const std::map<std::string, Tensor>& tensors() const { return tensors_; }
  /// Of a file in memory.
  std::span<const u8> data(const Tensor& t) const {
    return bytes_.subspan(t.begin, t.end - t.begin);
  }
  /// Bytes of a tensor, from memory or from the file.
  void copy_data(const Tensor& t, std::span<u8> to) const;

 private:
  void read(u64 at, std::span<u8> to) const;
  void read_all(u64 max_bytes);
  void read_length(u64 max_bytes);
  void read_header();
  void read_metadata(JsonReader& json);
  Tensor read_tensor(JsonReader& json, const JsonString& name) const;
  void check_coverage() const;

  std::span<const u8> bytes_;
  const InputFile* file_ = nullptr;
  u64 file_bytes_ = 0, header_bytes_ = 0;
  std::vector<u8> header_;
  std::map<std::string, JsonString> metadata_;
  std::map<std::string, Tensor> tensors_;
};

/// Lays a file out. Metadata and tensors are declared first; layout() fixes every offset; after
/// that only equally long metadata may replace old. The bytes of the tensors are its owner's.
class SafetensorsLayout {
 public:
  void set_metadata(const std::string& name, std::string value) {
    metadata_[name] = std::move(value);
  }
  /// Tensors lie in the file in the order of declaration. Returns the tensor's index.
  std::size_t add_tensor(std::string name, DType dtype, std::vector<u64> shape);
  void layout();
  const std::vector<Tensor>& tensors() const { return tensors_; }
  u64 payload_begin() const { return payload_begin_; }
  u64 file_bytes() const { return tensors_.empty() ? payload_begin_ : tensors_.back().end; }
  /// The first payload_begin() bytes of the file: header length, and the header with the present
  /// metadata.
  std::vector<u8> head() const;

 private:
  std::string header_text(u64 payload_begin) const;

  std::map<std::string, std::string> metadata_;
  std::vector<Tensor> tensors_;
  u64 payload_begin_ = 0;
};

}  // namespace crenel::serialize
