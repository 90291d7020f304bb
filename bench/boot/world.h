// One bootstrapper with a client's keys, and what every row of results says of them.
#pragma once

#include <random>

#include "boot/memory.h"
#include "boot/messages.h"
#include "boot/options.h"
#include "harness/recorder.h"

namespace crenel::bench {

class BootWorld {
 public:
  /// Refuses options that the parameters cannot serve before any key is made.
  explicit BootWorld(const BootOptions& options);

  device::Stream& stream() const { return context.stream(); }
  bool has_graphs() const { return context.device().has_graphs(); }
  u64 slots() const { return boot.options().slots; }
  bool real() const { return options.options.message == circuits::BootstrapMessage::real; }
  Values draw(std::mt19937_64& rng) const;
  /// At the level that a bootstrap takes.
  ckks::Ciphertext encrypt(const Values& values);
  /// The set, the options and the levels: what all rows have in common.
  Json::Object axes() const;
  /// Errors up to here are right.
  double bound() const { return 8.0 * report.expected_error; }

  const BootOptions options;
  const ckks::Params params;

 private:
  const std::shared_ptr<device::Device> device_;
  double lap_;  ///< when the last of the steps below ended

 public:
  PartMemory memory;  ///< after each of them
  const ckks::Context context;
  const double context_seconds;
  ckks::Client client;
  ckks::EvaluationKeys keys;
  const double keys_seconds;
  circuits::Bootstrapper boot;
  const double plaintexts_seconds;
  const u64 bytes_at_rest;  ///< on the device, before the first bootstrap
  const circuits::BootstrapReport report;

 private:
  double lap(const std::string& step);
};

}  // namespace crenel::bench
