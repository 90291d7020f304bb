#include "serialize/document.h"

#include <algorithm>
#include <cstring>

#include "core/sha256.h"
#include "crenel/core/host_memory.h"
#include "crenel/core/version.h"
#include "crenel/core/watch.h"
#include "random/seed.h"
#include "serialize/reject.h"
#include "serialize/scalars.h"

namespace crenel::serialize {
namespace {

constexpr std::size_t kDigestDigits = 64;
constexpr const char* kHeaderDigest = "header_sha256";
constexpr const char* kSecretKeyId = "secret_key_id";

std::string no_digest() { return std::string(kDigestDigits, '0'); }

std::string digest_name(const std::string& tensor) { return "sha256:" + tensor; }
std::string where_metadata(const std::string& name) { return "__metadata__ " + quote(name); }

bool is_secret(std::string_view kind) {
  return kind == kind::kSecretKey || kind == kind::kTfheSecretKey;
}

/// Digits of the SHA-256 of bytes that may be secret: the hash's memory is wiped.
std::string digest_of(std::span<const u8> data) {
  Sha256 hash;
  const random::WipeOnExit wipe(&hash, sizeof hash);
  constexpr std::size_t kPiece = std::size_t(1) << 20;
  for (std::size_t at = 0; at < data.size(); at += kPiece) {
    watch::point();
    hash.update(data.subspan(at, std::min(kPiece, data.size() - at)));
  }
  return hex(hash.finish());
}

/// SHA-256 of the header with the digits of its own digest, at `at`, replaced by '0'.
std::string header_digest(std::span<const u8> header, std::size_t at) {
  Sha256 hash;
  hash.update(header.first(at));
  const std::vector<u8> zeros(kDigestDigits, '0');
  hash.update(zeros);
  hash.update(header.subspan(at + kDigestDigits));
  return hex(hash.finish());
}

}  // namespace

DocumentWriter::DocumentWriter(std::string_view kind, const std::string& params_id)
    : secret_(is_secret(kind)) {
  text("format", std::string(kFormat));
  integer("format_version", kFormatVersion);
  text("library_version", version());
  text("kind", std::string(kind));
  text("params_id", params_id);
  text(kHeaderDigest, no_digest());
}

DocumentWriter::~DocumentWriter() {
  if (secret_) random::secure_zero(bytes_.data(), bytes_.size());
}

void DocumentWriter::secret_key_id(const SecretKeyId& id) { text(kSecretKeyId, id.text()); }

void DocumentWriter::real(const std::string& name, double value) { text(name, format_real(value)); }

std::size_t DocumentWriter::tensor(std::string name, DType dtype, std::vector<u64> shape) {
  text(digest_name(name), no_digest());
  return file_.add_tensor(std::move(name), dtype, std::move(shape));
}

void DocumentWriter::allocate() {
  layout();
  expect_host_memory(file_.file_bytes(), "a file in memory");
  bytes_.resize(file_.file_bytes());
}

void DocumentWriter::set_digest(std::size_t index, std::span<const u8> data) {
  text(digest_name(file_.tensors()[index].name), digest_of(data));
}

std::vector<u8> DocumentWriter::head() {
  std::vector<u8> bytes = file_.head();
  const std::span<u8> header = std::span(bytes).subspan(8);
  // The only run of 64 zeros that follows this key: values never contain an unescaped quote.
  const std::string key = cat("\"", kHeaderDigest, "\":\"");
  const std::string_view text(reinterpret_cast<const char*>(header.data()), header.size());
  const std::size_t at = text.find(key) + key.size();
  const std::string digest = header_digest(header, at);
  std::memcpy(header.data() + at, digest.data(), digest.size());
  return bytes;
}

std::vector<u8> DocumentWriter::finish() {
  for (std::size_t i = 0; i < file_.tensors().size(); ++i) set_digest(i, data(i));
  const std::vector<u8> start = head();
  std::copy(start.begin(), start.end(), bytes_.begin());
  return std::move(bytes_);
}

DocumentReader::DocumentReader(SafetensorsFile file, std::string_view kind, u64 max_bytes)
    : file_(std::move(file)), kind_(kind), secret_(is_secret(kind)), max_bytes_(max_bytes) {
  check_version();
  check_header_digest();
  const std::string& found = text("kind");
  if (found != kind) reject("kind", quote(found), quote(kind), file_.metadata().at("kind").offset);
  text("library_version");  // for people
}

void DocumentReader::check_version() {
  if (text("format") != kFormat) refuse("format", quote(kFormat));
  const u64 found = integer("format_version", 1, ~u64{0});
  if (found < kFormatVersion)
    reject(
        "format_version",
        cat(found, " (an older library wrote this file; it does not name its secret key)"),
        cat(kFormatVersion, ", which is what crenel ", version(), " reads; make the object anew"),
        file_.metadata().at("format_version").offset);
  if (found > kFormatVersion)
    reject("format_version", cat(found, " (a newer library wrote this file)"),
           cat(kFormatVersion, ", which is what crenel ", version(), " reads"),
           file_.metadata().at("format_version").offset);
}

void DocumentReader::check_header_digest() {
  const JsonString& stored = entry(kHeaderDigest);
  if (!stored.plain || stored.value.size() != kDigestDigits)
    refuse(kHeaderDigest, cat(kDigestDigits, " hexadecimal digits"));
  const std::string actual = header_digest(file_.header(), stored.offset - 8);
  if (actual != stored.value)
    reject("header checksum", shown(actual), shown(stored.value) + " as the file says (corrupted?)",
           stored.offset);
}

void DocumentReader::require_memory(u64 bytes) const {
  u64 needed = 0;
  if (__builtin_add_overflow(bytes, kHeaderFactor * file_.header().size(), &needed))
    needed = ~u64{0};
  if (needed > max_bytes_) reject_contents(kind_, needed, max_bytes_);
}

const JsonString& DocumentReader::entry(const std::string& name) {
  const auto found = file_.metadata().find(name);
  if (found == file_.metadata().end()) reject(where_metadata(name), "nothing", "a value", 8);
  used_metadata_.insert(name);
  return found->second;
}

void DocumentReader::refuse(const std::string& name, const std::string& expected) const {
  const JsonString& value = file_.metadata().at(name);
  reject(where_metadata(name), quote(value.value), expected, value.offset);
}

u64 DocumentReader::integer(const std::string& name, u64 low, u64 high) {
  const auto value = parse_integer(entry(name).value);
  if (!value || *value < low || *value > high)
    refuse(name, cat("an integer in [", low, ", ", high, "]"));
  return *value;
}

bool DocumentReader::flag(const std::string& name) {
  const std::string& value = entry(name).value;
  if (value != "true" && value != "false") refuse(name, "'true' or 'false'");
  return value == "true";
}

double DocumentReader::real(const std::string& name) {
  const auto value = parse_real(entry(name).value);
  if (!value) refuse(name, "a positive hexadecimal floating number like '0x1.8p+40'");
  return *value;
}

std::string DocumentReader::shown(const std::string& digest) const {
  return secret_ ? "a SHA-256" : "SHA-256 " + quote(digest);
}

SecretKeyId DocumentReader::secret_key_id(bool may_be_none) {
  const auto id = SecretKeyId::from_text(entry(kSecretKeyId).value);
  if (!id || (id->is_none() && !may_be_none))
    refuse(kSecretKeyId, cat("32 lower-case hexadecimal digits",
                             may_be_none ? " or 'none'" : ", not all of them 0"));
  return *id;
}

void DocumentReader::require_params(const std::string& id) {
  const JsonString& found = entry("params_id");
  if (found.value != id)
    reject("params_id", quote(found.value) + " (the file belongs to another context)", quote(id),
           found.offset);
}

const Tensor& DocumentReader::tensor(const std::string& name, DType dtype,
                                     std::span<const u64> shape) {
  const auto found = file_.tensors().find(name);
  if (found == file_.tensors().end())
    reject("tensor " + quote(name), "nothing", cat(to_string(dtype), " ", shape_text(shape)), 8);
  const Tensor& t = found->second;
  bool fits = t.dtype == dtype && t.shape.size() == shape.size();
  for (std::size_t i = 0; fits && i < shape.size(); ++i)
    fits = shape[i] == kAny || shape[i] == t.shape[i];
  if (!fits)
    reject("tensor " + quote(name), cat(to_string(t.dtype), " ", shape_text(t.shape)),
           cat(to_string(dtype), " ", shape_text(shape)), t.offset);
  used_tensors_.insert(name);
  return t;
}

void DocumentReader::check_names() {
  for (const auto& [name, tensor] : file_.tensors()) {
    if (!used_tensors_.contains(name))
      reject("tensor " + quote(name), "an unknown tensor", "tensors of this kind only",
             tensor.offset);
    entry(digest_name(name));
  }
  for (const auto& [name, value] : file_.metadata())
    if (!used_metadata_.contains(name))
      reject(where_metadata(name), "an unknown entry", "metadata of this kind only", value.offset);
}

void DocumentReader::check_digest(const Tensor& t, std::span<const u8> data) {
  const std::string actual = digest_of(data);
  const std::string& stored = entry(digest_name(t.name)).value;
  if (actual != stored)
    reject("tensor " + quote(t.name) + " checksum", shown(actual),
           shown(stored) + " as the header says (corrupted?)", t.begin);
}

void DocumentReader::finish() {
  check_names();
  for (const auto& [name, tensor] : file_.tensors()) check_digest(tensor, data(tensor));
}

}  // namespace crenel::serialize
