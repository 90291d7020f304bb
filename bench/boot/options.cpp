#include "boot/options.h"

#include <array>

#include "crenel/core/error.h"

namespace crenel::bench {
namespace {

using circuits::BootstrapValues;

constexpr std::array kValues{BootstrapValues::unknown, BootstrapValues::centred,
                             BootstrapValues::non_negative, BootstrapValues::constant};

BootstrapValues values_of(const std::string& name) {
  for (const BootstrapValues values : kValues)
    if (name == name_of(values)) return values;
  throw ParameterError(
      cat("--values: \"", name, "\", expected unknown, centred, non_negative or constant"),
      {{"option", "--values"}, {"value", name}});
}

}  // namespace

const char* name_of(BootstrapValues values) {
  switch (values) {
    case BootstrapValues::unknown:
      return "unknown";
    case BootstrapValues::centred:
      return "centred";
    case BootstrapValues::non_negative:
      return "non_negative";
    case BootstrapValues::constant:
      return "constant";
  }
  return "";
}

std::optional<BootOptions> parse_boot_options(const Words& words) {
  BootOptions o;
  bool minimal = false, plain = false, slot_to_coeff_first = false, untimed = false;
  Arguments arguments(
      "Bootstrapping: latency, precision, levels and memory. Exit status 1 when a result is "
      "wrong.");
  o.device.add_to(arguments);
  arguments
      .text("--params", o.params, "a set with levels for it (crenel params list); default boot40")
      .positional("--params")
      .number("--runs", o.runs,
              "fresh random messages whose errors are measured, of each kind; default 3")
      .number("--batch", o.batch, "ciphertexts a call; default 1", 1)
      .number("--slots", o.options.slots, "a power of two; default all")
      .numbers("--sizes", o.sizes,
               "these slots one after the other, complex and real messages each")
      .value("--values", "what they are like: unknown (default), centred, non_negative, constant",
             [&o](const std::string& text) { o.options.values = values_of(text); })
      .value("--ratio", "log2 of the message ratio; default the library's choice for the values",
             [&o](const std::string& text) {
               o.options.message_ratio =
                   static_cast<u32>(parse_number("--ratio", text, 1, ckks::kMaxLimbs));
             })
      .value("--target", "level of the result at least; default the highest",
             [&o](const std::string& text) {
               o.options.target_level =
                   static_cast<u32>(parse_number("--target", text, 0, ckks::kMaxLimbs));
             })
      .flag("--minimal", minimal, "minimal keys: two a transform")
      .flag("--plain-keys", plain, "no keys for aligned levels, which save a digit there")
      .flag("--stc-first", slot_to_coeff_first, "SlotToCoeff before CoeffToSlot")
      .flag("--kinds", o.kinds, "other kinds of messages too, against the model")
      .flag("--no-latency", untimed, "errors alone: for machines that others use, too")
      .flag("--once", o.once, "two eager bootstraps and no timing, for profilers")
      .number("--tenants", o.tenants, "clients whose keys take turns, against one client", 1)
      .numbers("--resident", o.resident,
               "MiB of device memory for keys staged from host memory, batches 1, 8 and 32")
      .text("--beside", o.beside,
            "another device for the same bootstrap, such as cuda:0+1, by copies of the keys")
      .value("--exchange", "there: events, kernels or transforms; default transforms",
             [&o](const std::string& text) { o.exchange = device::exchange_of(text); })
      .flag("--memory", o.memory,
            "only what each part of the device holds, and of the one beside; models of GPUs, too")
      .number("--energy", o.energy, "joules of a bootstrap, over so many of them: on GPUs", 1)
      .flag("--quick", o.quick, "fewer repetitions")
      .json(o.json)
      .needs("--exchange", "--beside")
      .excludes("--memory", {"--runs", "--sizes", "--kinds", "--no-latency", "--once", "--tenants",
                             "--resident", "--exchange", "--energy", "--quick"})
      .excludes("--once", {"--runs", "--sizes", "--kinds", "--no-latency", "--tenants",
                           "--resident", "--beside", "--energy", "--quick", "--json"})
      .excludes("--sizes", {"--slots", "--runs", "--kinds", "--no-latency", "--tenants",
                            "--resident", "--beside", "--energy"})
      .excludes("--no-latency", {"--tenants", "--resident", "--beside", "--energy", "--quick"});
  if (!arguments.parse(words)) return std::nullopt;
  for (const auto& [option, given] : {std::pair("--kinds", o.kinds), {"--no-latency", untimed}})
    if (given && o.runs == 0)
      throw ParameterError(
          cat(option, " with --runs 0, expected messages whose errors are measured"),
          {{"option", option}, {"other", "--runs"}, {"value", "0"}});
  o.latency = !untimed;
  if (minimal) o.options.keys = circuits::KeyMode::minimal;
  o.options.savings.aligned_keys = !plain;
  if (slot_to_coeff_first) o.options.order = circuits::BootstrapOrder::slot_to_coeff_first;
  return o;
}

}  // namespace crenel::bench
