// Dropout: zeroes elements at random while training (Srivastava et al., 2014).
#pragma once

#include <string>

#include "kiln/nn/layer.h"
#include "kiln/nn/real.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

class Dropout;
struct DropoutConfig {
  Real p = 0.5;
  bool inplace = false;
  KILN_CONFIG(DropoutConfig, doc(p, "probability that an element is zeroed"), inplace)
  Dropout init() const;
};

// In training mode each element becomes 0 with probability p and the others are scaled by 1 / (1 -
// p); in eval mode x passes unchanged. Throws ValueError unless 0 <= p <= 1.
class Dropout : public Layer<DropoutConfig> {
 public:
  explicit Dropout(Real p = 0.5, bool inplace = false) : Dropout(DropoutConfig{p, inplace}) {}
  explicit Dropout(DropoutConfig config);
  KILN_MODULE_DECLARED(Dropout)

  Tensor forward(TensorArg x) const;
  std::string extra_repr() const override;

  double p() const { return config_.p; }
};

inline Dropout DropoutConfig::init() const { return Dropout(*this); }

}  // namespace kiln::nn
