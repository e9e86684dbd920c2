// Identity: hands its input on.
#pragma once

#include "kiln/nn/module.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

class Identity : public Module {
 public:
  KILN_MODULE(Identity)
  Tensor forward(TensorArg x) const { return x.take(); }
};

}  // namespace kiln::nn
