// Ops of the tensor layer that have a formula of their own for their gradient, where composition
// would compute too much. Internal to kiln/tensor.
#pragma once

#include "kiln/tensor/tensor_impl.h"

namespace kiln::detail {

using Pass = autodiff::Pass<Dispatch>;
using Recorder = autodiff::AutodiffBase<Dispatch>;

// Whether an op on x is recorded.
inline bool is_tracked(const Value& x) { return Recorder::tracked(ValueArg(x)); }

// `inner` with a node whose formula gives each operand its gradient (see AutodiffBase).
template <class Formula, class... X>
Value recorded(const char* op, ErasedTensor inner, Formula formula, const X&... operands) {
  return Recorder::attach(op, std::move(inner), Recorder::edges(ValueArg(operands)...),
                          std::move(formula));
}

inline const Value& value_in(const Tensor& x) { return impl_of("gradient", x).value; }

// What an op that writes `src` into a part of x gives: a copy of x where `part`, a composition of
// view ops, holds src.
using Part = std::function<Tensor(const Tensor&)>;
Tensor with_part(const char* op, const Tensor& x, const Tensor& src, Part part);
// The same over memory that nobody else sees and that has no history.
Tensor with_part_in(const char* op, Tensor memory, const Tensor& src, Part part);

}  // namespace kiln::detail
