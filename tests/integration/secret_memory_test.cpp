// Where the secrets of CKKS and TFHE lie on devices of host memory: in pages that are locked and
// not dumped, nowhere else, and nowhere at all once their owner is gone.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "ckks/objects.h"
#include "core/secret_pages.h"
#include "support/child.h"
#include "support/ckks_world.h"
#include "support/process_memory.h"
#include "support/tfhe_world.h"
#include "tfhe/keygen.h"

namespace crenel::test {
namespace {

class SecretPlaces : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (device_->info().kind == device::Kind::cuda)
      GTEST_SKIP() << "secrets lie in the memory of another processor";
  }
};
CRENEL_DEVICE_SUITE(SecretPlaces);

// Every occurrence lies in a secret page; how many there are.
std::size_t kept_well(const Pattern& pattern) {
  const auto found = find_in_memory(pattern);
  const auto map = regions();
  const bool locked = secret_memory().unlocked_bytes == 0;
  for (const u64 address : found)
    for (const Region& region : map)
      if (region.has(address)) {
        EXPECT_TRUE(region.flags.count("dd")) << "in " << region.name << ", which is dumped";
        if (locked) {
          EXPECT_TRUE(region.flags.count("lo")) << "in " << region.name << ", not locked";
        }
      }
  return found.size();
}

Pattern pattern_of(const rlwe::Poly& poly) {
  return Pattern({reinterpret_cast<const u8*>(poly.data()), Pattern::kBytes});
}

TEST_P(SecretPlaces, CkksKey) {
  const ckks::Context context(world_params("toy-leveled-n13-s30"), device_);
  const auto& ring = context.state().ring;
  auto key = std::make_unique<rlwe::SecretKey>(ring, random::SecretSource::from_os(), 0);
  auto exported = std::make_unique<core::SecretVector<i8>>(key->export_coefficients());
  auto poly =
      std::make_unique<rlwe::Poly>(rlwe::embed_secret(*ring, *exported, ring->everything()));
  const Pattern values = pattern_of(*poly);  // as the key itself lies there
  const Pattern coefficients({reinterpret_cast<const u8*>(exported->data()), Pattern::kBytes});
  EXPECT_EQ(kept_well(values), 2u);
  EXPECT_GE(kept_well(coefficients), 1u);
  // What works with the key leaves no copies.
  random::Seed seed;
  {
    rlwe::Poly zero(ring->stream(), {ring->log_n(), 1, 1}, ring->window(0), rlwe::Domain::coeff);
    ring->stream().fill_zero(zero.data(), zero.bytes());
    const rlwe::Poly ct = key->encrypt(zero.view(), seed);
    key->decrypt(ct.view());
    key->make_relinearisation_key();
    key->make_galois_key(5);
    key->make_encapsulation_keys(32);
  }
  EXPECT_EQ(kept_well(values), 2u);
  poly.reset();
  exported.reset();
  EXPECT_EQ(kept_well(values), 1u);
  EXPECT_EQ(find_in_memory(coefficients).size(), 0u);
  key.reset();
  EXPECT_EQ(find_in_memory(values).size(), 0u) << "of the key, after its owner is gone";
}

TEST_P(SecretPlaces, TfheKey) {
  const tfhe::Context context(tfhe_params("gadget"), device_);
  const auto& home = context.state();
  auto key = std::make_unique<tfhe::SecretKeys>(home.plan, *home.stream, *home.poly,
                                                random::SecretSource::from_os());
  const auto bytes_of = [](const void* at) {
    return std::span(static_cast<const u8*>(at), Pattern::kBytes);
  };
  const Pattern coefficients(bytes_of(key->coefficients().data() + 8));  // GLWE entries: i8
  const Pattern values(bytes_of(key->glwe().data));
  EXPECT_EQ(kept_well(coefficients), 1u);
  EXPECT_EQ(kept_well(values), 1u);
  for (const void* at : {static_cast<const void*>(key->coefficients().data()),
                         static_cast<const void*>(key->lwe_device())})
    EXPECT_TRUE(region_of(at).flags.count("dd"));
  static_cast<void>(tfhe::make_evaluation_keys(context, *key, random::draw_secret_key_id(), {}));
  EXPECT_EQ(kept_well(values), 1u);
  key.reset();
  EXPECT_EQ(find_in_memory(coefficients).size(), 0u);
  EXPECT_EQ(find_in_memory(values).size(), 0u);
}

TEST_P(SecretPlaces, TfheKeyOfLists) {
  const tfhe::Context context(tfhe::Params::preset("toy-lut4g4", true), device_);
  const auto& home = context.state();
  auto key = std::make_unique<tfhe::SecretKeys>(home.plan, *home.stream, *home.poly,
                                                random::SecretSource::from_os());
  const void* first = key->coefficients().data() + home.plan.lwe_dim;  // GLWE entries: i8
  const Pattern coefficients(std::span(static_cast<const u8*>(first), Pattern::kBytes));
  // On the host, and what phases are taken with in memory that is the host's.
  const auto before = kept_well(coefficients);
  static_cast<void>(
      tfhe::make_evaluation_keys(context, *key, random::draw_secret_key_id(), {.lists = true}));
  EXPECT_EQ(kept_well(coefficients), before);
  key.reset();
  EXPECT_EQ(find_in_memory(coefficients).size(), 0u);
}

TEST_P(SecretPlaces, Seeds) {
  random::Seed seed = random::seed_from_os();
  const Pattern pattern(seed);
  {
    random::SecretSource source(seed);
    random::secure_zero(seed.data(), seed.size());
    const auto map = regions();
    const auto found = find_in_memory(pattern);
    ASSERT_EQ(found.size(), 1u);
    for (const Region& region : map)
      if (region.has(found[0])) {
        EXPECT_TRUE(region.flags.count("wf") && region.flags.count("dd"));
      }
    random::SecretSource moved(std::move(source));
    EXPECT_EQ(find_in_memory(pattern).size(), 1u);
    EXPECT_EQ(in_child([&] {
                if (!find_in_memory(pattern).empty()) return false;  // wiped by the kernel
                moved.seed();
                return find_in_memory(pattern).empty();
              }),
              "");
  }
  EXPECT_EQ(find_in_memory(pattern).size(), 0u);
}

std::string core_pattern() {
  std::ifstream file("/proc/sys/kernel/core_pattern");
  std::string line;
  std::getline(file, line);
  return line;
}

TEST_P(SecretPlaces, AreInNoCoreDump) {
  namespace fs = std::filesystem;
  const std::string where = core_pattern();
  if (where.empty() || where[0] == '|' || where[0] == '/')
    GTEST_SKIP() << "core dumps go to \"" << where << "\", not into the working directory";
  const ckks::Context context(world_params("toy-leveled-n13-s30"), device_);
  const auto& ring = context.state().ring;
  const rlwe::SecretKey key(ring, random::SecretSource::from_os(), 0);
  const auto exported = key.export_coefficients();
  const rlwe::Poly poly = rlwe::embed_secret(*ring, exported, ring->everything());
  const Pattern secret = pattern_of(poly);
  // The same in ordinary memory: a dump holds something at all.
  auto rng = test_rng();
  std::vector<u8> plain(1000);
  for (u8& b : plain) b = static_cast<u8>(rng());
  const Pattern marker(plain);

  std::string folder = (fs::temp_directory_path() / "crenel-core-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string outcome = in_child([&] {
    rlimit limit{};
    if (getrlimit(RLIMIT_CORE, &limit) != 0) return false;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_CORE, &limit) != 0 || chdir(folder.c_str()) != 0) return false;
    prctl(PR_SET_DUMPABLE, 1);
    signal(SIGABRT, SIG_DFL);
    std::abort();
    return false;
  });
  EXPECT_EQ(outcome, "signal " + std::to_string(SIGABRT));
  std::vector<fs::path> dumps;
  for (const auto& entry : fs::directory_iterator(folder)) dumps.push_back(entry.path());
  std::size_t markers = 0, secrets = 0;
  for (const auto& dump : dumps) {
    std::ifstream file(dump, std::ios::binary);
    std::vector<u8> bytes(fs::file_size(dump));
    file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    markers += marker.in(bytes).size();
    secrets += secret.in(bytes).size();
  }
  fs::remove_all(folder);
  if (dumps.empty()) GTEST_SKIP() << "this machine makes no core dumps (hard limit or sanitizer)";
  EXPECT_GE(markers, 1u);
  EXPECT_EQ(secrets, 0u);
}

}  // namespace
}  // namespace crenel::test
