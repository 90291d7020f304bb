// Loaders of CKKS, and what a server or a client does with what they load.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "fuzz/targets.h"

namespace crenel::test {
namespace {

using ckks::Context;

/// Of fresh ciphertexts: their products still fit the one prime.
constexpr double kScale = 4096.0;

/// A client with keys of every kind.
struct World {
  Context context = tiny_ckks();
  ckks::Client client = context.keygen();
  ckks::EvaluationKeys keys = client.evaluation_keys(request());
  ckks::Evaluator evaluator = context.evaluator(keys);

  static ckks::KeyRequest request() {
    ckks::KeyRequest r;
    r.rotations = {1};
    r.conjugate = r.encapsulation = true;
    return r;
  }
  ckks::Ciphertext encrypt(u32 batch = 1) {
    const std::vector<double> values(4 * batch, 0.5);
    return client.encrypt(std::span(values), {}, kScale, 4, batch);
  }
};

World& world() {
  static World w;
  return w;
}

/// A loader of wire_context or tiny_ckks, whichever the file belongs to.
template <class Load>
void run_loader(std::span<const u8> bytes, const Context& context, const Load& load) {
  with_reseal(bytes, [&](std::span<const u8> b) {
    try_load(
        b, [&](std::span<const u8> c) { return load(context, c, kFuzzLimits); },
        [&](const auto& object) { return ckks::to_bytes(context, object); });
  });
}

void run_params(std::span<const u8> bytes) {
  with_reseal(bytes, [](std::span<const u8> b) {
    try_load(
        b, [](std::span<const u8> c) { return ckks::params_from_bytes(c, true, kFuzzLimits); },
        [](const ckks::Params& params) { return ckks::to_bytes(params); });
  });
}

/// A folder in memory that goes with the process.
const std::string& key_file() {
  static const struct Folder {
    Folder() {
      std::filesystem::path base = "/dev/shm";
      if (!std::filesystem::is_directory(base)) base = std::filesystem::temp_directory_path();
      std::string pattern = (base / "crenel-fuzz-XXXXXX").string();
      if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no folder " + pattern);
      folder = pattern;
      file = (folder / "keys").string();
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(folder, ignored);
    }
    std::filesystem::path folder;
    std::string file;
  } folder;
  return folder.file;
}

/// All keys of a file, then some of them; the file's last byte chooses.
void run_key_file(std::span<const u8> bytes) {
  with_reseal(bytes, [](std::span<const u8> b) {
    std::ofstream(key_file(), std::ios::binary)
        .write(reinterpret_cast<const char*>(b.data()), static_cast<std::streamsize>(b.size()));
    const auto load = [](const ckks::KeySelection& selection, std::optional<u64> staged) {
      load_evaluation_keys(world().context, key_file(), selection, staged, kFuzzLimits);
      ++accepted_loads();
    };
    allow_errors([&] { load({}, {}); });
    const u8 choice = b.empty() ? u8{0} : b.back();
    ckks::KeySelection selection;
    if (choice & 1) selection.rotations = {{1}};
    selection.relinearisation = !(choice & 2);
    selection.encapsulation = !(choice & 4);
    std::optional<u64> staged;
    if (choice & 8) staged = u64{1} << 20;
    allow_errors([&] { load(selection, staged); });
  });
}

void run_secret_key(std::span<const u8> bytes) {
  with_reseal(bytes, [](std::span<const u8> b) {
    run_secret_loader(b, tiny_ckks(), ckks::Client::import_secret_key);
  });
}

void use(const ckks::Ciphertext& x) {
  World& w = world();
  ++accepted_loads();
  const ckks::Evaluator& ev = w.evaluator;
  const std::vector<std::function<void()>> each{
      [&] { w.client.decrypt(x); },
      [&] { ev.add(x, x); },
      [&] { ev.add(x, w.encrypt(x.batch() % 8 + 1)); },
      [&] { ev.negate(x); },
      [&] { ev.rotate(x, 1); },
      [&] { ev.conjugate(x); },
      [&] { ev.multiply(x, x); },
      [&] { ev.relinearise_rescale(ev.multiply_lazy(x, x)); },
      [&] { ev.rescale(x); },
      [&] { ev.adjust_level(x, 0); },
      [&] { ev.sum_slots(x, 4); },
      [&] { ev.multiply(x, {0.5, 0.25}); },
      [&] { x.clone(); },
      [&] { x.slice(x.batch() / 2, 1); },
  };
  for (const auto& operation : each) allow_errors(operation);
}

/// What loads is used: as a ciphertext, as a plaintext, as keys on a fresh ciphertext, as a public
/// key. Whatever it holds, errors of the library are the worst that comes of it.
void run_operations(std::span<const u8> bytes) {
  World& w = world();
  const Bytes sealed = reseal(bytes);
  if (sealed.empty()) return;
  allow_errors([&] { use(ckks::ciphertext_from_bytes(w.context, sealed, kFuzzLimits)); });
  allow_errors([&] {
    const auto p = ckks::plaintext_from_bytes(w.context, sealed, kFuzzLimits);
    ++accepted_loads();
    allow_errors([&] { w.context.decode(p); });
    allow_errors([&] { w.evaluator.add(w.encrypt(), p); });
    allow_errors([&] { w.evaluator.multiply(w.encrypt(), p); });
    allow_errors([&] { w.client.encrypt(p); });
  });
  allow_errors([&] {
    const auto keys = ckks::evaluation_keys_from_bytes(w.context, sealed, kFuzzLimits);
    ++accepted_loads();
    const ckks::Evaluator ev = w.context.evaluator(keys);
    const auto x = w.encrypt();
    allow_errors([&] { ev.rotate(x, 1); });
    allow_errors([&] { ev.conjugate(x); });
    allow_errors([&] { w.client.decrypt(ev.multiply(x, x)); });
  });
  allow_errors([&] {
    const auto key = ckks::public_key_from_bytes(w.context, sealed, kFuzzLimits);
    ++accepted_loads();
    const std::vector<double> values{0.5};
    w.client.decrypt(key.encrypt(w.context.encode(std::span(values))));
  });
}

std::map<std::string, Bytes> ciphertext_seeds() {
  World& w = world();
  const auto save = [&](const ckks::Ciphertext& c) { return ckks::to_bytes(w.context, c); };
  const auto fresh = w.encrypt();
  return {{"seeded", save(fresh)},
          {"batch", save(w.encrypt(2))},
          {"computed", save(w.evaluator.add(fresh, fresh))},
          {"three", save(w.evaluator.multiply_lazy(fresh, fresh))}};
}

std::map<std::string, Bytes> plaintext_seeds() {
  World& w = world();
  const std::vector<double> values{0.5, -0.25};
  return {{"real", ckks::to_bytes(w.context, w.context.encode(std::span(values)))}};
}

std::map<std::string, Bytes> public_key_seeds() {
  return {{"key", ckks::to_bytes(world().context, world().client.public_key())}};
}

std::map<std::string, Bytes> key_seeds() {
  World& w = world();
  const auto made = [&](std::vector<i64> rotations, bool relinearisation, bool encapsulation) {
    ckks::KeyRequest r;
    r.rotations = std::move(rotations);
    r.relinearisation = relinearisation;
    r.encapsulation = encapsulation;
    return ckks::to_bytes(w.context, w.client.evaluation_keys(r));
  };
  return {{"none", ckks::to_bytes(w.context, ckks::EvaluationKeys())},
          {"rotation", made({1}, false, false)},
          {"relinearisation", made({}, true, false)},
          {"encapsulation", made({}, false, true)}};
}

std::map<std::string, Bytes> every_seed() {
  std::map<std::string, Bytes> all;
  for (const auto& seeds : {ciphertext_seeds(), plaintext_seeds(), public_key_seeds(), key_seeds()})
    all.insert(seeds.begin(), seeds.end());
  return all;
}

}  // namespace

std::vector<FuzzTarget> ckks_targets() {
  using Bytes_ = std::span<const u8>;
  const auto target = [](const char* name, auto load, auto seeds) {
    return FuzzTarget{name, [load](Bytes_ b) { run_loader(b, tiny_ckks(), load); }, seeds};
  };
  return {
      {"ckks_params", run_params,
       [] {
         return std::map<std::string, Bytes>{{"tiny", ckks::to_bytes(tiny_ckks().params())},
                                             {"wire", ckks::to_bytes(wire_params())}};
       }},
      target("ckks_ciphertext", ckks::ciphertext_from_bytes, ciphertext_seeds),
      target("ckks_plaintext", ckks::plaintext_from_bytes, plaintext_seeds),
      target("ckks_public_key", ckks::public_key_from_bytes, public_key_seeds),
      target("ckks_evaluation_keys", ckks::evaluation_keys_from_bytes, key_seeds),
      {"ckks_key_file", run_key_file, key_seeds},
      {"ckks_secret_key", run_secret_key,
       [] { return std::map<std::string, Bytes>{{"key", world().client.export_secret_key()}}; }},
      {"ckks_operations", run_operations, every_seed},
  };
}

}  // namespace crenel::test
