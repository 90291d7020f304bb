// Work that is stopped at any of its points leaves everything as it was: memory, locks, recordings,
// leases of staged keys, files; and works when it is called again.
#include <filesystem>
#include <functional>

#include "crenel/circuits/linear_transform.h"
#include "crenel/ckks/serialize.h"
#include "crenel/core/watch.h"
#include "crenel/tfhe/serialize.h"
#include "support/ckks_world.h"
#include "support/tfhe_world.h"

namespace crenel {
namespace {

struct Stop {};

/// Counts points, and throws at one of them.
class AtPoint final : public watch::Scope {
 public:
  explicit AtPoint(u64 point) : point_(point) { watch_flag(&always_); }
  u64 points() const { return points_; }

 private:
  void stop() override {
    if (points_++ == point_) throw Stop();
  }

  const std::atomic<bool> always_{true};
  u64 point_, points_ = 0;
};

/// `work` whole, then stopped at the first, the last and some other points of it: `same` holds
/// after each. `fixed`: on ref it has the same points each time.
void stop_everywhere(const std::string& device, const char* name, const std::function<void()>& work,
                     const std::function<void()>& same, int samples = 12, bool fixed = true) {
  SCOPED_TRACE(name);
  work();  // what stays after a first time is there
  u64 points = 0;
  {
    const AtPoint never(~u64(0));
    work();
    points = never.points();
  }
  if (device == "cuda:0" && points == 0) return;  // one launch: there is nothing to stop
  ASSERT_GT(points, 0u);
  same();
  auto rng = test::test_rng();
  std::uniform_int_distribution<u64> any(0, points - 1);
  for (int i = 0; i < samples; ++i) {
    const u64 at = i == 0 ? 0 : i == 1 ? points - 1 : any(rng);
    SCOPED_TRACE(cat("stopped at point ", at, " of ", points));
    bool stopped = false;
    try {
      const AtPoint scope(at);
      work();
    } catch (const Stop&) {
      stopped = true;
    }
    // How many points there are differs with the tasks of a loop on the host's threads that are the
    // caller's, and with the keys that are on the device already.
    EXPECT_TRUE(stopped || (at != 0 && (device != "ref" || !fixed)));
    EXPECT_FALSE(watch::active());
    same();
  }
}

class Stopped : public test::SchemeTest {};
INSTANTIATE_TEST_SUITE_P(Devices, Stopped, testing::Values("ref", "cpu", "cuda:0"),
                         test::test_name);

TEST_P(Stopped, OperationsOfCkks) {
  auto& w = world("toy-leveled-n13-s40");
  auto& stream = w.context.stream();
  auto rng = test::test_rng();
  const auto values = test::random_values(rng, w.slots());
  const auto a = w.client.encrypt(values);
  const u64 before = stream.bytes_in_use();
  const auto same = [&] {
    EXPECT_EQ(stream.bytes_in_use(), before);
    EXPECT_FALSE(stream.capturing());
    EXPECT_LT(std::abs(w.client.decrypt(w.ev.multiply_rescale(a, a))[3] - values[3] * values[3]),
              1e-4);
  };
  stop_everywhere(
      GetParam(), "keys", [&] { w.client.evaluation_keys({{1, 2}, true, true}); }, same);
  stop_everywhere(GetParam(), "encrypt", [&] { w.client.encrypt(values); }, same);
  stop_everywhere(GetParam(), "decrypt", [&] { w.client.decrypt(a); }, same);
  stop_everywhere(GetParam(), "multiply", [&] { w.ev.multiply_rescale(a, a); }, same);
  stop_everywhere(GetParam(), "rotate", [&] { w.ev.rotate(a, 3); }, same);
  stop_everywhere(GetParam(), "sum", [&] { w.ev.sum_slots(a, 8); }, same);
  circuits::DiagonalMatrix matrix{w.slots(), {}};
  for (u64 k : {0, 1, 2, 3}) matrix.diagonals[k].assign(w.slots(), 0.25);
  const circuits::LinearTransform transform(w.context, matrix);
  const u64 with_transform = stream.bytes_in_use();
  const auto same_with = [&] { EXPECT_EQ(stream.bytes_in_use(), with_transform); };
  stop_everywhere(  // encoded by all threads, whatever the device
      GetParam(), "diagonals", [&] { circuits::LinearTransform(w.context, matrix); }, same_with, 12,
      false);
  stop_everywhere(GetParam(), "transform", [&] { transform(w.ev, a); }, same_with);
}

TEST_P(Stopped, FilesAreCompleteOrNotThere) {
  auto& w = world("toy-leveled-n13-s40");
  const auto folder = std::filesystem::temp_directory_path() /
                      cat("crenel-stopped-", test::run_seed(), "-", GetParam());
  std::filesystem::create_directory(folder);
  const std::string path = folder / "keys";
  const u64 before = w.context.stream().bytes_in_use();
  stop_everywhere(
      GetParam(), "save",
      [&] {
        std::filesystem::remove(path);
        ckks::save_evaluation_keys(w.context, w.keys, path);
      },
      [&] {
        EXPECT_EQ(w.context.stream().bytes_in_use(), before);
        for (const auto& entry : std::filesystem::directory_iterator(folder)) {
          EXPECT_EQ(entry.path(), path);  // no .partial
          ckks::load_evaluation_keys(w.context, path, {});
        }
      },
      6);
  ckks::save_evaluation_keys(w.context, w.keys, path);
  stop_everywhere(
      GetParam(), "load", [&] { ckks::load_evaluation_keys(w.context, path, {}); },
      [&] { EXPECT_EQ(w.context.stream().bytes_in_use(), before); }, 6);
  std::filesystem::remove_all(folder);
}

TEST_P(Stopped, RecordingsAreDiscarded) {
  auto& w = world("toy-leveled-n13-s40");
  auto& stream = w.context.stream();
  const std::vector<double> values{0.5, -0.25};
  const std::vector<ckks::Ciphertext> inputs = [&] {
    std::vector<ckks::Ciphertext> v;
    v.push_back(w.client.encrypt(values));
    return v;
  }();
  const auto body = [&](std::span<const ckks::Ciphertext> in) {
    std::vector<ckks::Ciphertext> out;
    out.push_back(w.ev.multiply(in[0], in[0]));
    return out;
  };
  const u64 before = stream.bytes_in_use(), graphs = stream.pool().graphs;
  stop_everywhere(
      GetParam(), "record", [&] { ckks::Graph(w.ev, inputs, ckks::Graph::Function(body)); },
      [&] {
        EXPECT_FALSE(stream.capturing());
        EXPECT_EQ(stream.bytes_in_use(), before);
        EXPECT_EQ(stream.pool().graphs, graphs);
      });
  ckks::Graph graph(w.ev, inputs, ckks::Graph::Function(body));
  stop_everywhere(
      GetParam(), "replay", [&] { graph.replay(inputs); },
      [&] { EXPECT_NEAR(w.client.decrypt(graph.replay(inputs)[0])[0].real(), 0.25, 1e-4); });
}

TEST_P(Stopped, StagedKeysAreGivenBack) {
  auto& w = world("toy-leveled-n13-s40");
  const auto keys = w.client.evaluation_keys({{1, 2, 3}, false, true});
  const auto staged = w.context.evaluator(keys.staged(keys.bytes() / 2));
  const auto a = w.client.encrypt(std::vector<double>{0.5, -0.25});
  const auto expected = w.client.decrypt(w.ev.rotate(a, 1));
  stop_everywhere(
      "staged", "rotations",
      [&] {
        for (i64 k : {1, 2, 3}) staged.rotate(a, k);
      },
      [&] {
        // All of the room is needed: a key that was not given back would be waited for for ever.
        for (i64 k : {3, 2}) staged.rotate(a, k);
        EXPECT_LT(std::abs(w.client.decrypt(staged.rotate(a, 1))[0] - expected[0]), 1e-4);
      });
}

TEST_P(Stopped, OperationsOfTfhe) {
  auto& w = test::tfhe_world(GetParam(), "func");
  auto& stream = w.context.stream();
  const std::vector<u64> messages{0, 1, 2, 3, 4, 5, 6, 7};
  const auto a = w.client.encrypt(messages);
  const tfhe::Lut lut{{1, 5, 2, 7, 3, 0, 4, 6}, 0};
  w.ev.lut(a, lut);
  const u64 before = stream.bytes_in_use();
  const auto same = [&] { EXPECT_EQ(stream.bytes_in_use(), before); };
  stop_everywhere(GetParam(), "keys", [&] { w.client.evaluation_keys({false}); }, same, 6);
  stop_everywhere(GetParam(), "lut", [&] { w.ev.lut(a, lut); }, same, 6);
  EXPECT_EQ(w.client.decrypt(w.ev.lut(a, lut)), lut.table);
}

}  // namespace
}  // namespace crenel
