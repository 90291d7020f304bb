// Parameters in words.
#include <gtest/gtest.h>

#include <string>

#include "crenel/ckks/params.h"

namespace crenel::ckks {
namespace {

TEST(Explain, NamesTheNumbers) {
  const Params params = Params::preset("boot40");
  const std::string text = explain(params);
  for (const char* part : {"32768", "2^16", "Levels: 16", "12 levels for bootstrapping", "1745.9",
                           "128 bits", "log rescale ratio"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  EXPECT_NE(security_text(Params::preset("toy-boot40", true)).find("INSECURE"), std::string::npos);
  EXPECT_EQ(level_table(params).size(), params.max_level() + 2);
  EXPECT_EQ(level_table(params)[1][0], std::to_string(params.max_level()));
  EXPECT_EQ(level_table(params).back()[4], "-");
}

}  // namespace
}  // namespace crenel::ckks
