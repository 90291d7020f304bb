// What the command line of the bootstrapping suite asked for.
#pragma once

#include <optional>
#include <vector>

#include "crenel/circuits/bootstrapping.h"
#include "crenel/device/link.h"
#include "harness/device_choice.h"

namespace crenel::bench {

struct BootOptions {
  DeviceChoice device;
  std::string params = "boot40", json;
  std::string beside;  ///< a second device for the same bootstrap; empty: none
  device::ExchangeBy exchange = device::ExchangeBy::transforms;  ///< of its parts
  circuits::BootstrapOptions options;
  u32 runs = 3;               ///< fresh random messages whose errors make the statistics, of a kind
  u32 batch = 1;              ///< ciphertexts a call
  std::vector<u32> sizes;     ///< slots of bootstraps that are timed instead, complex and real each
  bool kinds = false;         ///< other kinds of messages too, against the model
  bool once = false;          ///< two eager bootstraps and no timing, for profilers
  bool quick = false;         ///< fewer repetitions
  bool memory = false;        ///< only what each part of a device holds
  bool latency = true;        ///< timed at all; otherwise errors alone
  u32 tenants = 0;            ///< clients whose keys take turns; 0: only the usual rows
  std::vector<u32> resident;  ///< MiB of device memory for staged keys, a row each
  u32 energy = 0;             ///< bootstraps whose energy is counted; 0: not asked for
};

/// As `--values` and the bindings call them.
const char* name_of(circuits::BootstrapValues values);

/// nullopt: --help was printed.
std::optional<BootOptions> parse_boot_options(const Words& words);

}  // namespace crenel::bench
