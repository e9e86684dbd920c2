#include "kiln/nn/threshold.h"

#include "kiln/nn/repr.h"

namespace kiln::nn {

Tensor Threshold::forward(const Tensor& x) const {
  if (!inplace_) return functional::threshold(x, threshold_.to_double(), value_.to_double());
  // An integer tensor stays one: both numbers are converted, as PyTorch does.
  const bool whole = !x.is_floating_point();
  const Scalar bound = whole ? Scalar(threshold_.to_int()) : threshold_;
  Tensor out = x;
  out.masked_fill_(x.le(bound), whole ? Scalar(value_.to_int()) : value_);
  return out;
}

std::string Threshold::extra_repr() const {
  return concat("threshold=", detail::repr(threshold_), ", value=", detail::repr(value_),
                inplace_ ? ", inplace=True" : "");
}

}  // namespace kiln::nn
