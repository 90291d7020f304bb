// Parameters in words and as a table.
#include <cmath>
#include <sstream>

#include "ckks/params/validate.h"
#include "crenel/ckks/params.h"
#include "crenel/core/error.h"

namespace crenel::ckks {
namespace {

// Two digits of a number, at most it.
std::string rounded_down(double x) {
  const double unit = std::pow(10.0, std::floor(std::log10(x)) - 1);
  const double value = std::floor(x / unit) * unit;
  return brief(value);
}

std::string mebibytes(u64 bytes) { return fixed(static_cast<double>(bytes) / 0x1p20, 2) + " MiB"; }

// Runs of white space as one space.
std::string one_line(const std::string& text) {
  std::istringstream in(text);
  std::string line, word;
  while (in >> word) line += (line.empty() ? "" : " ") + word;
  return line;
}

std::string aligned(const std::vector<LevelText>& rows) {
  LevelText widths;
  std::string text;
  for (std::size_t i = 0; i < widths.size(); ++i)
    for (const LevelText& row : rows)
      if (row[i].size() > widths[i].size()) widths[i].assign(row[i].size(), ' ');
  for (const LevelText& row : rows) {
    text += '\n';
    for (std::size_t i = 0; i < row.size(); ++i)
      text += cat(i ? "  " : "", widths[i].substr(row[i].size()), row[i]);
  }
  return text;
}

// What a ciphertext of the top level and a key take.
std::string memory(const Params& p) {
  const u64 limb = p.ring_dim() * sizeof(u32);
  const LevelModulus& top = p.spec().levels[p.max_level()];
  const u64 ciphertext = 2 * (u64(top.main) + top.terminal) * limb;
  const u64 key = 2 * u64(p.dnum()) * (p.chain_limbs() + p.alpha()) * limb;
  return cat("Memory: ", mebibytes(ciphertext), " a ciphertext at the top level, ", mebibytes(key),
             " a key (", p.dnum(), " digits); about half of each on the wire while fresh.");
}

}  // namespace

std::string security_text(const Params& p) {
  const auto bound = max_log_pq(p.log_n(), 128, p.spec().hamming_weight);
  const std::string bits = cat("about ", fixed(p.security_bits(), 0), " bits"),
                    limit = cat(bound ? "bound " + fixed(*bound, 0)
                                      : "no 128-bit bound is known for this ring",
                                " for 128 bits");
  if (p.insecure()) return cat("INSECURE, ", bits, ": for tests only (", limit, ")");
  return cat(bits, " (classical; ", limit, ")");
}

std::vector<LevelText> level_table(const Params& p) {
  std::vector<LevelText> rows{
      {"level", "main + terminal limbs", "log Q", "log scale", "log rescale ratio", "max value"}};
  for (u32 level = p.max_level() + 1; level-- > 0;) {
    const LevelModulus& m = p.spec().levels[level];
    rows.push_back({cat(level), cat(m.main, " + ", m.terminal), fixed(p.log_q(level), 2),
                    level <= p.normal_top_level() ? fixed(std::log2(p.scale(level)), 4) : "-",
                    level ? fixed(std::log2(p.rescale_ratio(level)), 4) : "-",
                    level <= p.normal_top_level() ? rounded_down(p.max_value(level)) : "-"});
  }
  return rows;
}

std::string explain(const Params& p) {
  const Spec& spec = p.spec();
  const u32 top = p.normal_top_level();
  std::ostringstream out;
  out << (p.name().empty() ? "generated parameters" : p.name()) << "\n\n"
      << "Vectors: " << p.slots() << " complex or real numbers in a ciphertext (ring degree N = 2^"
      << p.log_n() << ").\n"
      << "Levels: " << top
      << ". A product consumes one; at level 0 nothing can be multiplied any more.\n";
  if (p.max_level() > top)
    out << "Above them lie " << p.max_level() - top << " levels for bootstrapping.\n";
  out << "Scale: 2^" << spec.log_scale << ", so numbers keep "
      << static_cast<i64>(spec.log_scale) - static_cast<i64>(p.log_n())
      << " bits or more after the point;\n"
      << "the scales of the levels differ from it by a factor of at most 2^"
      << fixed(p.scale_deviation(), 4) << ".\n"
      << "Values: up to " << rounded_down(p.max_value(0))
      << " at level 0 and more above it (max value below; docs/guide/getting-started.md); what a\n"
      << "result has beyond that is lost without a sign, unless inputs have stated bounds.\n"
      << "Modulus: " << spec.main.size() << " primes near 2^30, " << spec.terminal.size()
      << " near 2^25 and " << p.alpha() << " special ones; log PQ = " << fixed(p.log_pq(), 1)
      << ".\n"
      << "Secret: "
      << (spec.hamming_weight ? cat("sparse ternary with ", spec.hamming_weight, " non-zero")
                              : std::string("dense ternary"))
      << " coefficients. Security: " << security_text(p) << ".\n"
      << memory(p) << "\n"
      << aligned(level_table(p));
  if (!spec.provenance.empty()) out << "\n\nProvenance: " << one_line(spec.provenance);
  return out.str();
}

}  // namespace crenel::ckks
