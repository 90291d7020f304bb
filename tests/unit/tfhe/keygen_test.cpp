// Evaluation keys: every row encrypts what its place in the key says, checked against the secrets
// by definition; keys made from their parts are the same keys.
#include "tfhe/keygen.h"

#include <cstring>

#include "support/edited_files.h"
#include "support/tfhe_world.h"

namespace crenel::tfhe {
namespace {

// |error_value| <= 21.
constexpr i64 kErrorBound = 21;

std::vector<u8> bytes_of(const device::Buffer& buffer) {
  std::vector<u8> bytes(buffer.bytes());
  buffer.stream()->copy_out(bytes.data(), buffer.data(), bytes.size());
  return bytes;
}

class TfheKeygen : public test::TfheTest {
 protected:
  static std::vector<const char*> names() {
    return {"gadget:r3", "gadget2:binary", "raising:r2", "raising:binary", "many:r5"};
  }
};

// Secrets as a test sees them: export [slot][n + kN].
struct Secrets {
  explicit Secrets(test::TfheWorld& w)
      : plan(w.context.state().plan),
        bytes(test::exported_coefficients(w.client.export_secret_key())) {}
  i64 lwe(u32 slot, u32 i) const { return at(slot, i); }
  i64 glwe(u32 slot, u32 t, u32 i) const {
    return at(slot, plan.lwe_dim + t * plan.ring_dim() + i);
  }

  const device::TorusPlan& plan;
  std::vector<u8> bytes;

 private:
  i64 at(u32 slot, u32 i) const {
    return static_cast<i8>(bytes[slot * (plan.lwe_dim + plan.extracted_dim()) + i]);
  }
};

// b - sum_t a_t S_t modulo `prime`, schoolbook; polynomials [t][N].
std::vector<i64> glwe_phase(const Secrets& s, u32 slot, const std::vector<u32>& masks,
                            const u32* body, u64 prime) {
  const u32 n = s.plan.ring_dim();
  std::vector<i64> out(body, body + n);
  for (u32 t = 0; t < s.plan.glwe_dim; ++t)
    for (u32 i = 0; i < n; ++i)
      for (u32 j = 0; j < n; ++j) {
        const i64 term = s.glwe(slot, t, i) * i64(masks[t * n + j]);
        i64& to = out[(i + j) % n];
        to = (to + (i + j < n ? -term : term)) % i64(prime);
      }
  return out;
}

TEST_P(TfheKeygen, BootstrappingRowsEncryptTheGgswOfTheirSecret) {
  auto rng = test::test_rng();
  for (const char* name : names()) {
    auto& w = world(name);
    const Secrets s(w);
    const auto& plan = s.plan;
    const auto& keys = *w.keys.data();
    const u32 n = plan.ring_dim(), k = plan.glwe_dim, r = plan.slots;
    const u64 row_words = u64(r) * plan.primes.size() * n;
    const u64 rows = keys.bootstrap_bodies.size() / row_words;
    ASSERT_EQ(rows, u64(plan.lwe_dim) * plan.keys_per_step() * plan.digits * plan.polys());
    auto& stream = *w.context.state().stream;
    for (int sample = 0; sample < 12; ++sample) {
      const u64 row = rng() % rows;
      const u32 inner = u32(row % plan.polys()), digit = u32(row / plan.polys() % plan.digits);
      const u64 block = row / plan.polys() / plan.digits;
      const u32 key = u32(block % plan.keys_per_step());
      const u32 element = u32(block / plan.keys_per_step());
      for (u32 l = 0; l < plan.primes.size(); ++l) {
        const u64 prime = plan.primes[l];
        // The masks are what the public seed says.
        const auto limb = ring::LimbSet::range(l, l + 1);
        auto buffer = stream.allocate(u64(k) * n * sizeof(u32));
        const ring::PolyView<u32> view(buffer.as<u32>(), {plan.log_n, k, 1}, limb,
                                       ring::Domain::coeff);
        w.context.state().poly->sample_uniform(stream, view, keys.bootstrap_seed,
                                               {random::Purpose::uniform, row * k});
        std::vector<u32> masks(u64(k) * n);
        stream.copy_out(masks.data(), buffer.data(), masks.size() * sizeof(u32));
        const u64 g = gadget_weight(plan, digit) % prime;
        for (u32 j = 0; j < r; ++j) {
          const u32* body = keys.bootstrap_bodies.data() + row * row_words +
                            (u64(j) * plan.primes.size() + l) * n;
          const auto phase = glwe_phase(s, j, masks, body, prime);
          const i64 m = s.lwe(j, element) == (key == 0 ? 1 : -1) ? 1 : 0;
          for (u32 i = 0; i < n; ++i) {
            i64 message = 0;  // -m S_t g in mask row t, m g in the slot's own body row
            if (inner < k) message = -m * s.glwe(j, inner, i);
            if (inner == k + j && i == 0) message = m;
            i64 error = (phase[i] - message * i64(g)) % i64(prime);
            if (error > i64(prime) / 2) error -= i64(prime);
            if (error < -i64(prime) / 2) error += i64(prime);
            ASSERT_LE(std::abs(error), kErrorBound)
                << name << " row " << row << " slot " << j << " coefficient " << i;
          }
        }
      }
    }
  }
}

TEST_P(TfheKeygen, WeightsAreTheGadgets) {
  const auto& gadget = world("gadget:r3").context.state().plan;
  for (u32 j = 0; j < gadget.digits; ++j)
    EXPECT_EQ(gadget_weight(gadget, j), u64(1) << 7 * (j + 1));
  const auto& raising = world("raising:r2").context.state().plan;
  const double ratio = double(raising.key_modulus()) / double(raising.modulus);
  EXPECT_NEAR(double(gadget_weight(raising, 0)), ratio, 0.5);
}

// Phases of key rows, modulo 2^log_modulus, against v B^j secret(word, slot).
template <class Secret>
void check_switch_rows(const std::vector<u8>& key, const device::SwitchShape& shape,
                       const Secrets& s, Secret secret) {
  const u64 mask = (u64(1) << shape.log_modulus) - 1, values = (u64(1) << shape.base_log) - 1;
  const u64 stride = shape.out_words();
  ASSERT_EQ(key.size(), shape.key_bytes());
  const auto word = [&](u64 at) {
    u64 x = 0;
    std::memcpy(&x, key.data() + at * shape.key_word_bytes(), shape.key_word_bytes());
    return x;
  };
  auto rng = test::test_rng();
  for (int sample = 0; sample < 3000; ++sample) {
    const u64 row = rng() % shape.key_rows();
    const u64 v = row % values + 1;
    const u32 j = u32(row / values % shape.digits), i = u32(row / values / shape.digits);
    for (u32 slot = 0; slot < shape.slots; ++slot) {
      u64 phase = word(row * stride + shape.out_dim + slot);
      for (u32 t = 0; t < shape.out_dim; ++t)
        phase -= word(row * stride + t) * static_cast<u64>(s.lwe(slot, t));
      phase -= (v * static_cast<u64>(secret(i, slot))) << (shape.base_log * j);
      const i64 error =
          static_cast<i64>((phase & mask) << (64 - shape.log_modulus)) >> (64 - shape.log_modulus);
      ASSERT_LE(std::abs(error), kErrorBound) << "row " << row << " slot " << slot;
    }
  }
}

TEST_P(TfheKeygen, SwitchingRowsEncryptMultiplesOfTheExtractedSecret) {
  for (const char* name : {"gadget:r3", "raising:r2", "raising:binary", "large"}) {
    auto& w = world(name);
    const Secrets s(w);
    SCOPED_TRACE(name);
    check_switch_rows(bytes_of(w.keys.data()->key_switch), w.context.state().torus->switch_shape(),
                      s, [&](u32 i, u32 slot) {
                        return s.glwe(slot, i / s.plan.ring_dim(), i % s.plan.ring_dim());
                      });
  }
}

TEST_P(TfheKeygen, PackingRowsEncryptTheFirstSecretInTheirSlotOnly) {
  for (const char* name : {"gadget:r3", "large:r2"}) {
    auto& w = world(name, true);
    const Secrets s(w);
    SCOPED_TRACE(name);
    const u32 n = s.plan.lwe_dim;
    check_switch_rows(bytes_of(w.keys.data()->packing), packing_shape(s.plan), s,
                      [&](u32 i, u32 slot) { return i / n == slot ? s.lwe(0, i % n) : 0; });
  }
}

EvaluationKeyParts parts_of(const EvaluationKeys& keys, const std::vector<u64>& switching,
                            const std::vector<u64>& packing) {
  const auto& data = *keys.data();
  EvaluationKeyParts parts;
  parts.secret_key = keys.secret_key_id();
  parts.bootstrap_seed = data.bootstrap_seed;
  parts.bootstrap_bodies = data.bootstrap_bodies;
  parts.switch_seed = data.switch_seed;
  parts.switch_bodies = switching;
  if (keys.has_packing()) parts.packing_seed = data.packing_seed;
  parts.packing_bodies = packing;
  return parts;
}

TEST_P(TfheKeygen, PartsGiveTheSameKeys) {
  for (const char* name : {"gadget:r3", "gadget2:approx:binary", "gadget2:split", "raising:r2",
                           "large:r2", "many:r5"}) {
    for (bool packing : {false, true}) {
      if (packing && std::string(name) == "many:r5") continue;  // a large key, with nothing new
      auto& w = world(name, packing);
      const auto switching = switch_bodies(w.keys), pack = packing_bodies(w.keys);
      EXPECT_EQ(pack.empty(), !packing);
      const EvaluationKeys again = keys_from_parts(w.context, parts_of(w.keys, switching, pack));
      EXPECT_EQ(bytes_of(again.data()->bootstrap), bytes_of(w.keys.data()->bootstrap)) << name;
      EXPECT_EQ(bytes_of(again.data()->key_switch), bytes_of(w.keys.data()->key_switch)) << name;
      if (packing) {
        EXPECT_EQ(bytes_of(again.data()->packing), bytes_of(w.keys.data()->packing));
      }
      EXPECT_EQ(again.wire_bytes(), w.keys.wire_bytes());
    }
  }
}

TEST_P(TfheKeygen, PartsThatDoNotFitAreRefused) {
  auto& w = world("gadget:r3", true);
  const auto switching = switch_bodies(w.keys), pack = packing_bodies(w.keys);
  const auto good = parts_of(w.keys, switching, pack);
  const auto refused = [&](EvaluationKeyParts parts) {
    EXPECT_THROW(keys_from_parts(w.context, parts), SerializationError);
  };
  auto parts = good;
  parts.bootstrap_bodies = good.bootstrap_bodies.first(good.bootstrap_bodies.size() - 1);
  refused(parts);
  parts = good;
  parts.secret_key = {};
  refused(parts);
  parts = good;
  parts.switch_bodies = {};
  refused(parts);
  parts = good;
  parts.packing_bodies = good.packing_bodies.first(1);
  refused(parts);
  auto bodies = w.keys.data()->bootstrap_bodies;
  bodies.back() = static_cast<u32>(w.context.state().plan.primes.back());
  parts = good;
  parts.bootstrap_bodies = bodies;
  refused(parts);
  auto rows = switching;
  rows[5] = u64(1) << w.params().spec().log_switch_modulus;
  parts = good;
  parts.switch_bodies = rows;
  refused(parts);
  auto packed = pack;
  packed[0] = ~u64(0);
  parts = good;
  parts.packing_bodies = packed;
  refused(parts);
}

TEST_P(TfheKeygen, KeysOfOneClientDiffer) {
  auto& w = world("gadget:r3");
  const EvaluationKeys other = w.client.evaluation_keys();
  EXPECT_NE(other.data()->bootstrap_seed, w.keys.data()->bootstrap_seed);
  EXPECT_NE(other.data()->switch_seed, other.data()->bootstrap_seed);
  EXPECT_NE(other.data()->bootstrap_bodies, w.keys.data()->bootstrap_bodies);
}

CRENEL_DEVICE_SUITE(TfheKeygen);

}  // namespace
}  // namespace crenel::tfhe
