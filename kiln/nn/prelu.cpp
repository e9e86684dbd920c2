#include "kiln/nn/prelu.h"

#include "kiln/core/error.h"
#include "kiln/nn/init.h"

namespace kiln::nn {
namespace {

std::function<void(Tensor&)> fill(double value) {
  return [value](Tensor& x) { init::constant_(x, value); };
}

}  // namespace

PReLU::PReLU(PReLUConfig config, const ParamOptions& options) : Layer(config) {
  if (num_parameters() < 1) {
    throw_error<ValueError>("PReLU: num_parameters must be 1 or the number of channels; got ",
                            num_parameters());
  }
  weight = parameter({num_parameters()}, fill(config_.init_value), options);
}

void PReLU::reset_parameters() { refill(weight, fill(config_.init_value)); }

KILN_MODULE_DEFINED(PReLU, weight)

}  // namespace kiln::nn
