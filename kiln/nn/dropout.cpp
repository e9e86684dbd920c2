#include "kiln/nn/dropout.h"

#include "kiln/core/error.h"
#include "kiln/nn/repr.h"

namespace kiln::nn {

Dropout::Dropout(DropoutConfig config) : Layer(config) {
  if (!(p() >= 0.0 && p() <= 1.0)) {
    throw_error<ValueError>("Dropout: p must be between 0 and 1; got ", p());
  }
}

Tensor Dropout::forward(TensorArg x) const {
  if (!is_training()) return x.take();
  if (!config_.inplace) return functional::dropout(x, p(), true);
  Tensor out = x;
  out.copy_(functional::dropout(out, p(), true));
  return out;
}

std::string Dropout::extra_repr() const {
  return concat("p=", detail::repr(config_.p), ", inplace=", detail::repr(config_.inplace));
}

KILN_MODULE_DEFINED(Dropout)

}  // namespace kiln::nn
