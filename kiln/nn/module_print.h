// Parts of modules as text. Internal to kiln/nn.
#pragma once

#include <string>

#include "kiln/nn/param.h"

namespace kiln::nn::detail {

// "  (0): Parameter containing: [float32 of size 2x3]": how PyTorch's ParameterList shows an
// element.
std::string describe_parameter(const std::string& name, const Param<Tensor>& param);

}  // namespace kiln::nn::detail
