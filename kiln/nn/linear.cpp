#include "kiln/nn/linear.h"

#include <cmath>

#include "kiln/core/error.h"
#include "kiln/nn/fan_in_init.h"
#include "kiln/nn/repr.h"

namespace kiln::nn {
Linear::Linear(LinearConfig config, const ParamOptions& options) : Layer(std::move(config)) {
  const int64_t in = in_features(), out = out_features();
  if (in < 0 || out < 0) {
    throw_error<ValueError>("Linear: sizes must not be negative; got in_features ", in,
                            " and out_features ", out);
  }
  weight = parameter({out, in}, detail::fill_weight, options);
  if (config_.bias) bias = parameter({out}, detail::fill_bias(in), options);
}

Tensor Linear::forward(TensorArg x, const functional::LinearOptions& options) const {
  if (weight.is_computed()) {
    const Tensor out =
        functional::activate(detail::computed_linear(weight, x, bias), options.activation);
    return options.residual.defined() ? out + options.residual : out;
  }
  const Tensor& w = weight;
  return functional::linear(x, w, bias, options);
}

void Linear::reset_parameters() {
  refill(weight, detail::fill_weight);
  refill(bias, detail::fill_bias(in_features()));
}

std::string Linear::extra_repr() const {
  return concat("in_features=", in_features(), ", out_features=", out_features(),
                ", bias=", detail::repr(bias.defined()));
}

KILN_MODULE_DEFINED(Linear, weight, bias)

}  // namespace kiln::nn
