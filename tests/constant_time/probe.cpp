// What valgrind watches for the constant-time tests: secrets are marked as uninitialised memory,
// and memcheck reports every branch and every address that depends on such bits. The portable and
// the AVX2 path of the device "cpu"; valgrind knows no AVX-512.
//
// What may become known is declassified here and nowhere else, one by one:
//   decrypted   a decryption, message plus error: decoding is the owner's floating-point code
//   exported    a secret key that was asked for: its bytes are the caller's
// Samples that a server gets need none: nothing that makes them reads them back. Import of a key is
// not watched: that it is valid is what its caller learns.
#include <valgrind/memcheck.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>

#include "backends/cpu/cpu_backend.h"
#include "ckks/decode.h"
#include "ckks/objects.h"
#include "random/sparse.h"
#include "tfhe/encoding.h"
#include "tfhe/keygen.h"
#include "tfhe/objects.h"

namespace crenel {
namespace {

// Of all that a source gives, keys and errors, every bit depends on its seed.
random::SecretSource secret_source() {
  random::Seed seed = random::seed_from_os();
  VALGRIND_MAKE_MEM_UNDEFINED(seed.data(), seed.size());
  return random::SecretSource(seed);
}

enum class Declassified { decrypted, exported };

void declassify(Declassified, const void* data, std::size_t bytes) {
  VALGRIND_MAKE_MEM_DEFINED(data, bytes);
}

backend::cpu::Isa chosen_isa = backend::cpu::Isa::scalar;

std::shared_ptr<device::Backend> watched_device() {
  return backend::cpu::make_cpu_device(chosen_isa);
}

void run_ckks(u32 hamming_weight) {
  const ckks::Context context(ckks::Params::preset("toy-leveled-n13-s30", true), watched_device());
  const auto& ring = context.state().ring;
  rlwe::SecretKey key(ring, secret_source(), hamming_weight);
  const ckks::Plaintext message = context.encode(std::vector<double>{0.5, -0.25});
  rlwe::Poly coefficients(ring->stream(), message.data().poly.shape(), message.data().poly.limbs(),
                          ring::Domain::coeff, true);
  ring->kernels().intt(ring->stream(), coefficients.view(), message.data().poly.view());
  VALGRIND_MAKE_MEM_UNDEFINED(coefficients.data(), coefficients.bytes());

  random::Seed seed;
  const rlwe::Poly ct = key.encrypt(coefficients.view(), seed);
  rlwe::Poly decrypted = key.decrypt(ct.view());
  const rlwe::PublicKey pair = key.make_public_key();
  auto source = secret_source();
  rlwe::encrypt_with_public_key(*ring, pair, coefficients.view(), source);
  key.make_relinearisation_key();
  key.make_galois_key(5);
  key.make_encapsulation_keys(32);

  auto exported = key.export_coefficients();
  rlwe::SecretKey again(ring, secret_source(), exported);
  declassify(Declassified::exported, exported.data(), exported.size());
  u64 weight = 0;
  for (const i8 c : exported) weight += c != 0 ? 1 : 0;
  declassify(Declassified::decrypted, decrypted.data(), decrypted.bytes());
  // The error is declassified with the message: what it means is known, what it is made of is not.
  static_cast<void>(ckks::decode_coefficients(context.state(), decrypted, message.metadata()));
  std::printf("weight %llu\n", static_cast<unsigned long long>(weight));
}

void run_tfhe(const char* set, u32 slots) {
  const tfhe::Context context(tfhe::Params::preset(set, true).with_slots(tfhe::SlotCount(slots)),
                              watched_device());
  const auto& home = context.state();
  tfhe::SecretKeys secret(home.plan, *home.stream, *home.poly, secret_source());
  tfhe::make_evaluation_keys(context, secret, random::draw_secret_key_id(),
                             {slots > 1, home.plan.rests_extracted()});
  auto exported =
      core::SecretVector<i8>(secret.coefficients().begin(), secret.coefficients().end());
  declassify(Declassified::exported, exported.data(), exported.size());

  tfhe::Client client(
      std::make_shared<tfhe::Client::State>(tfhe::Client::State{context, std::move(secret)}));
  const std::vector<u64> messages{0, 1, 1, 0, 1};
  const tfhe::Ciphertext ct = client.encrypt(messages);
  auto found = client.decrypt(ct);
  declassify(Declassified::decrypted, found.data(), found.size() * sizeof(u64));
  if (found != messages) std::printf("wrong decryption\n");
}

void sparse() {
  auto source = secret_source();
  random::sample_sparse_ternary(source, 256, 32);
}

// What must be reported: without it, silence would mean nothing.
void branch() {
  auto source = secret_source();
  const auto secret = random::sample_sparse_ternary(source, 16, 8);
  if (secret[3] == 1) std::printf("a branch\n");
}

void address() {
  auto source = secret_source();
  const auto secret = random::sample_sparse_ternary(source, 16, 8);
  static const int table[3] = {10, 20, 30};
  volatile int found = table[secret[3] + 1];
  static_cast<void>(found);
}

}  // namespace
}  // namespace crenel

int main(int argc, char** argv) {
  using namespace crenel;
  const std::map<std::string, std::function<void()>> scenarios = {
      {"ckks-dense", [] { run_ckks(0); }},
      {"ckks-sparse", [] { run_ckks(64); }},
      {"tfhe-gadget", [] { run_tfhe("toy-gadget", 1); }},
      {"tfhe-raising", [] { run_tfhe("toy-raising", 1); }},
      {"tfhe-packed", [] { run_tfhe("toy-gadget", 3); }},
      {"sparse-sampler", sparse},
      {"leaky-branch", branch},
      {"leaky-address", address},
  };
  using backend::cpu::Isa;
  const std::map<std::string, Isa> paths = {{"portable", Isa::scalar}, {"avx2", Isa::avx2}};
  const auto found = argc == 3 ? scenarios.find(argv[1]) : scenarios.end();
  const auto path = argc == 3 ? paths.find(argv[2]) : paths.end();
  if (found == scenarios.end() || path == paths.end() || RUNNING_ON_VALGRIND == 0) {
    std::fprintf(stderr, "usage: valgrind %s SCENARIO portable|avx2\n", argv[0]);
    return 2;
  }
  if (!backend::cpu::isa_available(path->second)) return 3;
  chosen_isa = path->second;
  found->second();
  return 0;
}
