#include "boot/options.h"

namespace crenel::bench {

std::optional<BootOptions> parse_boot_options(const Words& words) {
  BootOptions o;
  bool minimal = false, slot_to_coeff_first = false;
  u32 ratio = 5;  // what the published figures are of
  Arguments arguments(
      "Bootstrapping: latency, precision, levels and memory. Exit status 1 when a result is "
      "wrong.");
  o.device.add_to(arguments);
  arguments
      .text("--params", o.params, "a set with levels for it (crenel params list); default boot40")
      .positional("--params")
      .number("--runs", o.runs, "fresh random messages whose errors are measured; default 3")
      .number("--batch", o.batch, "ciphertexts a call; default 1", 1)
      .number("--slots", o.options.slots, "a power of two; default all")
      .numbers("--sizes", o.sizes,
               "these slots one after the other, complex and real messages each")
      .number("--ratio", ratio, "log2 of the message ratio; default 5")
      .value("--target", "level of the result at least; default the highest",
             [&o](const std::string& text) {
               o.options.target_level =
                   static_cast<u32>(parse_number("--target", text, 0, ckks::kMaxLimbs));
             })
      .flag("--minimal", minimal, "minimal keys: two a transform")
      .flag("--stc-first", slot_to_coeff_first, "SlotToCoeff before CoeffToSlot")
      .flag("--kinds", o.kinds, "other kinds of messages too, against the model")
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
      .flag("--quick", o.quick, "fewer repetitions")
      .json(o.json);
  if (!arguments.parse(words)) return std::nullopt;
  o.options.message_ratio = ratio;
  if (minimal) o.options.keys = circuits::KeyMode::minimal;
  if (slot_to_coeff_first) o.options.order = circuits::BootstrapOrder::slot_to_coeff_first;
  return o;
}

}  // namespace crenel::bench
