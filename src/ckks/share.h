// The account of the shares given under a key.
#pragma once

#include "crenel/ckks/client.h"
#include "crenel/core/fork_mutex.h"

namespace crenel::ckks {

/// Every share may cost a divergence of 2^-statistical_bits / (24 queries)
/// (docs/theory/security.md, "Shared results"). A new one is allowed while all of them together
/// cost at most 2^-statistical_bits / 24, with the bits that it asks for. StateError in a forked
/// child where another thread of its parent was counting.
class ShareLedger {
 public:
  /// Takes `rows` shares, or throws StateError and takes none. How many there are then.
  u64 take(u64 rows, const Sharing& sharing);
  ShareAccount account() const;
  void add(const ShareAccount& earlier);

 private:
  mutable ForkMutex mutex_;
  ShareAccount account_;
};

}  // namespace crenel::ckks
