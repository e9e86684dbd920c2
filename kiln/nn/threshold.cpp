#include "kiln/nn/threshold.h"

#include "kiln/nn/repr.h"

namespace kiln::nn {

Tensor Threshold::forward(const Tensor& x) const {
  if (!inplace_) return functional::threshold(x, threshold_.to_double(), value_.to_double());
  Tensor out = x;
  out.masked_fill_(x.le(threshold_), value_);
  return out;
}

std::string Threshold::extra_repr() const {
  return concat("threshold=", detail::repr(threshold_), ", value=", detail::repr(value_),
                inplace_ ? ", inplace=True" : "");
}

}  // namespace kiln::nn
