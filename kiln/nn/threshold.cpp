#include "kiln/nn/threshold.h"

#include "kiln/nn/repr.h"

namespace kiln::nn {

Tensor Threshold::forward(const Tensor& x) const {
  const Scalar threshold = config_.threshold, value = config_.value;
  if (!config_.inplace) {
    return functional::threshold(x, threshold.to_double(), value.to_double());
  }
  // An integer tensor stays one: both numbers are converted, as PyTorch does.
  const bool whole = !x.is_floating_point();
  const Scalar bound = whole ? Scalar(threshold.to_int()) : threshold;
  Tensor out = x;
  out.masked_fill_(x.le(bound), whole ? Scalar(value.to_int()) : value);
  return out;
}

std::string Threshold::extra_repr() const {
  return concat("threshold=", detail::repr(config_.threshold.value()),
                ", value=", detail::repr(config_.value.value()),
                config_.inplace ? ", inplace=True" : "");
}

KILN_MODULE_DEFINED(Threshold)

}  // namespace kiln::nn
