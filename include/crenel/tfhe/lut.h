// Look-up tables of messages, and tables made ready on the device.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "crenel/core/types.h"

namespace crenel::tfhe {

/// A function of a message as a table of p entries (p / 2 with padding), output messages modulo
/// `out_modulus`. With padding a *signed* table has p entries: those from p / 2 on are of the
/// messages -p / 2, ..., -1, and any entry below `out_modulus` may be given, of which the upper
/// half are negative. f(m) + f(m - p / 2) must be the same modulo `out_modulus` for all m, which
/// is what one rotation gives; where -p / 2 does not occur its entry is the one that keeps this.
struct Lut {
  std::vector<u64> table;
  u32 out_modulus = 0;  ///< 0: as the input
};

/// Tables on the device, with the table that each message takes where there are several: made by
/// Context::prepare, for every evaluator of the context. Immutable, cheap to copy. A recorded graph
/// reads its memory: keep it for as long as the graph.
class PreparedLut {
 public:
  struct Data;
  explicit PreparedLut(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  u64 size() const;           ///< messages of the arrays that it takes; 0: any number
  u32 plain_modulus() const;  ///< of those messages
  /// What messages of results are modulo.
  u32 out_modulus() const;
  const Data& data() const { return *data_; }

 private:
  std::shared_ptr<const Data> data_;
};

}  // namespace crenel::tfhe
