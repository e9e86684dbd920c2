// SwiGLU: a linear layer whose outputs are gated by those of another (Shazeer, 2020).
#pragma once

#include "kiln/nn/linear.h"

namespace kiln::nn {

class SwiGLU;
struct SwiGLUConfig {
  Required<int64_t> d_input = {};
  Required<int64_t> d_output = {};
  bool bias = false;
  KILN_CONFIG(SwiGLUConfig, doc(d_input, "features in"), doc(d_output, "features out"), bias)
  SwiGLU init(const ParamOptions& options = {}) const;
};

// x [.., d_input] -> silu(linear_inner(x)) linear_outer(x) [.., d_output]. The parts have Burn's
// names.
class SwiGLU : public Module {
 public:
  using Config = SwiGLUConfig;
  explicit SwiGLU(const Config& config, const ParamOptions& options = {});

  Linear linear_inner;
  Linear linear_outer;
  KILN_MODULE_DECLARED(SwiGLU)

  Tensor forward(const Tensor& x) const;
};

}  // namespace kiln::nn
