// The dry CUDA device: what it states is compared with bytes counted by hand.
#include <algorithm>

#include "crenel/core/error.h"
#include "crenel/device/account.h"
#include "crenel/device/tuning.h"
#include "math/primes.h"
#include "support/child.h"
#include "support/ckks_world.h"
#include "support/context.h"

namespace crenel::device {
namespace {

using ring::PolyShape;
using ring::PolyView;
using rns::LimbSet;

constexpr const char* kDry = "cuda:dry";

// "" or why this build has no dry device.
std::string missing() {
  std::string reason;
  test::open_or_reason(kDry, reason);
  return reason;
}

#define CRENEL_NEEDS_DRY() \
  if (const std::string reason = missing(); !reason.empty()) GTEST_SKIP() << reason

Traffic sum(const std::vector<LaunchRecord>& records) {
  Traffic t;
  for (const auto& r : records) t += r;
  return t;
}

TEST(DryDevice, SaysWhyItIsMissing) {
  const std::string reason = missing();
  if (reason.empty()) GTEST_SKIP() << "this build can open it";
  EXPECT_NE(reason.find("cuda:dry: built without CUDA"), std::string::npos) << reason;
}

TEST(DryDevice, IsNeitherListedNorChosen) {
  for (const auto& info : available()) EXPECT_NE(info.name, kDry);
  EXPECT_NE(open("auto")->info().name, kDry);
}

TEST(DryDevice, IsRefusedInForkedChildren) {
  CRENEL_NEEDS_DRY();
  const auto device = open(kDry);
  auto stream = device->make_stream();
  auto memory = std::make_unique<Buffer>(stream->allocate(1000));
  EXPECT_EQ(test::in_child([&] {
              int refused = 0;
              const u8 byte = 0;
              const std::function<void()> uses[] = {
                  [&] { stream->allocate(1000); }, [&] { stream->synchronize(); },
                  [&] { stream->copy_in(memory->data(), &byte, 1); },
                  [&] { stream->fill_zero(memory->data(), 1); }, [&] { device->allocate(1); }};
              for (const auto& use : uses) {
                try {
                  use();
                } catch (const StateError& error) {
                  if (error.field("device") == kDry) ++refused;
                }
              }
              memory.reset();  // its destructor calls nobody
              stream.reset();
              open(kDry)->make_stream()->allocate(1000);
              return refused == 5;
            }),
            "");
}

TEST(DryDevice, MakesUpMemory) {
  CRENEL_NEEDS_DRY();
  const auto device = open(kDry);
  EXPECT_EQ(device->info().kind, Kind::cuda);
  const auto address = [](void* p) { return reinterpret_cast<std::uintptr_t>(p); };
  void* a = device->allocate(1000);
  void* b = device->allocate(0);
  EXPECT_EQ(address(a) % 256, 0u);
  EXPECT_GE(address(b), address(a) + 1000);
  device->deallocate(a);
  void* c = device->allocate(1000);
  EXPECT_NE(a, c);
  EXPECT_THROW(device->allocate(device->info().memory_bytes), DeviceError);
  device->deallocate(c);
  EXPECT_NO_THROW(device->deallocate(device->allocate(device->info().memory_bytes)));
  device->deallocate(b);

  const auto stream = device->make_stream();
  {
    const Buffer buffer = stream->allocate(5000, true);
  }
  EXPECT_EQ(stream->bytes_in_use(), 0u);
  EXPECT_GE(stream->peak_bytes(), 5000u);
}

// What an H200 would refuse, on any machine: before a key is made, and as many as fit are made.
TEST(DryDevice, RefusesKeysThatItsCardWouldNotHold) {
  CRENEL_NEEDS_DRY();
  const ckks::Params params = ckks::Params::preset("boot40");
  const ckks::Context context(params, kDry);
  ckks::Client client = context.keygen();
  ckks::KeyRequest request;
  const ckks::KeySizes one = ckks::key_sizes(params);
  for (i64 k = 1; u64(k) * one.each < context.device().info().memory_bytes + one.each; ++k)
    request.rotations.push_back(k);
  context.device().trim();
  const u64 used = context.device().memory().used;
  EXPECT_EQ(context.device().available(), context.device().info().memory_bytes - used);
  std::size_t fits = 0;
  try {
    client.evaluation_keys(request);
    FAIL() << "keys beyond the card's memory";
  } catch (const OutOfMemoryError& e) {
    EXPECT_EQ(e.field("needed"), cat(ckks::key_sizes(params, request).bytes + one.each / 2));
    EXPECT_EQ(e.field("device"), kDry);
    fits = std::stoul(e.field("fits"));
  }
  EXPECT_EQ(context.device().memory().used, used);
  ASSERT_GT(fits, 2u);
  request.rotations.resize(fits / 2);
  const ckks::EvaluationKeys keys = client.evaluation_keys(request);
  EXPECT_EQ(keys.bytes(), ckks::key_sizes(params, request).bytes);
}

TEST(DryDevice, StatesCopiesAndHasNothingToRead) {
  CRENEL_NEEDS_DRY();
  const auto stream = open(kDry)->make_stream();
  const Buffer a = stream->allocate(4096), b = stream->allocate(4096);
  const auto account = std::make_shared<Account>();
  stream->account(account);
  const std::vector<u8> host(4096);
  stream->copy_in(a.data(), host.data(), 4096);
  stream->copy(b.data(), a.data(), 100);
  stream->copy_rows(b.data(), 512, a.data(), 1024, 256, 3);
  stream->fill_zero(b.data(), 64);
  EXPECT_EQ(account->total(), (Traffic{4, 868, 4096 + 868 + 64, 0, 0, 0}));
  std::vector<u8> back(16);
  EXPECT_THROW(stream->copy_out(back.data(), a.data(), 16), UnsupportedError);
  const auto graph = stream->capture([&] { stream->copy(b.data(), a.data(), 32); });
  account->clear();
  graph->launch(*stream);
  graph->launch(*stream);
  EXPECT_EQ(account->total(), (Traffic{2, 64, 64, 0, 0, 0}));
  stream->account(nullptr);
  graph->launch(*stream);
  EXPECT_EQ(account->total().launches, 2u);
}

struct Bench {
  test::Context context;
  std::vector<Buffer> memory;

  Bench(u32 log_n, u32 primes)
      : context(test::make_context(open(kDry), log_n,
                                   math::nearest_ntt_primes(u64(1) << 30, primes, u64(1) << 29,
                                                            u64(1) << 31, u64(2) << log_n))) {}
  PolyView<u32> make(u32 components, const LimbSet& limbs, ring::Domain domain) {
    const PolyShape shape{context.ring->log_n(), components, 1};
    memory.push_back(
        context.stream->allocate((u64(components) * limbs.size() * 4) << context.ring->log_n()));
    return {memory.back().as<u32>(), shape, limbs, domain};
  }
};

// Two limbs of 2^10: 32 columns of 32 rows. A column block brings 32 pairs; a row uses one pair for
// its first stage, and each of its 2 threads four words for the last four, of which it makes 11
// more.
TEST(DryDevice, NttOfAToyRing) {
  CRENEL_NEEDS_DRY();
  Bench bench(10, 2);
  const auto in = bench.make(1, LimbSet::range(0, 2), ring::Domain::coeff);
  const auto out = bench.make(1, LimbSet::range(0, 2), ring::Domain::eval);
  const auto account = std::make_shared<Account>();
  bench.context.stream->account(account);
  bench.context.kernels->ntt(*bench.context.stream, out, in);
  bench.context.stream->account(nullptr);
  const auto records = account->records();
  ASSERT_EQ(records.size(), 2u);
  LaunchRecord column, row;
  column.kernel = "column_forward";
  column.work = row.work = Work::ntt;
  column.limbs = row.limbs = 2;
  column.polys = row.polys = 1;
  column.read_bytes = 2 * (4096 + 32 * 8);
  column.written_bytes = row.written_bytes = 2 * 4096;
  column.multiply_adds = column.butterflies = 2 * 512 * 5;
  column.repeated_bytes = 2 * 32 * 8;
  column.overlapped = row.overlapped = true;
  row.kernel = "row_forward";
  row.read_bytes = 2 * (4096 + 32 * (8 + 2 * 16));
  row.repeated_bytes = 2 * 32 * (8 + 2 * 16);
  row.butterflies = 2 * 512 * 5;
  row.multiply_adds = row.butterflies + 2 * 64 * 11;
  EXPECT_EQ(records[0], column);
  EXPECT_EQ(records[1], row);
}

// Figures of the ring of 2^16: bytes of a limb, and twiddles that a column and a row pass bring for
// it.
constexpr u64 kLimb = u64(4) << 16;
constexpr u64 kColumns = 16 * 256 * 8;
constexpr u64 kRows = 256 * (15 * 8 + 16 * 16);

// Conversion of limbs with the first transform pass of the result. Blocks of 2,048 values serve one
// of `groups` of the destinations and read the sources (two of them together where their number is
// even), four matrices (16 bytes an entry and matrix, eight entries at a time), the constants and
// the twiddles of each destination.
struct Conversion {
  u64 sources, made;  ///< limbs of all polynomials: read, and converted
  u64 tables;         ///< digits or polynomials
  u64 groups;         ///< what the launcher chooses for 132 multiprocessors
  u64 padded;         ///< columns of the matrix
  bool rounded;       ///< a quotient, of reciprocals as many as columns

  u64 reads() const {
    const u64 constants = 4 * ((padded + 4) / 8 * 8) * 16 + 48, head = rounded ? padded * 4 : 0;
    return groups / (groups % 2 == 0 ? 2 : 1) * sources * kLimb +
           32 * (made * (constants + 256 * 8) + groups * tables * head);
  }
  u64 writes() const { return made * kLimb; }
};

// ModUp at the size of boot40: 47 limbs in four digits, 12 special ones.
constexpr u64 kL = 47, kSpecial = 12, kDigits = 4, kExtended = kL + kSpecial;
constexpr u64 kMade = kDigits * kExtended - kL;
constexpr u64 kMatrix = 3 * 12 * 47 + 11 * 48;  // entries: sources times destinations
constexpr Conversion kUp = {kL, kMade, kDigits, 1, 12, false};

TEST(DryDevice, ModUpOfBoot40) {
  CRENEL_NEEDS_DRY();
  Bench bench(16, 59);
  auto& k = *bench.context.kernels;
  const LimbSet window = LimbSet::range(0, 47), special = LimbSet::range(47, 59);
  const auto table =
      k.prepare(rns::make_mod_up(test::moduli_of(*bench.context.ring), window, special, 12));
  const auto in = bench.make(1, window, ring::Domain::eval);
  const auto out = bench.make(4, window.concat(special), ring::Domain::eval);
  const auto account = std::make_shared<Account>();
  bench.context.stream->account(account);
  k.mod_up(*bench.context.stream, out, in, table);
  bench.context.stream->account(nullptr);
  const auto r = account->records();
  ASSERT_EQ(r.size(), 4u);
  for (const auto& record : r) EXPECT_EQ(record.stage, "mod_up");
  EXPECT_EQ(r[0].kernel, "row_inverse");
  EXPECT_EQ(r[0].read_bytes, kL * (kLimb + kRows));
  EXPECT_EQ(r[1].kernel, "column_inverse");
  EXPECT_EQ(r[1].read_bytes, kL * (kLimb + kColumns));
  EXPECT_EQ(r[2].kernel, "convert_columns");
  EXPECT_EQ(r[2].work, Work::base_conversion);
  EXPECT_EQ(r[2].limbs, kExtended);
  EXPECT_EQ(r[2].polys, kDigits);
  EXPECT_EQ(r[2].multiply_adds - r[2].butterflies, kMatrix * 65536);
  for (const auto& record : r)  // what is left is the data, each word once
    EXPECT_EQ(record.read_bytes - record.repeated_bytes,
              record.work == Work::base_conversion ? kL * kLimb : record.written_bytes);
  EXPECT_EQ(r[2].read_bytes, kUp.reads());
  EXPECT_EQ(r[2].written_bytes, kUp.writes());
  EXPECT_EQ(r[2].butterflies, kMade * 32768 * 8);
  // One polynomial a block: sharing twiddles would leave fewer blocks than fill the GPU four times.
  EXPECT_EQ(r.back().kernel, "row_forward");
  EXPECT_EQ(r.back().read_bytes, kDigits * kExtended * (kLimb + kRows));
  EXPECT_EQ(r.back().butterflies, kMade * 32768 * 8);
}

// Tensor, key switch and division.
TEST(DryDevice, HMultOfBoot40) {
  CRENEL_NEEDS_DRY();
  const ckks::Context context(ckks::Params::preset("boot40"), kDry);
  ckks::Client client = context.keygen();
  const auto ev = context.evaluator(client.evaluation_keys());
  const std::vector<double> values{0.5};
  const u32 top = context.params().max_level();
  const auto a = client.encrypt(values, top), b = client.encrypt(values, top);
  const auto account = std::make_shared<Account>();
  context.stream().account(account);
  const auto product = ev.multiply(a, b);
  const auto first = account->records();
  account->clear();
  const auto again = ev.multiply(a, b);
  EXPECT_EQ(account->records(), first);
  context.stream().account(nullptr);

  const Conversion down = {2 * kSpecial, 2 * kL, 2, 2, 16, true};
  Traffic expected;
  expected.launches = 7;
  // The second components are multiplied as rows are read, all four components beside the key
  // product, where own digits are not read but made. Special limbs leave that through the first
  // pass of their inverse transform.
  const u64 up = kL * (2 * kLimb + kRows) + kL * (kLimb + kColumns) + kUp.reads();
  const u64 key_product =
      (3 * kDigits * kExtended + 4 * kL - kL) * kLimb + (kExtended + kSpecial) * kRows;
  const u64 divide =
      2 * kSpecial * (kLimb + kColumns) + down.reads() + 2 * kL * (2 * kLimb + kRows);
  expected.read_bytes = up + key_product + divide;
  const u64 passes = 2 * kL + 2 * kExtended + 2 * kSpecial + 2 * kL;
  expected.written_bytes = passes * kLimb + kUp.writes() + down.writes();
  expected.streamed_bytes = 2 * kDigits * kExtended * kLimb;
  expected.butterflies = (kL + kMade + 2 * kSpecial + 2 * kL) * 32768 * 16;
  const u64 divided = 2 * (kSpecial + 1) * kL + down.groups * 2 * kSpecial;
  const u64 made = (2 + 5 + 2) * kL;  // the third components, P times the others, own digits
  const u64 products = made + kMatrix + 2 * kDigits * kExtended + divided + 2 * kL;
  const u64 rows = kL + kExtended + kSpecial + 2 * kL;  // limbs of passes, whose twiddles are made
  expected.multiply_adds = expected.butterflies + 65536 * products + 4096 * 11 * rows;
  EXPECT_EQ(sum(first), expected);

  // Without pairs, both items of a division's conversion read its sources.
  Device& device = context.device();
  Tuning numbers = default_tuning(device);
  numbers[u32(Tunable::conversion_pairs)] = 0;
  set_tuning(device, numbers);
  account->clear();
  context.stream().account(account);
  ev.multiply(a, b);
  context.stream().account(nullptr);
  set_tuning(device, default_tuning(device));
  expected.read_bytes += down.sources * kLimb;
  EXPECT_EQ(sum(account->records()), expected);
}

// Of two ciphertexts a block: each makes its own twiddles of the roots that the block reads once.
TEST(DryDevice, KeySwitchOfTwoCiphertexts) {
  CRENEL_NEEDS_DRY();
  auto& world = test::world(kDry, "toy-leveled-n13-s40");
  const auto of = [&](u32 batch) {
    const std::vector<double> values(batch * world.context.params().slots(), 0.5);
    const auto ct = world.client.encrypt(values, world.context.params().max_level(), 0.0, 0, batch);
    const auto account = std::make_shared<Account>();
    world.context.stream().account(account);
    world.ev.rotate(ct, 1);
    world.context.stream().account(nullptr);
    const auto records = account->records();
    const auto found = std::find_if(records.begin(), records.end(),
                                    [](const auto& r) { return r.kernel == "key_switch_rows"; });
    if (found == records.end()) throw std::runtime_error("no key_switch_rows");
    return *found;
  };
  const LaunchRecord one = of(1), two = of(2), three = of(3);
  EXPECT_EQ(two.multiply_adds, 2 * one.multiply_adds);
  EXPECT_EQ(three.multiply_adds, 3 * one.multiply_adds);
  EXPECT_EQ(two.streamed_bytes, one.streamed_bytes);
  EXPECT_EQ(two.repeated_bytes, one.repeated_bytes);
  EXPECT_EQ(three.repeated_bytes, 2 * one.repeated_bytes);
}

TEST(DryDevice, DecryptsNothing) {
  CRENEL_NEEDS_DRY();
  auto& world = test::world(kDry, "toy-leveled-n13-s40");
  const auto sum = world.ev.rotate(world.client.encrypt(std::vector<double>{1.0}), 1);
  EXPECT_THROW(world.client.decrypt(sum), UnsupportedError);
}

}  // namespace
}  // namespace crenel::device
