// What models of several GPUs state of one ciphertext's limbs: bytes over links, counted by hand.
#include <map>

#include "ckks/objects.h"
#include "crenel/circuits/bootstrapping.h"
#include "crenel/device/account.h"
#include "crenel/device/optimisations.h"
#include "crenel/device/tuning.h"
#include "device/several.h"
#include "support/ckks_world.h"
#include "support/devices.h"

namespace crenel::ckks {
namespace {

u64 arrived(const device::Account& account) {
  u64 bytes = 0;
  for (const auto& record : account.records())
    if (record.kernel == "copy_peer") bytes += record.written_bytes;
  return bytes;
}

TEST(SplitAccount, ARotationBringsTheLimbsOfTheOthers) {
  for (const char* name : {"cuda:dry:0+1", "cuda:dry:0+1+2", "cuda:dry:0+1+2+3+4"}) {
    std::string reason;
    const auto device = test::open_or_reason(name, reason);
    if (device == nullptr) GTEST_SKIP() << reason;
    const Context context(test::world_params("s40"), device);
    const auto& ring = *context.state().ring;
    Client client = context.keygen();
    const Evaluator ev = context.evaluator(client.evaluation_keys({{1}, false, false}));
    const Ciphertext a = client.encrypt(test::Values(context.params().slots(), 0.5));
    ev.rotate(a, 1);
    const auto streams = dynamic_cast<device::DividedStream&>(context.stream()).parts();
    const u32 parts = static_cast<u32>(streams.size());
    std::vector<std::shared_ptr<device::Account>> accounts;
    for (const auto& stream : streams)
      stream->account(accounts.emplace_back(std::make_shared<device::Account>()));
    ev.rotate(a, 1);
    for (const auto& stream : streams) stream->account(nullptr);
    const auto others = [&](const ring::LimbSet& limbs, u32 part) {
      u64 count = 0;
      for (u32 l = 0; l < limbs.size(); ++l) count += limbs[l] % parts != part;
      return count;
    };
    for (u32 p = 0; p < parts; ++p) {
      // ModUp brings the polynomial that is switched, ModDown the special limbs of two.
      const u64 limbs = others(ring.window(a.level()), p) + 2 * others(ring.special(), p);
      EXPECT_EQ(arrived(*accounts[p]), limbs * sizeof(u32) << ring.log_n())
          << name << ", part " << p;
    }
  }
}

// A product or a rotation takes each part the launches that it takes one GPU, and together they
// write as much: what is fused there is fused here.
TEST(SplitAccount, PartsLaunchWhatOneGpuLaunches) {
  struct Launched {
    std::vector<std::string> kernels;
    u64 written = 0;  ///< by key switches
  };
  const auto of = [](const device::Account& account) {
    Launched sum;
    for (const auto& record : account.records()) {
      if (record.kernel == "copy_peer") continue;
      const bool spreads = record.kernel == "column_inverse_spread";
      sum.kernels.emplace_back(spreads ? "column_inverse" : record.kernel);
      if (record.work == device::Work::key_multiply) sum.written += record.written_bytes;
    }
    return sum;
  };
  const auto run = [&](const char* name) {
    std::vector<Launched> found;
    std::string reason;
    const auto device = test::open_or_reason(name, reason);
    if (device == nullptr) return found;
    // Of a GPU that exchanges nothing.
    device::set_optimisations(*device,
                              device::Optimisations().without(device::Optimisation::divided_rows));
    const Context context(test::world_params("s40"), device);
    Client client = context.keygen();
    const Evaluator ev = context.evaluator(client.evaluation_keys({{1}, true, true}));
    const Ciphertext a = client.encrypt(test::Values(context.params().slots(), 0.5));
    const auto work = [&] {
      const Ciphertext square = ev.multiply_rescale(a, a);
      const Ciphertext product = ev.multiply_rescale(square, ev.rotate(square, 1));
      const Ciphertext other = ev.conjugate(product);
      const Ciphertext* const pair[] = {&product, &other};
      ev.rotate(concatenate(pair), 1);
    };
    work();
    std::vector<std::shared_ptr<device::Stream>> streams{context.stream().shared_from_this()};
    if (auto* divided = dynamic_cast<device::DividedStream*>(streams[0].get()))
      streams = divided->parts();
    std::vector<std::shared_ptr<device::Account>> accounts;
    for (const auto& stream : streams)
      stream->account(accounts.emplace_back(std::make_shared<device::Account>()));
    work();
    for (std::size_t p = 0; p < streams.size(); ++p) {
      streams[p]->account(nullptr);
      found.push_back(of(*accounts[p]));
    }
    return found;
  };
  const auto one = run("cuda:dry");
  if (one.empty()) GTEST_SKIP() << "no model of a GPU in this build";
  for (const char* name : {"cuda:dry:0+1", "cuda:dry:0+1+2"}) {
    u64 written = 0;
    for (const auto& part : run(name)) {
      EXPECT_EQ(part.kernels, one[0].kernels) << name;
      written += part.written;
    }
    EXPECT_EQ(written, one[0].written) << name;
  }
}

// Sources that come as tiles are brought by pairs of blocks, once for both; limb by limb they are
// not.
TEST(SplitAccount, SourcesComeAsTilesWithTransforms) {
  std::string reason;
  if (!test::open_or_reason("cuda:dry:0+1", reason)) GTEST_SKIP() << reason;
  const auto read = [&](device::ExchangeBy way, u64 pairs) {
    const auto device = device::open("cuda:dry:0+1");
    device::exchange_by(*device, way);
    auto numbers = device::tuning(*device);
    numbers[u32(device::Tunable::conversion_pairs)] = pairs;
    device::set_tuning(*device, numbers);
    const Context context(Params::preset("leveled-n15-s40"), device);
    Client client = context.keygen();
    const Evaluator ev = context.evaluator(client.evaluation_keys({{1}, false, false}));
    const Ciphertext a = client.encrypt(test::Values(context.params().slots(), 0.5));
    const auto account = std::make_shared<device::Account>();
    const auto part = dynamic_cast<device::DividedStream&>(context.stream()).parts()[0];
    part->account(account);
    ev.rotate(a, 1);
    part->account(nullptr);
    u64 bytes = 0;
    for (const auto& record : account->records())
      if (record.kernel == "convert_columns") bytes += record.read_bytes;
    EXPECT_GT(bytes, 0u);
    return bytes;
  };
  const u64 by_kernels = read(device::ExchangeBy::kernels, 1);
  EXPECT_EQ(by_kernels, read(device::ExchangeBy::kernels, 0));
  EXPECT_EQ(by_kernels, read(device::ExchangeBy::transforms, 0));
  EXPECT_LT(read(device::ExchangeBy::transforms, 1), by_kernels);
}

// What a replay states to the account of each part is what that part was recorded with.
TEST(SplitAccount, ReplaysStateWhatEachPartDoes) {
  for (const char* name : {"cuda:dry:0+1", "cuda:dry:0+1+2"})
    for (const auto way : {device::ExchangeBy::events, device::ExchangeBy::kernels,
                           device::ExchangeBy::transforms}) {
      std::string reason;
      const auto device = test::open_or_reason(name, reason);
      if (device == nullptr) GTEST_SKIP() << reason;
      EXPECT_TRUE(device->has_graphs());
      device::exchange_by(*device, way);
      const Context context(test::world_params("s40"), device);
      Client client = context.keygen();
      const Evaluator ev = context.evaluator(client.evaluation_keys({{1}, false, true}));
      const Ciphertext a = client.encrypt(test::Values(context.params().slots(), 0.5));
      const auto work = [&] { ev.rotate(ev.multiply_rescale(a, a), 1); };
      const auto streams = dynamic_cast<device::DividedStream&>(context.stream()).parts();
      const auto stated = [&](const std::function<void()>& what) {
        std::vector<std::vector<device::LaunchRecord>> records;
        std::vector<std::shared_ptr<device::Account>> accounts;
        for (const auto& stream : streams)
          stream->account(accounts.emplace_back(std::make_shared<device::Account>()));
        what();
        for (std::size_t p = 0; p < streams.size(); ++p) {
          streams[p]->account(nullptr);
          records.push_back(accounts[p]->records());
        }
        return records;
      };
      work();  // its exchanges have their memory from now on
      auto eager = stated(work);
      const auto graph = context.stream().capture(work);
      const auto replayed = stated([&] { graph->launch(context.stream()); });
      for (std::size_t p = 0; p < streams.size(); ++p) {
        EXPECT_FALSE(eager[p].empty());
        auto found = replayed[p];
        for (auto* records : {&eager[p], &found})
          for (auto& record : *records) {
            record.replayed |= records == &eager[p];
            record.overlapped &=
                way != device::ExchangeBy::events;  // not behind events that were waited for
          }
        EXPECT_TRUE(found == eager[p]) << name << ", part " << p << ", by " << name_of(way);
      }
    }
}

// Of one eager bootstrap of toy-boot40 what each part states; nothing without such a device.
std::vector<std::vector<device::LaunchRecord>> bootstrap_accounts(const char* name) {
  std::string reason;
  const auto device = test::open_or_reason(name, reason);
  if (device == nullptr) return {};
  const Context context(Params::preset("toy-boot40", true), device);
  Client client = context.keygen();
  const circuits::Bootstrapper boot(
      context, client.evaluation_keys(circuits::bootstrap_key_request(context.params(), {})), {});
  const Ciphertext a =
      client.encrypt(test::Values(context.params().slots(), 0.5), boot.levels().input);
  boot.eager(a);
  std::vector<std::shared_ptr<device::Stream>> streams{context.stream().shared_from_this()};
  context.stream().account(std::make_shared<device::Account>());  // stages are open then
  if (auto* divided = dynamic_cast<device::DividedStream*>(streams[0].get()))
    streams = divided->parts();
  std::vector<std::shared_ptr<device::Account>> accounts;
  for (const auto& stream : streams)
    stream->account(accounts.emplace_back(std::make_shared<device::Account>()));
  boot.eager(a);
  std::vector<std::vector<device::LaunchRecord>> found;
  for (std::size_t p = 0; p < streams.size(); ++p) {
    streams[p]->account(nullptr);
    found.push_back(accounts[p]->records());
  }
  return found;
}

// A part that has one of EvalMod's halves by itself does all that one GPU does with both.
TEST(SplitAccount, EvalModOfAPartIsThatOfOneGpu) {
  const auto kernels = [](const std::vector<device::LaunchRecord>& records) {
    std::vector<std::string> names;
    for (const auto& record : records)
      if (record.stage.starts_with("eval_mod") && record.kernel != "copy_peer" &&
          record.kernel != "spread_limbs")
        names.emplace_back(record.kernel);
    return names;
  };
  const auto one = bootstrap_accounts("cuda:dry"), two = bootstrap_accounts("cuda:dry:0+1");
  if (one.empty() || two.empty()) GTEST_SKIP() << "no model of a GPU in this build";
  ASSERT_EQ(two.size(), 2u);
  const auto expected = kernels(one[0]);
  EXPECT_GT(expected.size(), 50u);
  for (const auto& part : two) EXPECT_EQ(kernels(part), expected);
}

// Real and imaginary parts go to a part each, come back after EvalMod, and bring nothing between.
// On four parts, which have a half for two, exchanges are of half of the limbs.
TEST(SplitAccount, EvalModBringsItsHalves) {
  std::map<std::pair<std::string, bool>, std::vector<u64>> found;
  for (const char* name : {"cuda:dry:0+1", "cuda:dry:0+1+2+3"})
    for (const bool apart : {true, false}) {
      std::string reason;
      const auto device = test::open_or_reason(name, reason);
      if (device == nullptr) GTEST_SKIP() << reason;
      if (!apart)
        device::set_optimisations(
            *device, device::Optimisations().without(device::Optimisation::entries_apart));
      const Context context(Params::preset("toy-boot40", true), device);
      const auto& ring = *context.state().ring;
      Client client = context.keygen();
      const circuits::Bootstrapper boot(
          context, client.evaluation_keys(circuits::bootstrap_key_request(context.params(), {})),
          {});
      const Ciphertext a =
          client.encrypt(test::Values(context.params().slots(), 0.5), boot.levels().input);
      boot.eager(a);
      const auto streams = dynamic_cast<device::DividedStream&>(context.stream()).parts();
      context.stream().account(std::make_shared<device::Account>());  // stages are open then
      std::vector<std::shared_ptr<device::Account>> accounts;
      for (const auto& stream : streams)
        stream->account(accounts.emplace_back(std::make_shared<device::Account>()));
      boot.eager(a);
      const u32 parts = static_cast<u32>(streams.size());
      for (u32 p = 0; p < parts; ++p) {
        streams[p]->account(nullptr);
        u64 bytes = 0;
        for (const auto& record : accounts[p]->records())
          if (record.kernel == "copy_peer" && record.stage.starts_with("eval_mod"))
            bytes += record.written_bytes;
        found[{name, apart}].push_back(bytes);
        if (!apart || parts != 2) continue;
        const auto& in = ring.window(boot.levels().eval_mod);
        const auto& out = ring.window(boot.levels().eval_mod_end);
        u64 limbs = 0;  // of a polynomial of two: those of the other part there, its own back
        for (u32 l = 0; l < in.size(); ++l) limbs += in[l] % parts != p;
        for (u32 l = 0; l < out.size(); ++l) limbs += out[l] % parts == p;
        EXPECT_EQ(bytes, 2 * limbs * sizeof(u32) << ring.log_n()) << "part " << p;
      }
    }
  for (const char* name : {"cuda:dry:0+1", "cuda:dry:0+1+2+3"}) {
    const auto &with = found[{name, true}], &without = found[{name, false}];
    for (std::size_t p = 0; p < with.size(); ++p)
      EXPECT_LT(2 * with[p], without[p]) << name << ", part " << p;
  }
}

// One account for all parts has the records of each, under the stages that were open.
TEST(SplitAccount, OneAccountHasAllParts) {
  std::string reason;
  const auto device = test::open_or_reason("cuda:dry:0+1", reason);
  if (device == nullptr) GTEST_SKIP() << reason;
  const Context context(test::world_params("s40"), device);
  const auto account = std::make_shared<device::Account>();
  Client client = context.keygen();
  const Evaluator ev = context.evaluator(client.evaluation_keys({{}, false, false}));
  const Ciphertext a = client.encrypt(test::Values(context.params().slots(), 0.5));
  context.stream().account(account);
  {
    const device::Stage stage(context.stream(), "here");
    ev.add(a, a);
  }
  ev.add(a, a);
  context.stream().account(nullptr);
  const auto records = account->records();
  ASSERT_EQ(records.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(records[i].stage, i < 2 ? "here" : "") << i;
}

}  // namespace
}  // namespace crenel::ckks
