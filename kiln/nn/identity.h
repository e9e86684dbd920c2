// Identity: hands its input on.
#pragma once

#include "kiln/nn/layer.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

struct IdentityConfig {
  // In Python it takes any arguments, and ignores them, so that it can stand for another layer.
  static constexpr bool kTakesAnything = true;
  KILN_CONFIG(IdentityConfig)
};

class Identity : public Layer<IdentityConfig> {
 public:
  explicit Identity(IdentityConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(Identity)
  Tensor forward(TensorArg x) const { return x.take(); }
};

}  // namespace kiln::nn
