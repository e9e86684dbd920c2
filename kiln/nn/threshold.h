// Threshold: replaces what does not exceed a threshold.
#pragma once

#include <string>

#include "kiln/nn/module.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

// x where x > threshold, else value; NaN stays. Integers are legal. With `inplace`, x itself is
// changed and returned.
class Threshold : public Module {
 public:
  Threshold(Scalar threshold, Scalar value, bool inplace = false)
      : threshold_(threshold), value_(value), inplace_(inplace) {}
  KILN_MODULE(Threshold)

  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;

 private:
  Scalar threshold_;
  Scalar value_;
  bool inplace_;
};

}  // namespace kiln::nn
