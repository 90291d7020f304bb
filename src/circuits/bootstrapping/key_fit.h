// Which bootstrap a set of keys was made for: that of the slots and the key mode that it serves.
#pragma once

#include <memory>
#include <string>

#include "circuits/bootstrapping/state.h"

namespace crenel::circuits {

struct KeyFit {
  BootstrapPlan plan;
  std::shared_ptr<const BootstrapMatrices> matrices;
  std::vector<RotationNeed> needs;
  bool decided = false;  ///< slots or mode are other than those of the options, or of none
  std::string notice;    ///< that keys and options were not made for each other, or nothing
};

/// The bootstrap that `options` ask for; what they leave open (key mode; slots, where neither mode
/// nor stages are given) is as the keys serve it. Hoisted on the slots of the options comes first;
/// then what takes most of the keys. Where the keys serve nothing, what was asked for.
KeyFit fit_to_keys(const ckks::Evaluator& ev, const BootstrapOptions& options);

/// The call that makes keys for these options: "client.evaluation_keys(bootstrap=True)".
std::string key_call(const ckks::Params& params, const BootstrapOptions& options);

}  // namespace crenel::circuits
