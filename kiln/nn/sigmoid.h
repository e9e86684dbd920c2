// Sigmoid: 1 / (1 + e^-x).
#pragma once

#include "kiln/nn/module.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

class Sigmoid : public Module {
 public:
  KILN_MODULE(Sigmoid)
  Tensor forward(TensorArg x) const { return sigmoid(x); }
};

}  // namespace kiln::nn
