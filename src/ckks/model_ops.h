// Error bounds as what ckks/paterson_stockmeyer.h, ckks/levels.h and ckks/operand_policy.h compute
// on.
#pragma once

#include "ckks/paterson_stockmeyer.h"
#include "crenel/ckks/error_model.h"

namespace crenel::ckks {

struct ModelOps {
  using Value = ErrorBound;
  using Operations = ErrorModel;
  const ErrorModel& ev;

  const Params& params() const { return ev.params(); }
  const Metadata& metadata(const ErrorBound& a) const { return a.meta; }
  u32 components(const ErrorBound& a) const { return a.components; }
  ErrorBound copy(const ErrorBound& a) const { return a; }
  ErrorBound drop(const ErrorBound& a, u32 level) const;
  ErrorBound double_square(const ErrorBound& a, double constant) const;
  ErrorBound linear_combination(std::span<const ErrorBound* const> x, std::span<const double> c,
                                double constant, double scale) const;
  void set_scale(ErrorBound& a, double scale) const;
  void limit_chebyshev(ErrorBound& a, const ErrorBound& x, u32 i) const;
};

}  // namespace crenel::ckks
