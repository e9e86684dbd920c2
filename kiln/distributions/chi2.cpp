#include "kiln/distributions/chi2.h"

#include "kiln/distributions/support.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

Chi2::Chi2(const TensorOrNumber& df, std::optional<bool> validate_args)
    : Gamma(Named{"Chi2"}, validate_args) {
  broadcast_parameters(name(), {{"df", df, &df_}});
  check_parameter("df", df_, constraints::positive());
  set(0.5 * df_, full_like(df_, 0.5));
}

std::unique_ptr<Distribution> Chi2::expand(const Shape& batch_shape) const {
  return widened(*this, batch_shape, {&Chi2::df_, &Chi2::concentration_, &Chi2::rate_});
}

}  // namespace kiln::distributions
