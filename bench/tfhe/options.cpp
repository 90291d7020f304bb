#include "tfhe/options.h"

namespace crenel::bench {

std::optional<TfheOptions> parse_tfhe_options(const Words& words) {
  TfheOptions o;
  Arguments arguments(
      "TFHE: bootstraps a second, latency, sizes of keys, failures. Exit status 1 when results are "
      "wrong.");
  arguments.text("--device", o.device, "auto, cpu, cuda, cuda:<index> or ref")
      .text("--set", o.set, "a set of crenel params list; default bool128")
      .positional("--set")
      .number("--slots", o.slots, "messages under a mask, 1 to 16; default 1", 1)
      .number("--step", o.step, "bits a step, of sets with groups; default the set's", 1)
      .number("--batch", o.batch, "messages of a call; default 1024", 1)
      .value("--arithmetic", "exact, approx or split; default the set's own",
             [&o](const std::string& text) { o.arithmetic = tfhe::arithmetic_from_string(text); })
      .text("--operation", o.operation,
            "a gate (nand, and, or, nor, xor, xnor, majority), refresh, lut, lut_negacyclic,\n"
            "                       lut_periodic, floor, sign or decompose; default nand, or lut "
            "where the set is for tables")
      .number("--floor-bits", o.floor_bits, "bits that floor removes; default half of them")
      .flag("--include-transfers", o.transfers, "also with copies from and to host memory")
      .number("--verify", o.verify, "gates or look-ups of a long check of failures; default none")
      .flag("--no-latency", o.no_latency, "do not time a single row as well")
      .flag("--once", o.once, "two calls and no timing, for profilers; then what --verify asks for")
      .flag("--quick", o.quick, "fewer repetitions")
      .json(o.json);
  if (!arguments.parse(words)) return std::nullopt;
  return o;
}

}  // namespace crenel::bench
