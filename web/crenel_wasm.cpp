// The flat interface of the WebAssembly module, for web/crenel.mjs: handles, pointers and lengths
// in; a code out. What a function returns beyond a number is its output, which stays until the next
// call; why it failed is JSON. Nothing of it is called from more than one thread.
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <variant>

#include "core/secret_pages.h"
#include "core/sha256.h"
#include "core/team.h"
#include "crenel/ckks/client.h"
#include "crenel/ckks/serialize.h"
#include "crenel/core/error.h"
#include "crenel/core/host_memory.h"
#include "crenel/core/secret_memory.h"
#include "crenel/core/version.h"
#include "serialize/json.h"
#include "web/export.h"

namespace crenel {
namespace {

using serialize::json_quote;

/// Of this interface: web/crenel.mjs refuses another.
constexpr u32 kInterface = 1;

using Object = std::variant<ckks::Context, ckks::Client, ckks::EvaluationKeyStream, Sha256>;

struct Module {
  std::map<u32, Object> objects;
  u32 next = 1;
  core::SecretVector<u8> output;  // what was decrypted and exported is among it
  std::string failure;
};

Module& module() {
  static Module& all = *new Module;
  return all;
}

/// An object of JSON, member by member.
class JsonObject {
 public:
  JsonObject& raw(std::string_view name, const std::string& json) {
    text_ += cat(text_.empty() ? "{" : ",", json_quote(name), ":", json);
    return *this;
  }
  JsonObject& add(std::string_view name, std::string_view text) {
    return raw(name, json_quote(text));
  }
  JsonObject& add(std::string_view name, const char* text) { return raw(name, json_quote(text)); }
  JsonObject& add(std::string_view name, bool truth) { return raw(name, truth ? "true" : "false"); }
  template <class Number>
    requires(std::integral<Number> || std::floating_point<Number>)
  JsonObject& add(std::string_view name, Number number) {
    const bool finite = std::abs(static_cast<double>(number)) <= std::numeric_limits<double>::max();
    return raw(name, finite ? cat(number) : "null");
  }
  std::string text() const { return text_.empty() ? "{}" : text_ + "}"; }

 private:
  std::string text_;
};

std::string json_of(const FieldValue& value) {
  if (const auto* list = std::get_if<FieldValue::List>(&value.value())) {
    std::string all;
    for (const i64 k : *list) all += cat(all.empty() ? "" : ",", k);
    return cat("[", all, "]");
  }
  if (std::holds_alternative<std::string>(value.value())) return json_quote(value.text());
  if (const auto* number = std::get_if<double>(&value.value()))
    if (!(std::abs(*number) <= std::numeric_limits<double>::max())) return json_quote(value.text());
  return value.text();
}

void fail(std::string_view code, std::string_view message, const std::vector<ErrorField>& fields) {
  JsonObject all;
  for (const ErrorField& field : fields) all.raw(field.name, json_of(field.value));
  module().failure =
      JsonObject().add("code", code).add("message", message).raw("fields", all.text()).text();
}

void put(std::span<const u8> bytes) { module().output.assign(bytes.begin(), bytes.end()); }
void put(const std::string& text) {
  put(std::span(reinterpret_cast<const u8*>(text.data()), text.size()));
}

/// body(), and 0; what it throws is kept as JSON, and the code is 1. Nothing passes on to
/// JavaScript.
template <class Body>
int guarded(const Body& body) {
  Module& m = module();
  core::secure_zero(m.output.data(), m.output.size());
  m.output.clear();
  try {
    body();
    return 0;
  } catch (const Error& error) {
    fail(error.code(), error.what(), error.fields());
  } catch (const std::bad_alloc&) {
    const HostMemory left = host_memory();
    fail("OutOfMemoryError", "the module's memory is full",
         {{"available", left.bytes}, {"limit", left.limit}});
  } catch (const std::exception& error) {
    fail("CrenelError", error.what(), {});
  }
  return 1;
}

template <class T>
T& object(u32 handle, const char* what) {
  const auto found = module().objects.find(handle);
  T* const object = found == module().objects.end() ? nullptr : std::get_if<T>(&found->second);
  if (object == nullptr)
    throw StateError(cat("handle ", handle, " is no ", what),
                     {{"handle", handle}, {"expected", what}});
  return *object;
}
ckks::Context& context_of(u32 handle) { return object<ckks::Context>(handle, "context"); }
ckks::Client& client_of(u32 handle) { return object<ckks::Client>(handle, "client"); }
ckks::EvaluationKeyStream& keys_of(u32 handle) {
  return object<ckks::EvaluationKeyStream>(handle, "stream of keys");
}

void keep(Object made, u32* handle) {
  Module& m = module();
  *handle = m.next++;
  m.objects.emplace(*handle, std::move(made));
}

std::span<const u8> bytes_of(const u8* data, u32 size) { return {data, size}; }

/// Wipes the bytes that pass through when it goes.
struct Passing {
  std::vector<u8> bytes;
  ~Passing() { core::secure_zero(bytes.data(), bytes.size()); }
};

u32 threads() {
#if defined(CRENEL_WASM_THREADS)
  return core::helpers().members();
#else
  return 1;
#endif
}

std::string parameters(const ckks::Params& p) {
  return JsonObject()
      .add("id", p.id())
      .add("name", p.name())
      .add("logN", p.log_n())
      .add("slots", p.slots())
      .add("maxLevel", p.max_level())
      .add("normalTopLevel", p.normal_top_level())
      .add("securityBits", p.security_bits())
      .add("insecure", p.insecure())
      .text();
}

}  // namespace

// Memory

/// Room for an argument; null where there is none.
CRENEL_EXPORT(u8*, crenel_allocate)(u32 bytes) {
  return static_cast<u8*>(std::malloc(bytes + !bytes));
}
/// Gives it back, wiped: it may have been a key or a message.
CRENEL_EXPORT(void, crenel_free)(u8* data, u32 bytes) {
  core::secure_zero(data, bytes);
  std::free(data);
}
CRENEL_EXPORT(const u8*, crenel_output)() { return module().output.data(); }
CRENEL_EXPORT(u32, crenel_output_bytes)() { return static_cast<u32>(module().output.size()); }
/// Wipes the output before the next call does.
CRENEL_EXPORT(void, crenel_clear)() {
  guarded([] {});
  core::trim_secrets();
}
/// Of the last function that returned 1: {"code", "message", "fields"}, ended by a zero.
CRENEL_EXPORT(const char*, crenel_error)() { return module().failure.c_str(); }
CRENEL_EXPORT(void, crenel_release)(u32 handle) { module().objects.erase(handle); }

// What this is

/// JSON: versions, and what this platform does not have (SECURITY.md, "In a browser").
CRENEL_EXPORT(int, crenel_about)() {
  return guarded([] {
    const SecretMemory kept = secret_memory();
    const HostMemory left = host_memory();
    const std::string secrets = JsonObject()
                                    .add("bytes", kept.bytes)
                                    .add("idleBytes", kept.idle_bytes)
                                    .add("lockedBytes", kept.locked_bytes)
                                    .add("unlockedBytes", kept.unlocked_bytes)
                                    .add("dumpableBytes", kept.dumpable_bytes)
                                    .add("guardPages", false)
                                    .text();
    put(JsonObject()
            .add("library", version())
            .add("interface", kInterface)
            .add("threads", threads())
            .add("availableBytes", left.bytes)
            .raw("secretMemory", secrets)
            .text());
  });
}

// Contexts and keys

/// A context of a parameter file, on the device "cpu", or "ref" with `reference`; JSON of the
/// parameters.
CRENEL_EXPORT(int, crenel_open)(const u8* data, u32 size, int allow_insecure, int reference,
                                u32* handle) {
  return guarded([&] {
    const auto params = ckks::params_from_bytes(bytes_of(data, size), allow_insecure != 0);
    keep(ckks::Context(params, reference != 0 ? "ref" : "cpu"), handle);
    put(parameters(params));
  });
}

/// A client with a new secret key; its id as text.
CRENEL_EXPORT(int, crenel_keygen)(u32 context, u32* handle) {
  return guarded([&] {
    ckks::Client client = context_of(context).keygen();
    put(client.secret_key_id().text());
    keep(std::move(client), handle);
  });
}

/// The client of an exported secret key; its id as text.
CRENEL_EXPORT(int, crenel_import)(u32 context, const u8* data, u32 size, u32* handle) {
  return guarded([&] {
    auto client = ckks::Client::import_secret_key(context_of(context), bytes_of(data, size));
    put(client.secret_key_id().text());
    keep(std::move(client), handle);
  });
}

CRENEL_EXPORT(int, crenel_export)(u32 client) {
  return guarded([&] {
    const Passing key{client_of(client).export_secret_key()};
    put(key.bytes);
  });
}

/// Evaluation keys, made one at a time: rotations steps[i] up to levels[i], and products up to
/// `relinearisation`, or -1 for no key of products. JSON: count and bytes of the file.
CRENEL_EXPORT(int, crenel_keys)(u32 client, const i32* steps, const u32* levels, u32 count,
                                int relinearisation, u32* handle) {
  return guarded([&] {
    ckks::KeyRequest request;
    for (u32 i = 0; i < count; ++i) {
      request.rotations.push_back(steps[i]);
      request.rotation_levels[steps[i]] = levels[i];
    }
    request.relinearisation = relinearisation >= 0;
    if (relinearisation >= 0) request.relinearisation_level = static_cast<u32>(relinearisation);
    ckks::EvaluationKeyStream keys(client_of(client), request);
    put(JsonObject().add("count", keys.count()).add("bytes", keys.file_bytes()).text());
    keep(std::move(keys), handle);
  });
}

/// The part of the file that the next key is; empty after the last.
CRENEL_EXPORT(int, crenel_keys_next)(u32 keys) {
  return guarded([&] { put(keys_of(keys).next()); });
}
/// What the file begins with, once all keys are made.
CRENEL_EXPORT(int, crenel_keys_head)(u32 keys) {
  return guarded([&] { put(keys_of(keys).head()); });
}

// Messages

/// The ciphertext file of `rows` vectors of `slots` numbers each, side by side.
CRENEL_EXPORT(int, crenel_encrypt)(u32 client, const double* values, u32 rows, u32 slots,
                                   u32 level) {
  return guarded([&] {
    ckks::Client& owner = client_of(client);
    const std::span<const double> all(values, u64(rows) * slots);
    put(ckks::to_bytes(owner.context(), owner.encrypt(all, level, 0.0, slots, rows)));
  });
}

/// The slots of a ciphertext file as doubles, real and imaginary part in turn, row after row.
CRENEL_EXPORT(int, crenel_decrypt)(u32 client, const u8* data, u32 size) {
  return guarded([&] {
    ckks::Client& owner = client_of(client);
    auto found = owner.decrypt(ckks::ciphertext_from_bytes(owner.context(), bytes_of(data, size)));
    put({reinterpret_cast<const u8*>(found.data()), found.size() * sizeof(found[0])});
    core::secure_zero(found.data(), found.size() * sizeof(found[0]));
  });
}

/// JSON of the metadata of a ciphertext file, which is checked as a whole.
CRENEL_EXPORT(int, crenel_inspect)(u32 context, const u8* data, u32 size) {
  return guarded([&] {
    const auto found = ckks::ciphertext_from_bytes(context_of(context), bytes_of(data, size));
    put(JsonObject()
            .add("level", found.level())
            .add("slots", found.slots())
            .add("batch", found.batch())
            .add("scale", found.scale())
            .add("secretKeyId", found.secret_key_id().text())
            .text());
  });
}

/// A ciphertext or evaluation key file, read with all checks and written again: what the library
/// would send.
CRENEL_EXPORT(int, crenel_rewrite)(u32 context, const u8* data, u32 size, int keys) {
  return guarded([&] {
    const ckks::Context& home = context_of(context);
    if (keys != 0)
      put(ckks::to_bytes(home, ckks::evaluation_keys_from_bytes(home, bytes_of(data, size))));
    else
      put(ckks::to_bytes(home, ckks::ciphertext_from_bytes(home, bytes_of(data, size))));
  });
}

// SHA-256 of what does not fit into memory at once

CRENEL_EXPORT(int, crenel_hash)(u32* handle) {
  return guarded([&] { keep(Sha256(), handle); });
}
CRENEL_EXPORT(int, crenel_hash_update)(u32 hash, const u8* data, u32 size) {
  return guarded([&] { object<Sha256>(hash, "hash").update(bytes_of(data, size)); });
}
/// 32 bytes.
CRENEL_EXPORT(int, crenel_hash_finish)(u32 hash) {
  return guarded([&] {
    const auto digest = object<Sha256>(hash, "hash").finish();
    put(digest);
  });
}

}  // namespace crenel
