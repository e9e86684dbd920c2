// PReLU: a ReLU whose slope below zero is learned (He et al., 2015).
#pragma once

#include <string>

#include "kiln/nn/module.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

// max(0, x) + weight min(0, x). weight [num_parameters] starts at `init`; num_parameters is 1, or
// the number of channels, dim 1 of x (x with fewer than 2 dims has 1). Weight decay should not be
// used on it.
class PReLU : public Module {
 public:
  explicit PReLU(int64_t num_parameters = 1, double init = 0.25, const ParamOptions& options = {});

  Param<Tensor> weight;
  KILN_MODULE(PReLU, weight)

  Tensor forward(const Tensor& x) const { return functional::prelu(x, weight); }
  // Sets the weight to `init` again.
  void reset_parameters();
  std::string extra_repr() const override { return concat("num_parameters=", num_parameters_); }

  int64_t num_parameters() const { return num_parameters_; }

 private:
  int64_t num_parameters_;
  double init_;
};

}  // namespace kiln::nn
