#include "serialize/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "serialize/reject.h"

namespace crenel::serialize {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensors are copied as they lie in memory");

constexpr DType kTypes[] = {DType::u8, DType::u32, DType::u64};

std::string where_tensor(std::string_view name) { return "tensor " + quote(name); }

/// Bytes of a tensor, or nothing when they do not fit 64 bits.
std::optional<u64> byte_count(DType dtype, std::span<const u64> shape) {
  u64 bytes = size_of(dtype);
  for (const u64 extent : shape)
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  return bytes;
}

/// A tree node weighs much more than the few bytes of a short entry: this bounds the memory a
/// header of 16 MiB can claim to some 100 MB.
constexpr std::size_t kMaxEntries = std::size_t{1} << 19;

void check_count(std::size_t count, const JsonString& next) {
  if (count == kMaxEntries)
    reject("header", "more entries", cat("at most ", kMaxEntries), next.offset);
}

struct EntryFields {
  DType dtype = DType::u8;
  std::vector<u64> shape, range;
};

/// The object that describes one tensor: each of its three members exactly once.
class EntryReader {
 public:
  EntryReader(JsonReader& json, const JsonString& name)
      : json_(json), name_(name), where_(where_tensor(name.value)) {}

  EntryFields read() {
    json_.open_object();
    for (JsonString key; json_.next_member(key);) {
      if (std::find(seen_.begin(), seen_.end(), key.value) != seen_.end())
        reject(where_, quote(key.value) + " twice", "unique names", key.offset);
      member(key);
      seen_.push_back(key.value);
    }
    if (seen_.size() != 3 || fields_.range.size() != 2)
      reject(where_, "an incomplete entry", "dtype, shape and two data_offsets", name_.offset);
    return std::move(fields_);
  }

 private:
  static constexpr std::size_t kMaxRank = 8;

  void member(const JsonString& key) {
    if (key.value == "dtype")
      read_dtype();
    else if (key.value == "shape")
      read_numbers(fields_.shape, kMaxRank);
    else if (key.value == "data_offsets")
      read_numbers(fields_.range, 2);
    else
      reject(where_, quote(key.value), "dtype, shape and data_offsets only", key.offset);
  }

  void read_dtype() {
    const JsonString text = json_.string();
    const auto* type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                    [&](DType d) { return text.value == to_string(d); });
    if (type == std::end(kTypes))
      reject(where_ + " dtype", quote(text.value), "U8, U32 or U64", text.offset);
    fields_.dtype = *type;
  }

  void read_numbers(std::vector<u64>& out, std::size_t most) {
    json_.open_array();
    while (json_.next_element()) {
      if (out.size() == most)
        reject(where_, "more numbers", cat("at most ", most, " numbers"), json_.offset());
      out.push_back(json_.integer());
    }
  }

  JsonReader& json_;
  const JsonString& name_;
  std::string where_;
  EntryFields fields_;
  std::vector<std::string> seen_;
};

}  // namespace

const char* to_string(DType dtype) {
  return dtype == DType::u8 ? "U8" : dtype == DType::u32 ? "U32" : "U64";
}

u64 size_of(DType dtype) { return dtype == DType::u8 ? 1 : dtype == DType::u32 ? 4 : 8; }

std::string shape_text(std::span<const u64> shape) {
  std::string out = "[";
  for (const u64 extent : shape) out += (out.size() > 1 ? ", " : "") + std::to_string(extent);
  return out + "]";
}

SafetensorsFile::SafetensorsFile(std::span<const u8> bytes, u64 max_bytes)
    : bytes_(bytes), file_bytes_(bytes.size()) {
  read_all(max_bytes);
}

SafetensorsFile::SafetensorsFile(const InputFile& file, u64 max_bytes)
    : file_(&file), file_bytes_(file.size()) {
  read_all(max_bytes);
}

void SafetensorsFile::read(u64 at, std::span<u8> to) const {
  if (file_)
    file_->read(at, to);
  else if (!to.empty())
    std::memcpy(to.data(), bytes_.data() + at, to.size());
}

void SafetensorsFile::copy_data(const Tensor& t, std::span<u8> to) const { read(t.begin, to); }

void SafetensorsFile::read_all(u64 max_bytes) {
  read_length(max_bytes);
  header_.resize(header_bytes_);
  read(8, header_);
  read_header();
  check_coverage();
}

void SafetensorsFile::read_length(u64 max_bytes) {
  if (file_bytes_ < 8)
    reject("header length", cat("a file of ", file_bytes_, " bytes"), "at least 8 bytes", 0);
  u8 length[8];
  read(0, length);
  std::memcpy(&header_bytes_, length, 8);
  if (header_bytes_ > kMaxHeaderBytes)
    reject("header length", cat(header_bytes_), cat("at most ", kMaxHeaderBytes), 0);
  if (header_bytes_ > file_bytes_ - 8)
    reject("header length", cat(header_bytes_),
           cat("at most the ", file_bytes_ - 8, " bytes that follow (is the file truncated?)"), 0);
  if (header_bytes_ % 8 != 0) reject("header length", cat(header_bytes_), "a multiple of 8", 0);
  const u64 tables = kHeaderFactor * header_bytes_;
  if (tables > std::max(max_bytes, LoadLimits::kReadHeader)) reject_header(tables, max_bytes);
}

void SafetensorsFile::read_header() {
  JsonReader json(header(), 8);
  if (header().empty() || header()[0] != '{')
    reject(
        "header",
        header().empty() ? "nothing" : quote({reinterpret_cast<const char*>(header().data()), 1}),
        "'{' as the first byte", 8);
  json.open_object();
  bool have_metadata = false;
  for (JsonString name; json.next_member(name);) {
    if (name.value == "__metadata__") {
      if (have_metadata) reject("header", "__metadata__ twice", "unique names", name.offset);
      have_metadata = true;
      read_metadata(json);
      continue;
    }
    check_count(tensors_.size(), name);
    Tensor tensor = read_tensor(json, name);
    if (!tensors_.emplace(name.value, std::move(tensor)).second)
      reject(where_tensor(name.value), "the name twice", "unique names", name.offset);
  }
  json.finish();
  if (!have_metadata) reject("header", "no __metadata__", "__metadata__ of a crenel file", 8);
}

void SafetensorsFile::read_metadata(JsonReader& json) {
  json.open_object();
  for (JsonString key; json.next_member(key);) {
    JsonString value = json.string();
    check_count(metadata_.size(), key);
    if (!metadata_.emplace(key.value, std::move(value)).second)
      reject("__metadata__ " + quote(key.value), "the name twice", "unique names", key.offset);
  }
}

Tensor SafetensorsFile::read_tensor(JsonReader& json, const JsonString& name) const {
  const EntryFields fields = EntryReader(json, name).read();
  const std::string where = where_tensor(name.value) + " data_offsets";
  const auto& range = fields.range;
  const u64 payload_begin = 8 + header_bytes_, payload = file_bytes_ - payload_begin;
  if (range[0] > range[1] || range[1] > payload)
    reject(where, shape_text(range),
           cat("an ordered range in a payload of ", payload, " bytes (is the file truncated?)"),
           name.offset);
  const auto bytes = byte_count(fields.dtype, fields.shape);
  if (!bytes || *bytes != range[1] - range[0])
    reject(where, cat(range[1] - range[0], " bytes"),
           cat(bytes ? std::to_string(*bytes) : "more than 2^64", " bytes for ",
               to_string(fields.dtype), " ", shape_text(fields.shape)),
           name.offset);
  return {
      name.value, fields.dtype, fields.shape, payload_begin + range[0], payload_begin + range[1],
      name.offset};
}

void SafetensorsFile::check_coverage() const {
  std::vector<const Tensor*> order;
  for (const auto& [name, tensor] : tensors_) order.push_back(&tensor);
  // An empty tensor shares its offset with its successor and must come first.
  std::sort(order.begin(), order.end(), [](const Tensor* a, const Tensor* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end < b->end;
  });
  u64 at = 8 + header_bytes_;
  for (const Tensor* t : order) {
    if (t->begin != at)
      reject(where_tensor(t->name) + " data_offsets",
             cat("data from byte ", t->begin, " of the file"),
             cat("byte ", at, ": tensors neither overlap nor leave holes"), t->offset);
    at = t->end;
  }
  if (at != file_bytes_)
    reject("file", cat(file_bytes_, " bytes"),
           cat(at, " bytes: nothing may follow the last tensor"), at);
}

std::size_t SafetensorsLayout::add_tensor(std::string name, DType dtype, std::vector<u64> shape) {
  const u64 begin = tensors_.empty() ? 0 : tensors_.back().end;
  const auto bytes = byte_count(dtype, shape);
  if (!bytes) throw SerializationError(cat("tensor ", name, " is larger than 2^64 bytes"));
  tensors_.push_back({std::move(name), dtype, std::move(shape), begin, begin + *bytes, 0});
  return tensors_.size() - 1;
}

std::string SafetensorsLayout::header_text(u64 payload_begin) const {
  std::map<std::string, std::string> members;  // sorted: equal objects give equal files
  for (const Tensor& t : tensors_)
    members[t.name] =
        cat("{\"data_offsets\":[", t.begin - payload_begin, ",", t.end - payload_begin,
            "],\"dtype\":\"", to_string(t.dtype), "\",\"shape\":", shape_text(t.shape), "}");
  std::string meta = "{";
  for (const auto& [name, value] : metadata_) {
    if (find_invalid_utf8(value) != std::string::npos)
      throw SerializationError(
          cat("cannot save ", name, ": found ", quote(value), ", expected UTF-8 text"),
          {{"where", name}, {"found", quote(value)}, {"expected", "UTF-8 text"}});
    meta += (meta.size() > 1 ? "," : "") + json_quote(name) + ":" + json_quote(value);
  }
  members["__metadata__"] = meta + "}";
  std::string text = "{";
  for (const auto& [name, value] : members)
    text += (text.size() > 1 ? "," : "") + json_quote(name) + ":" + value;
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > kMaxHeaderBytes)
    throw SerializationError(cat("cannot save: the header has ", text.size(), " bytes, at most ",
                                 kMaxHeaderBytes, " are allowed"));
  return text;
}

void SafetensorsLayout::layout() {
  payload_begin_ = 8 + header_text(0).size();
  for (Tensor& t : tensors_) {
    t.begin += payload_begin_;
    t.end += payload_begin_;
  }
}

std::vector<u8> SafetensorsLayout::head() const {
  const std::string text = header_text(payload_begin_);
  const u64 length = payload_begin_ - 8;
  if (text.size() != length) throw SerializationError("internal: the header changed its length");
  std::vector<u8> bytes(payload_begin_);
  std::memcpy(bytes.data(), &length, 8);
  std::memcpy(bytes.data() + 8, text.data(), length);
  return bytes;
}

}  // namespace crenel::serialize
