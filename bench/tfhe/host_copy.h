// The inputs of an operation in host memory, as a request would bring them, and room for its
// results.
#pragma once

#include <memory>

#include "tfhe/operation.h"

namespace crenel::bench {

class HostCopy {
 public:
  /// `lock`: page-lock the memory, for a GPU. Where that fails copies are slower, not wrong.
  HostCopy(const Operation::Inputs& inputs, bool lock);
  ~HostCopy();

  /// From host memory to host memory.
  void call(const Operation& op, const tfhe::Evaluator& ev);
  double bytes() const;
  bool locked() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace crenel::bench
