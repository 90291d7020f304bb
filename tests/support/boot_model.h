// What the precision of a bootstrap is estimated from.
#pragma once

#include "circuits/bootstrapping/precision.h"

namespace crenel::test {

/// The usual model with this ratio of q0 and the messages, in bits, and this degree of the arcsine.
inline circuits::BootstrapModel boot_model(u32 message_ratio, u32 arcsine_degree = 0) {
  circuits::BootstrapModel m;
  m.message_ratio = message_ratio;
  m.arcsine_degree = arcsine_degree;
  return m;
}

}  // namespace crenel::test
