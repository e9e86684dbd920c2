// PReLU: a ReLU whose slope below zero is learned (He et al., 2015).
#pragma once

#include <string>
#include <utility>

#include "kiln/nn/layer.h"
#include "kiln/nn/real.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

class PReLU;
struct PReLUConfig {
  int64_t num_parameters = 1;
  Real init_value = 0.25;
  static constexpr std::pair<const char*, const char*> kPythonName{"init_value", "init"};
  KILN_CONFIG(PReLUConfig, doc(num_parameters, "1, or the number of channels"), init_value)
  PReLU init(const ParamOptions& options = {}) const;
};

// max(0, x) + weight min(0, x). weight [num_parameters] starts at `init`; num_parameters is 1, or
// the number of channels, dim 1 of x (x with fewer than 2 dims has 1). Weight decay should not be
// used on it.
class PReLU : public Layer<PReLUConfig> {
 public:
  explicit PReLU(int64_t num_parameters = 1, Real init = 0.25, const ParamOptions& options = {})
      : PReLU(PReLUConfig{num_parameters, init}, options) {}
  explicit PReLU(PReLUConfig config, const ParamOptions& options = {});

  Param<Tensor> weight;
  KILN_MODULE_DECLARED(PReLU)

  Tensor forward(const Tensor& x) const { return functional::prelu(x, weight); }
  // Sets the weight to `init` again.
  void reset_parameters();
  std::string extra_repr() const override { return concat("num_parameters=", num_parameters()); }

  int64_t num_parameters() const { return config_.num_parameters; }
};

inline PReLU PReLUConfig::init(const ParamOptions& options) const { return PReLU(*this, options); }

}  // namespace kiln::nn
