// Tanh: (e^x - e^-x) / (e^x + e^-x).
#pragma once

#include "kiln/nn/module.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

class Tanh : public Module {
 public:
  KILN_MODULE(Tanh)
  Tensor forward(TensorArg x) const { return tanh(x); }
};

}  // namespace kiln::nn
