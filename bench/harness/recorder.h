// Results with provenance: printed as they come, written as JSON at the end. A result whose output
// was wrong is kept, marked, and makes the program fail.
#pragma once

#include <string>
#include <vector>

#include "crenel/device/device.h"
#include "harness/arguments.h"
#include "harness/json.h"
#include "harness/timer.h"

namespace crenel::bench {

struct Result {
  std::string name;   ///< "hmult_rescale"
  Json::Object axes;  ///< params, level, limbs, batch, graph, ...
  Timing timing;
  u32 batch = 1;       ///< ciphertexts a call works on
  double error = 0.0;  ///< largest deviation of the decrypted output from the clear computation
  double bound = 0.0;  ///< what is still right
  double bytes = 0.0;  ///< of the result or key, 0: not given
};

class Recorder {
 public:
  /// `words`: the program and its arguments, for the provenance.
  Recorder(std::string suite, const Words& words);
  void add(const Result& result);
  /// Anything else worth publishing, under its own name beside the results; printed too.
  void note(const std::string& name, Json value);
  /// Empty path: no file. Returns the exit code: 1 when a result was wrong. ParameterError when the
  /// file cannot be written.
  int finish(const std::string& path, const device::Device& device) const;

 private:
  std::string suite_, command_;
  Json::Array results_;
  Json::Object notes_;
  std::vector<std::string> wrong_;
};

/// Commit, compiler, CUDA, driver, clocks, processors, time.
Json::Object provenance(const device::Device& device, const std::string& command);

}  // namespace crenel::bench
