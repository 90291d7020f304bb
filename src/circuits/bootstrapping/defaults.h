// What a bootstrap's options leave open and the message decides.
#pragma once

#include "crenel/circuits/bootstrapping.h"

namespace crenel::circuits {

/// The messages that stand for a kind of values, within 1: the worst of those that it allows.
Message message_of(BootstrapValues values, BootstrapMessage message);

/// The options for who asks for levels, matrices or keys, which do not depend on the message ratio.
inline BootstrapOptions with_any_ratio(BootstrapOptions options) {
  if (!options.message_ratio) options.message_ratio = 1;
  return options;
}

/// The message ratio whose expected largest slot error for such values is least, of those that the
/// parameters allow; of ratios that are within a tenth of a bit of it the largest, which leaves the
/// most room; where half of a real vector's coefficients serve at another one, and the error is no
/// larger than that costs anywhere, that one. ParameterError as plan_bootstrap throws it.
u32 best_message_ratio(const ckks::Params& params, BootstrapOptions options);

}  // namespace crenel::circuits
