// The tables of docs/guide/bootstrap_precision.md are those of the model.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "support/boot_model.h"

namespace crenel::circuits {
namespace {

using test::boot_model;

struct Kind {
  const char* name;
  MessageKind kind;
};
constexpr Kind kKinds[] = {{"uniform complex, parts in [-1, 1]", MessageKind::uniform_complex},
                           {"uniform real in [-1, 1]", MessageKind::uniform_real},
                           {"uniform real in [0, 1]", MessageKind::uniform_unit},
                           {"pattern of 16 numbers in [-1, 1], repeated", MessageKind::periodic},
                           {"one slot 1, the others 0", MessageKind::one_hot},
                           {"constant 1; worst of all within 1", MessageKind::bound}};

void cell(std::string& out, double value) {
  char text[16];
  std::snprintf(text, sizeof text, " %.1f |", value);
  out += text;
}

std::string rendered() {
  constexpr u32 kColumns[][2] = {{4, 0}, {5, 0}, {6, 0}, {8, 0}, {10, 0}, {2, 3}, {4, 3}, {6, 3}};
  std::string out = "| slots |", rule = "|---|";
  for (const auto& [rho, arcsine] : kColumns) {
    out += " $\\rho$ = " + std::to_string(rho);
    if (arcsine) out += ", arcsine " + std::to_string(arcsine);
    out += " |";
    rule += "---|";
  }
  out += "\n" + rule + "\n";
  for (const auto& [name, kind] : kKinds) {
    out += std::string("| ") + name + " |";
    for (const auto& [rho, arcsine] : kColumns)
      cell(out, -std::log2(estimate_precision(boot_model(rho, arcsine), {kind}).total.max));
    out += "\n";
  }
  out +=
      "\n| slots | best $\\rho$ | bits | best $\\rho$, arcsine 3 | bits |\n|---|---|---|---|---|\n";
  for (const auto& [name, kind] : kKinds) {
    out += std::string("| ") + name + " |";
    for (u32 arcsine : {0u, 3u}) {
      const auto best = recommended_message_ratio({kind}, 99, boot_model(5, arcsine));
      out += " " + std::to_string(best.message_ratio) + " |";
      cell(out, best.bits);
    }
    out += "\n";
  }
  return out;
}

TEST(BootstrapGuide, IsRenderedFromTheModel) {
  std::ifstream file(std::string(CRENEL_SOURCE_DIR) + "/docs/guide/bootstrap_precision.md");
  std::ostringstream text;
  text << file.rdbuf();
  const std::string begin = "<!-- model -->\n", end = "<!-- /model -->";
  const std::string page = text.str();
  const auto from = page.find(begin), to = page.find(end);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  EXPECT_EQ(page.substr(from + begin.size(), to - from - begin.size()), rendered());
}

}  // namespace
}  // namespace crenel::circuits
