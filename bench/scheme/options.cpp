#include "scheme/options.h"

#include "crenel/core/error.h"

namespace crenel::bench {

std::optional<Options> parse_options(const Words& words) {
  Options o;
  bool shared = false;
  Arguments arguments("Operations of CKKS at several levels, and what a client does.");
  o.device.add_to(arguments);
  arguments
      .value("--params", "sets (boot40), or gen:<log_n>:<scale_bits>:<depth>[:<alpha>]; by commas",
             [&o](const std::string& text) { o.params = split(text); })
      .numbers("--limbs", o.limbs, "levels are chosen nearest to these; default 48,36,24,12")
      .numbers("--batch", o.batches, "ciphertexts a call; default 1")
      .value("--graph", "off, on or both; default both",
             [&o](const std::string& text) {
               if (text != "off" && text != "on" && text != "both")
                 throw ParameterError(cat("--graph takes off, on or both, got '", text, "'"),
                                      {{"graph", text}});
               o.graph.clear();
               if (text != "on") o.graph.push_back(false);
               if (text != "off") o.graph.push_back(true);
             })
      .value("--only", "operations whose name contains one of these; by commas",
             [&o](const std::string& text) { o.only = split(text); })
      .flag(
          "--batches", shared,
          "what vectors of a batch share, at few limbs: boot35,boot40, limbs 12,9,7,5,3, batches "
          "1,4,8, HRot, HMult, plaintext products and sums of rotations, where not said otherwise")
      .flag("--plain-keys", o.plain_keys, "no keys for aligned levels, which save a digit there")
      .flag("--quick", o.quick, "seconds instead of minutes, larger spread")
      .json(o.json);
  if (!arguments.parse(words)) return std::nullopt;
  if (!shared) return o;
  const Options defaults;
  if (o.params == defaults.params) o.params = {"boot35", "boot40"};
  if (o.limbs == defaults.limbs) o.limbs = {12, 9, 7, 5, 3};
  if (o.batches == defaults.batches) o.batches = {1, 4, 8};
  if (o.only.empty()) o.only = {"hrot", "hmult", "pmult", "rotate_"};
  return o;
}

ckks::Params params_of(const std::string& name) {
  if (!name.starts_with("gen:")) return ckks::Params::preset(name, name.starts_with("toy-"));
  std::string list = name.substr(4);
  for (char& c : list)
    if (c == ':') c = ',';
  std::vector<u32> n;
  for (const auto& part : split(list))
    n.push_back(static_cast<u32>(parse_number("gen:", part, 1, 1u << 20)));
  if (n.size() < 3 || n.size() > 4)
    throw ParameterError(
        cat("--params ", name, ", expected gen:<log_n>:<scale_bits>:<depth>[:<alpha>]"),
        {{"params", name}});
  return ckks::Params::generate(n[0], n[1], n[2], false, n.size() == 4 ? n[3] : 0);
}

}  // namespace crenel::bench
