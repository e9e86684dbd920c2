// Dropout: zeroes elements at random while training (Srivastava et al., 2014).
#pragma once

#include <string>

#include "kiln/nn/module.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

// In training mode each element becomes 0 with probability p and the others are scaled by 1 / (1 -
// p); in eval mode x passes unchanged. Throws ValueError unless 0 <= p <= 1.
class Dropout : public Module {
 public:
  explicit Dropout(double p = 0.5, bool inplace = false);
  KILN_MODULE(Dropout)

  Tensor forward(TensorArg x) const;
  std::string extra_repr() const override;

  double p() const { return p_; }

 private:
  double p_;
  bool inplace_;
};

}  // namespace kiln::nn
