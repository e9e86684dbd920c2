// ReLU: max(0, x).
#pragma once

#include <string>

#include "kiln/nn/module.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

// With `inplace`, x itself is changed and returned.
class ReLU : public Module {
 public:
  explicit ReLU(bool inplace = false) : inplace_(inplace) {}
  KILN_MODULE(ReLU)

  Tensor forward(TensorArg x) const {
    if (!inplace_) return relu(x);
    Tensor out = x;
    out.relu_();
    return out;
  }
  std::string extra_repr() const override { return inplace_ ? "inplace=True" : ""; }

 private:
  bool inplace_;
};

}  // namespace kiln::nn
