// What TFHE's kernels are for, on every device: rows decrypt, a key switch keeps the phase, a blind
// rotation looks up the phase in a table.
#include "support/devices.h"
#include "support/torus_world.h"

namespace crenel::test {
namespace {

class TorusMeaning : public DeviceTest {};
CRENEL_DEVICE_SUITE(TorusMeaning);

constexpr i64 kErrorBound = 21;  // of random::error_value

i64 centred(u64 x, u64 modulus) {
  x %= modulus;
  return 2 * x >= modulus ? static_cast<i64>(x) - static_cast<i64>(modulus) : static_cast<i64>(x);
}

TEST_P(TorusMeaning, SamplesDecryptAndExpand) {
  Rng rng = test_rng();
  for (const u32 log_modulus : {9u, 17u, 32u})
    for (const u32 slots : {1u, 3u, 11u}) {
      SCOPED_TRACE(cat("2^", log_modulus, ", slots ", slots));
      const u32 dim = 71, rows = 700;
      const u64 modulus = u64(1) << log_modulus, count = u64(rows) * (dim + slots);
      const TorusWorld w(device_, raising_plan(dim, 1, slots, 5, 17, 20));
      const auto secrets = w.upload(torus_secrets(u64(slots) * dim, rng));
      std::vector<u64> messages(u64(rows) * slots);
      for (auto& m : messages) m = rng() % modulus;
      const auto m = w.upload(messages);
      const auto out = w.stream->allocate(count * 4), phase = w.stream->allocate(rows * slots * 4);
      const random::Seed mask = torus_seed(rng), secret = torus_seed(rng);
      const device::LweView samples{out.as<u32>(), {rows, dim, slots, log_modulus}};
      w.kernels->sample_lwe(*w.stream, samples, {mask, 3}, {secret, 5}, secrets.as<i8>(),
                            m.as<u64>());
      w.kernels->phase(*w.stream, phase.as<u32>(), samples, secrets.as<i8>());
      const auto phases = w.download<u32>(phase, u64(rows) * slots);
      double squares = 0;
      for (u64 i = 0; i < phases.size(); ++i) {
        const i64 error = centred(phases[i] - messages[i], modulus);
        ASSERT_LE(std::abs(error), kErrorBound);
        squares += static_cast<double>(error * error);
      }
      // variance 10.5; seven standard deviations of an estimate from 700 samples are 3.9
      EXPECT_NEAR(squares / static_cast<double>(phases.size()), 10.5, 3.9);

      const auto sampled = w.download<u32>(out, count);
      std::vector<u64> bodies;
      for (u64 y = 0; y < rows; ++y)
        for (u32 j = 0; j < slots; ++j) bodies.push_back(sampled[y * (dim + slots) + dim + j]);
      const auto b = w.upload(bodies);
      w.stream->fill_zero(out.data(), out.bytes());
      w.kernels->expand_lwe(*w.stream, samples, {mask, 3}, b.as<u64>());
      EXPECT_EQ(first_difference(w.download<u32>(out, count), sampled), "");
    }
}

TEST_P(TorusMeaning, KeySwitchKeepsThePhase) {
  Rng rng = test_rng();
  struct Case {
    u32 log_modulus, log_out, base_log, digits;
  };
  for (const Case& c : {Case{32, 20, 4, 8}, {40, 30, 7, 6}, {24, 24, 6, 4}, {36, 16, 12, 3}})
    for (const u32 slots : {1u, 3u}) {
      SCOPED_TRACE(cat("2^", c.log_modulus, " to 2^", c.log_out, ", slots ", slots));
      const u32 in_dim = 24, out_dim = 17, batch = 20;
      const device::SwitchShape shape{in_dim,    out_dim,    slots,   c.log_modulus,
                                      c.log_out, c.base_log, c.digits};
      const u64 modulus = u64(1) << c.log_modulus;
      const auto from = torus_secrets(u64(slots) * in_dim, rng),
                 to = torus_secrets(u64(slots) * out_dim, rng);
      std::vector<u64> messages;
      for (u32 i = 0; i < in_dim; ++i)
        for (u32 j = 0; j < c.digits; ++j)
          for (u64 v = 1; v < u64(1) << c.base_log; ++v)
            for (u32 t = 0; t < slots; ++t)
              messages.push_back((v << (c.base_log * j)) *
                                 static_cast<u64>(i64(from[u64(t) * in_dim + i])));
      std::vector<u64> in(u64(batch) * (in_dim + slots));
      for (auto& x : in) x = rng() % modulus;

      const TorusWorld w(device_, raising_plan(6, 1, 1, 5, 17, 20));
      const auto secrets = w.upload(to);
      const auto m = w.upload(messages), rows = w.upload(in);
      const auto key = w.stream->allocate(shape.key_bytes());
      const auto out = w.stream->allocate(u64(batch) * shape.out_words() * 4);
      const auto phase = w.stream->allocate(u64(batch) * slots * 4);
      const random::Seed masks = torus_seed(rng), errors = torus_seed(rng);
      const device::LweView key_rows = shape.key(key.data());
      const device::LweView switched{out.as<u32>(), shape.out(batch)};
      w.kernels->sample_lwe(*w.stream, key_rows, {masks}, {errors}, secrets.as<i8>(), m.as<u64>());
      w.kernels->key_switch(*w.stream, shape, switched, {rows.as<const u64>(), shape.in(batch)},
                            key_rows);
      w.kernels->phase(*w.stream, phase.as<u32>(), switched, secrets.as<i8>());
      const auto phases = w.download<u32>(phase, u64(batch) * slots);
      const u64 unit = modulus >> c.log_out;
      // errors of the rows that were subtracted, and half a unit for each rounded word
      const u64 bound = u64(in_dim) * c.digits * kErrorBound + unit * (out_dim + 1) / 2 + 1;
      for (u64 y = 0; y < batch; ++y)
        for (u32 t = 0; t < slots; ++t) {
          const u64* row = &in[y * (in_dim + slots)];
          u64 expected = row[in_dim + t];
          for (u32 i = 0; i < in_dim; ++i)
            expected -= row[i] * static_cast<u64>(i64(from[u64(t) * in_dim + i]));
          const u64 got = phases[y * slots + t] * unit;
          EXPECT_LE(static_cast<u64>(std::abs(centred(got - expected, modulus))), bound);
        }
    }
}

// Keys without masks and errors: row t of digit d is g_d [s_i = 1] in out t alone. Every step then
// multiplies the accumulator by X^(a_i s_i), up to the decomposition's error.
std::vector<i64> plain_key(const TorusPlan& plan, const std::vector<i8>& secrets) {
  std::vector<i64> key(plan.lwe_dim * plan.key_polys() * plan.ring_dim(), 0);
  const i64 t = static_cast<i64>(plan.key_modulus());
  u64 poly = 0;
  for (u32 i = 0; i < plan.lwe_dim; ++i)
    for (u32 k = 0; k < plan.keys_per_step(); ++k)
      for (u32 d = 0; d < plan.digits; ++d)
        for (u32 row = 0; row < plan.polys(); ++row)
          for (u32 out = 0; out < plan.polys(); ++out, ++poly) {
            // slots have secrets of their own, masks take the first one's: they stay zero
            const u32 slot = row < plan.glwe_dim ? 0 : row - plan.glwe_dim;
            if (row != out || secrets[slot * plan.lwe_dim + i] != (k == 0 ? 1 : -1)) continue;
            const i64 g =
                plan.path == NoisePath::gadget
                    ? i64(1) << (plan.base_log * (d + 1))
                    : (t + static_cast<i64>(plan.modulus) / 2) / static_cast<i64>(plan.modulus);
            key[poly * plan.ring_dim()] = g;
          }
  return key;
}

TEST_P(TorusMeaning, BlindRotationLooksUpThePhase) {
  Rng rng = test_rng();
  for (TorusPlan plan : {raising_plan(13, 2, 3, 6, 17, 20), gadget_plan(13, 1, 2, 7, 1, 27, 7, 3),
                         gadget_plan(13, 1, 1, 8, 2, 25, 17, 2)})
    for (const auto secret : {LweSecret::ternary, LweSecret::binary})
      for (const auto arithmetic : kinds_of_arithmetic(plan)) {
        plan.secret = secret, plan.arithmetic = arithmetic;
        plan.log_switch_modulus = 40, plan.switch_digits = 8;  // finer than Q or nearly so
        SCOPED_TRACE(describe(plan));
        auto in = rotation_input(plan, 9, 3, true, rng);
        auto secrets = torus_secrets(u64(plan.slots) * plan.lwe_dim, rng);
        if (secret == LweSecret::binary)
          for (auto& s : secrets) s = static_cast<i8>(s & 1);
        in.key = plain_key(plan, secrets);
        const auto out = TorusWorld(device_, plan).blind_rotate(in);
        const u64 n = plan.ring_dim(), q = plan.modulus;
        // each step drops the lowest digit, or rounds, for two of the sum's terms
        const double base =
            plan.path == NoisePath::gadget ? std::ldexp(1.0, int(plan.base_log)) : 2;
        const double bound = 2 * plan.lwe_dim * base;
        for (u64 y = 0; y < in.batch; ++y)
          for (u32 j = 0; j < plan.slots; ++j) {
            const u32* row = &in.rows[y * plan.words()];
            u64 phase = row[plan.lwe_dim + j];  // modulo 2N = q
            for (u32 i = 0; i < plan.lwe_dim; ++i)
              phase -= row[i] * static_cast<u64>(i64(secrets[j * plan.lwe_dim + i]));
            phase %= 2 * n;
            const u32 lut = in.index[y * plan.slots + j];
            const u64 value = in.tables[lut * n + phase % n];
            const u64 expected = (phase < n ? value : q - value) + in.offsets[lut];
            const u64 got = static_cast<u64>(
                static_cast<u128>(out[y * plan.extracted_words() + plan.extracted_dim() + j]) * q >>
                plan.log_switch_modulus);
            const i64 error = centred(got + q - expected % q, q);
            // Q above 2^40 comes back in steps of Q / 2^40
            EXPECT_LE(std::abs(static_cast<double>(error)),
                      bound + 1 + std::ldexp(static_cast<double>(q), -40));
          }
      }
}

}  // namespace
}  // namespace crenel::test
