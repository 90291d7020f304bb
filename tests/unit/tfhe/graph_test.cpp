// Operations that are said to be capturable: no copy from the host, wait or allocation once warm,
// and replays that compute on what their inputs hold by then.
#include <optional>

#include "support/tfhe_world.h"
#include "support/watched_device.h"

namespace crenel::tfhe {
namespace {

using test::Messages;
using test::WatchedDevice;

/// Keys and inputs on a watched device.
struct Watched {
  explicit Watched(const std::string& name, const std::string& set)
      : device(std::make_shared<WatchedDevice>(name)),
        context(test::tfhe_params(set), device),
        client(context.keygen()),
        ev(context.evaluator(client.evaluation_keys({true}), {0.0})) {}

  /// The operation recorded: throws where it does what a graph cannot. It has the results of a
  /// call, and brings nothing to the device again.
  template <class F>
  void expect_capturable(const char* what, F operation) {
    SCOPED_TRACE(what);
    const auto eager = operation();
    std::vector<Ciphertext> out;
    const u64 uploads = device->uploads;
    std::unique_ptr<device::GraphExec> graph;
    ASSERT_NO_THROW(graph = context.stream().capture([&] {
      out.clear();
      out = operation();
    }));
    graph->launch(context.stream());
    EXPECT_EQ(device->uploads, uploads);
    ASSERT_EQ(out.size(), eager.size());
    for (std::size_t i = 0; i < out.size(); ++i)
      EXPECT_EQ(test::words_of(out[i]), test::words_of(eager[i])) << "output " << i;
  }

  std::shared_ptr<WatchedDevice> device;
  Context context;
  Client client;
  Evaluator ev;
};

template <class... C>
std::vector<Ciphertext> outputs(C&&... c) {
  std::vector<Ciphertext> out;
  (out.push_back(std::forward<C>(c)), ...);
  return out;
}

Lut table_of(u64 entries, u64 limit, u64 step) {
  Lut f;
  for (u64 m = 0; m < entries; ++m) f.table.push_back((m * step + 1) % limit);
  return f;
}

class TfheGraph : public test::TfheTest {
 protected:
  /// For what only host memory can watch.
  bool on_host() const { return GetParam().rfind("cuda", 0) != 0; }
};

TEST_P(TfheGraph, GatesAreCapturable) {
  if (!on_host()) GTEST_SKIP() << "watched on ref and cpu";
  for (const char* set : {"gadget:r3", "raising:approx", "padded:r3"}) {
    SCOPED_TRACE(set);
    Watched w(GetParam(), set);
    const Messages x{0, 1, 1, 0, 1}, y{1, 1, 0, 0, 1}, z{0, 0, 1, 0, 1};
    const Ciphertext a = w.client.encrypt(x), b = w.client.encrypt(y), c = w.client.encrypt(z);
    for (Gate gate : {Gate::and_, Gate::nand, Gate::or_, Gate::nor, Gate::xor_, Gate::xnor})
      w.expect_capturable(name_of(gate), [&] { return outputs(w.ev.gate(gate, a, b)); });
    w.expect_capturable("others", [&] {
      const Ciphertext* three[] = {&a, &b, &c};
      const Term terms[] = {{&a, 1}, {&b, -2}};
      const Ciphertext* parts[] = {&a, &b};
      return outputs(w.ev.gate(Gate::majority, three), w.ev.mux(a, b, c), w.ev.refresh(a),
                     w.ev.not_(a), w.ev.linear(terms, 1), a.clone(), a.slice(0, 2),
                     concatenate(std::span(parts).first(1)));
    });
  }
}

TEST_P(TfheGraph, PreparedTablesAreCapturable) {
  if (!on_host()) GTEST_SKIP() << "watched on ref and cpu";
  for (const char* set : {"padded:r3", "func", "func:r2"}) {
    SCOPED_TRACE(set);
    Watched w(GetParam(), set);
    const u32 limit = message_bound(w.context.params());
    Messages x(7);
    for (u64 i = 0; i < x.size(); ++i) x[i] = i % limit;
    const Ciphertext a = w.client.encrypt(x);
    const std::vector<Lut> luts{table_of(limit, limit, 3), table_of(limit, limit, 5)};
    const std::vector<u32> index{0, 1, 1, 0, 1, 0, 0};
    const PreparedLut one = w.context.prepare(std::span(luts).first(1));
    const PreparedLut both = w.context.prepare(luts, index);
    EXPECT_EQ(one.size(), 0u);
    EXPECT_EQ(both.size(), 7u);
    EXPECT_EQ(both.plain_modulus(), w.context.params().spec().plain_modulus);
    EXPECT_EQ(both.out_modulus(), w.context.params().spec().plain_modulus);
    // Ready before the first call, not after it.
    const u64 uploads = w.device->uploads;
    const Ciphertext first = w.ev.lut(a, both);
    EXPECT_EQ(w.device->uploads, uploads);
    EXPECT_EQ(test::words_of(first), test::words_of(w.ev.lut(a, luts, index)));
    EXPECT_EQ(test::words_of(w.ev.lut(a, one)), test::words_of(w.ev.lut(a, luts[0])));
    w.expect_capturable("look-ups", [&] { return outputs(w.ev.lut(a, one), w.ev.lut(a, both)); });
    // By value nothing is brought again either, but what is not there cannot be recorded.
    w.expect_capturable("kept tables", [&] { return outputs(w.ev.lut(a, luts, index)); });
    int calls = 0;
    EXPECT_THROW(w.context.stream().capture(
                     [&] { w.ev.lut(a, table_of(limit, limit, u64(1 + 2 * ++calls))); }),
                 StateError);
  }
}

TEST_P(TfheGraph, FunctionsAndPackingAreCapturable) {
  if (!on_host()) GTEST_SKIP() << "watched on ref and cpu";
  Watched w(GetParam(), "large:r3");
  const Ciphertext a = w.client.encrypt(Messages{0, 17, 63, 40}, 64);
  w.expect_capturable("functions", [&] {
    auto out = w.ev.decompose(a, 2);
    out.push_back(w.ev.floor(a, 1));
    out.push_back(w.ev.sign(a));
    return out;
  });
  Client single = w.client.single();
  const Ciphertext s = single.encrypt(Messages{1, 0, 1, 1, 0}, 4);
  w.expect_capturable("pack", [&] { return outputs(w.ev.pack(s)); });
}

TEST_P(TfheGraph, TheWatchedDeviceRefusesWhatAGraphCannotDo) {
  if (!on_host()) GTEST_SKIP() << "watched on ref and cpu";
  Watched w(GetParam(), "gadget");
  EXPECT_THROW(w.context.stream().capture([&] { w.ev.trivial(Messages{1, 0}); }), StateError);
  EXPECT_THROW(w.context.stream().capture([&] { w.context.stream().synchronize(); }), StateError);
  EXPECT_NO_THROW(w.ev.trivial(Messages{1, 0}));
}

// Overwrites `to`, which has been recorded as an input.
void load(const Ciphertext& to, const Ciphertext& from) {
  auto& stream = *to.data().payload.stream();
  stream.copy(to.data().payload.data(), from.data().payload.data(), to.bytes());
}

TEST_P(TfheGraph, ReplaysComputeOnNewInputs) {
  auto rng = test::test_rng();
  for (const char* set : {"padded:r3", "padded:approx"}) {
    SCOPED_TRACE(set);
    auto& w = world(set);
    const u32 limit = message_bound(w.params());
    std::vector<Lut> luts;
    for (int t = 0; t < 3; ++t) luts.push_back({test::random_messages(rng, limit, limit), 0});
    std::vector<u32> index;
    for (int i = 0; i < 8; ++i) index.push_back(u32(rng() % 3));
    const PreparedLut prepared = w.context.prepare(luts, index);
    const auto bits = [&] { return w.client.encrypt(test::random_messages(rng, 8, 2)); };
    const Ciphertext a = bits(), b = bits(), c = bits();
    const auto circuit = [&](const Evaluator& ev) {
      const Ciphertext x = ev.gate(Gate::xor_, a, b);
      const Ciphertext y = ev.mux(c, ev.not_(x), b);
      const Term terms[] = {{&x, 1}, {&y, 2}};
      return ev.lut(ev.linear(terms), prepared);
    };
    std::optional<Ciphertext> out;
    const auto graph = w.context.stream().capture([&] {
      out.reset();
      out = circuit(w.ev);
    });
    for (int round = 0; round < 3; ++round) {
      load(a, bits()), load(b, bits()), load(c, bits());
      // More tables than the context keeps: a recorded one that went would be overwritten.
      if (round == 1 && exhaustive())
        for (u64 i = 0; i < 300; ++i)
          w.context.prepare(std::vector{Lut{Messages(limit, i % limit), 0},
                                        Lut{test::random_messages(rng, limit, limit), 0}},
                            std::vector<u32>(8, u32(i % 2)));
      graph->launch(w.context.stream());
      const auto replayed = test::words_of(*out);
      EXPECT_EQ(replayed, test::words_of(circuit(w.ev))) << "round " << round;
    }
  }
}

TEST_P(TfheGraph, PreparedTablesBelongToTheirParameters) {
  auto& w = world("padded:r3");
  const u32 limit = message_bound(w.params());
  const std::vector<Lut> luts{table_of(limit, limit, 3), table_of(limit, limit, 5)};
  const PreparedLut f = w.context.prepare(luts, std::vector<u32>{0, 1, 1});
  const Ciphertext a = w.client.encrypt(Messages{0, 1, 2});
  EXPECT_EQ(w.ev.lut(a, f).size(), 3u);
  EXPECT_THROW(w.ev.lut(w.client.encrypt(Messages{0, 1}), f), ParameterError);
  EXPECT_THROW(w.ev.lut(w.client.encrypt(Messages{0, 1, 1}, 8), f), StateError);
  EXPECT_THROW(world("func").ev.lut(world("func").client.encrypt(Messages{0, 1, 1}), f),
               StateError);
  EXPECT_THROW(w.context.prepare(luts), ParameterError);
  EXPECT_THROW(w.context.prepare({}), ParameterError);
  EXPECT_THROW(w.context.prepare(luts, std::vector<u32>{0, 2, 1}), ParameterError);
  EXPECT_THROW(w.context.prepare(luts, std::vector<u32>{0, 1, 1}, 7), ParameterError);
  EXPECT_THROW(w.context.prepare(luts, std::vector<u32>{0, 1, 1}, 1u << 12), ParameterError);
}

CRENEL_FAST_DEVICE_SUITE(TfheGraph);

}  // namespace
}  // namespace crenel::tfhe
