#include "kiln/nn/bilinear.h"

#include <cmath>

#include "kiln/core/error.h"
#include "kiln/nn/init.h"
#include "kiln/nn/repr.h"
#include "kiln/tensor/nn/bilinear.h"

namespace kiln::nn {

Bilinear::Bilinear(BilinearConfig config, const ParamOptions& options) : Layer(std::move(config)) {
  const int64_t in1 = config_.in1_features, in2 = config_.in2_features, out = config_.out_features;
  if (in1 < 1 || in2 < 0 || out < 0) {
    throw_error<ValueError>("Bilinear: in1_features must be at least 1, and no size negative; got ",
                            "in1_features ", in1, ", in2_features ", in2, ", out_features ", out);
  }
  weight = parameter({out, in1, in2}, fill(), options);
  if (config_.bias) bias = parameter({out}, fill(), options);
}

std::function<void(Tensor&)> Bilinear::fill() const {
  const double bound = 1.0 / std::sqrt(static_cast<double>(config_.in1_features.value()));
  return [bound](Tensor& x) { init::uniform_(x, -bound, bound); };
}

Tensor Bilinear::forward(const Tensor& x1, const Tensor& x2) const {
  const Tensor w = weight.val();  // drawn before the bias, as in parameters(), should both be lazy
  return functional::bilinear(x1, x2, w, bias);
}

void Bilinear::reset_parameters() {
  refill(weight, fill());
  refill(bias, fill());
}

std::string Bilinear::extra_repr() const {
  return concat("in1_features=", config_.in1_features.value(),
                ", in2_features=", config_.in2_features.value(),
                ", out_features=", config_.out_features.value(),
                ", bias=", detail::repr(bias.defined()));
}

KILN_MODULE_DEFINED(Bilinear, weight, bias)

}  // namespace kiln::nn
