#include "kiln/nn/dropout.h"

#include "kiln/core/error.h"
#include "kiln/nn/repr.h"

namespace kiln::nn {

Dropout::Dropout(double p, bool inplace) : p_(p), inplace_(inplace) {
  if (!(p >= 0.0 && p <= 1.0)) {
    throw_error<ValueError>("Dropout: p must be between 0 and 1; got ", p);
  }
}

Tensor Dropout::forward(TensorArg x) const {
  if (!is_training()) return x.take();
  if (!inplace_) return functional::dropout(x, p_, true);
  Tensor out = x;
  out.copy_(functional::dropout(out, p_, true));
  return out;
}

std::string Dropout::extra_repr() const {
  return concat("p=", detail::repr(p_), ", inplace=", detail::repr(inplace_));
}

}  // namespace kiln::nn
