// Named sets against the published tables, and derived quantities.
#include "crenel/ckks/params.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ckks/params/preset_tables.h"
#include "crenel/core/error.h"

namespace crenel::ckks {

namespace {

struct Row {
  u32 main, terminal;
  double log_q, log_rp, log_s;  // 0: not in the table
};

// Section 1.4 of the design reference, digit by digit.
const std::vector<Row> kBoot40Table{{0, 2, 49.978, 0, 40},
                                    {3, 0, 89.980, 40.0027, 40.00133},
                                    {1, 4, 129.980, 39.9993, 40.00034},
                                    {4, 2, 169.981, 40.0014, 40.00087},
                                    {7, 0, 209.984, 40.0032, 40.00203},
                                    {5, 4, 249.980, 39.9962, 39.99912},
                                    {8, 2, 289.977, 39.9969, 39.99801},
                                    {11, 0, 329.978, 40.0005, 39.99924},
                                    {9, 4, 369.977, 39.9991, 39.99917},
                                    {12, 2, 409.981, 40.0037, 40.00144},
                                    {15, 0, 449.977, 39.9968, 39.99913},
                                    {13, 4, 489.977, 39.9991, 39.99913},
                                    {16, 2, 529.974, 39.9971, 39.99812},
                                    {19, 0, 569.978, 40.0038, 40.00095},
                                    {17, 4, 609.981, 40.0030, 40.00200},
                                    {20, 2, 649.975, 39.9946, 39.99829},
                                    {23, 0, 689.977, 40.0017, 39.99999},
                                    {25, 0, 747.977, 0, 0},
                                    {27, 0, 0, 0, 0},
                                    {29, 0, 0, 0, 0},
                                    {31, 0, 0, 0, 0},
                                    {33, 0, 0, 0, 0},
                                    {35, 0, 0, 0, 0},
                                    {37, 0, 0, 0, 0},
                                    {39, 0, 1153.977, 0, 0},
                                    {41, 0, 1213.977, 59.9998, 0},
                                    {43, 0, 1273.974, 59.9977, 0},
                                    {43, 2, 1323.952, 49.9777, 0},
                                    {43, 4, 1373.925, 49.9727, 0}};

TEST(CkksParams, Boot40ReproducesTheTable) {
  const Params params = Params::preset("boot40");
  ASSERT_EQ(params.max_level() + 1, kBoot40Table.size());
  for (u32 l = 0; l < kBoot40Table.size(); ++l) {
    const Row& row = kBoot40Table[l];
    EXPECT_EQ(params.spec().levels[l], (LevelModulus{row.main, row.terminal})) << l;
    EXPECT_EQ(params.window_end(l) - params.window_begin(l), row.main + row.terminal) << l;
    if (row.log_q > 0) {
      EXPECT_NEAR(params.log_q(l), row.log_q, 6e-4) << l;
    }
    if (row.log_rp > 0) {
      EXPECT_NEAR(std::log2(params.rescale_ratio(l)), row.log_rp, 6e-5) << l;
    }
    if (row.log_s > 0) {
      EXPECT_NEAR(std::log2(params.scale(l)), row.log_s, 6e-6) << l;
    }
  }
  EXPECT_EQ(params.dnum(), 4u);
  EXPECT_EQ(params.alpha(), 12u);
  EXPECT_NEAR(params.log_p(), 371.93, 5e-3);
  EXPECT_EQ(params.scale(0), std::exp2(40));
  EXPECT_EQ(params.scale(20), std::exp2(40));
}

TEST(CkksParams, BootstrappingSetsReproduceTheTable) {
  struct Set {
    const char* name;
    u32 normal_levels, limbs;
    double log_pq, deviation;
  };
  for (const Set& set :
       {Set{"boot40", 16, 47, 1745.85, 0.0020}, Set{"boot35", 18, 47, 1740.92, 0.0055},
        Set{"boot30", 21, 47, 1745.73, 0.0096}, Set{"boot45", 14, 47, 1744.03, 0.0036},
        Set{"boot50", 12, 46, 1713.91, 0.0063}, Set{"boot48dr", 12, 50, 1709.81, 0.0080},
        Set{"boot35-h1024", 18, 46, 1710.93, 0.0055}}) {
    SCOPED_TRACE(set.name);
    const Params params = Params::preset(set.name);
    EXPECT_EQ(params.normal_top_level(), set.normal_levels);
    EXPECT_EQ(params.chain_limbs(), set.limbs);
    EXPECT_NEAR(params.log_pq(), set.log_pq, 5e-3);
    EXPECT_NEAR(params.scale_deviation(), set.deviation, 5e-5);
    EXPECT_EQ(params.max_level(), set.normal_levels + 12);  // 8 EvalMod + 4 CoeffToSlot
    EXPECT_GE(params.security_bits(), 128);
    EXPECT_FALSE(params.insecure());
  }
}

TEST(CkksParams, EveryNamedSetKeepsItsPromises) {
  EXPECT_FALSE(preset_tables().empty());
  for (const PresetTable& table : preset_tables()) {
    SCOPED_TRACE(std::string(table.name));
    const Params params = Params::preset(std::string(table.name), true);
    EXPECT_EQ(params.name(), table.name);
    EXPECT_EQ(params.chain_limbs(), table.expected_limbs);
    EXPECT_NEAR(params.log_pq(), table.expected_log_pq, 5.1e-3);
    EXPECT_NEAR(params.scale_deviation(), table.expected_scale_deviation, 5.1e-5);
    EXPECT_FALSE(params.spec().provenance.empty());
    EXPECT_FALSE(table.description.empty());
    EXPECT_EQ(params.insecure(), table.name.starts_with("toy-"));
    if (!params.insecure()) {
      EXPECT_NO_THROW(Params::preset(std::string(table.name)));
    }
  }
}

TEST(CkksParams, EveryRealSetHasAToyVersion) {
  const std::vector<std::string> names = Params::preset_names();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  for (const std::string& name : names) {
    if (name.starts_with("toy-")) continue;
    SCOPED_TRACE(name);
    const Params real = Params::preset(name), toy = Params::preset("toy-" + name, true);
    EXPECT_EQ(real.spec().levels, toy.spec().levels);
    EXPECT_TRUE(toy.log_n() == 11 || toy.log_n() == 12);
    EXPECT_FALSE(real == toy);
  }
}

TEST(CkksParams, NamesAndConsentAreChecked) {
  try {
    Params::preset("boot41");
    FAIL();
  } catch (const ParameterError& error) {
    EXPECT_NE(std::string(error.what()).find("boot40"), std::string::npos);
    EXPECT_EQ(error.field("name"), "boot41");
  }
  EXPECT_THROW(Params::preset("toy-boot40"), ParameterError);
  EXPECT_THROW(Params::preset_description("boot41"), ParameterError);
  EXPECT_NE(Params::preset_description("toy-boot40").find("INSECURE"), std::string::npos);
  Spec spec = Params::preset("boot40").spec();
  spec.log_n = 15;
  try {
    Params::from_spec(spec);
    FAIL();
  } catch (const ParameterError& error) {
    const std::string message = error.field("security_below_128");
    EXPECT_NE(message.find("1745.85"), std::string::npos) << message;
    EXPECT_NE(message.find("868"), std::string::npos) << message;
  }
  EXPECT_TRUE(Params::from_spec(spec, true).insecure());
}

TEST(CkksParams, ScalesCloseUnderMultiplyAndRescale) {
  for (const std::string& name : Params::preset_names()) {
    const Params params = Params::preset(name, true);
    for (u32 l = 1; l <= params.normal_top_level(); ++l) {
      const double back = params.scale(l) * params.scale(l) / params.rescale_ratio(l);
      EXPECT_NEAR(back / params.scale(l - 1), 1, 1e-14) << name << " level " << l;
    }
  }
}

TEST(CkksParams, LayoutIsInvertedTerminalsMainSpecial) {
  const Params params = Params::preset("boot40");
  EXPECT_EQ(params.primes().size(), 59u);
  EXPECT_EQ(params.primes().front(), 36175873u);  // tau_3
  EXPECT_EQ(params.primes()[3], 31326209u);       // tau_0
  EXPECT_EQ(params.primes()[4], 1095761921u);     // q_0
  EXPECT_EQ(params.primes()[47], 2147352577u);    // p_0
  EXPECT_EQ(params.window_begin(2), 0u);
  EXPECT_EQ(params.window_end(2), 5u);
  EXPECT_EQ(params.slots(), 32768u);
}

TEST(CkksParams, IdentityFollowsContentOnly) {
  const Params params = Params::preset("boot40");
  // Computed by tests/golden/params_model.py.
  EXPECT_EQ(params.id(), "2da431d2feb39d35b20b87d2274200ce");
  EXPECT_EQ(Params::preset("toy-boot48dr", true).id(), "d13f4c28b21de37d2c4a0f802cbb2bfb");
  Spec spec = params.spec();
  spec.name = "other", spec.provenance = "elsewhere";
  EXPECT_TRUE(Params::from_spec(spec) == params);
  std::set<std::string> ids;
  for (const std::string& name : Params::preset_names())
    ids.insert(Params::preset(name, true).id());
  EXPECT_EQ(ids.size(), Params::preset_names().size());
}

}  // namespace
}  // namespace crenel::ckks
