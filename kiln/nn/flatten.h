// Flatten: joins a range of dims into one.
#pragma once

#include <string>

#include "kiln/nn/layer.h"
#include "kiln/tensor/tensor.h"

namespace kiln::nn {

struct FlattenConfig {
  int64_t start_dim = 1;
  int64_t end_dim = -1;
  KILN_CONFIG(FlattenConfig, start_dim, doc(end_dim, "included"))
};

// x [N, C, H, W] -> [N, C H W], or another range of dims, both ends included.
class Flatten : public Layer<FlattenConfig> {
 public:
  explicit Flatten(int64_t start_dim = 1, int64_t end_dim = -1)
      : Flatten(FlattenConfig{start_dim, end_dim}) {}
  explicit Flatten(FlattenConfig config) : Layer(config) {}
  KILN_MODULE_DECLARED(Flatten)

  Tensor forward(const Tensor& x) const { return x.flatten(config_.start_dim, config_.end_dim); }
  std::string extra_repr() const override {
    return concat("start_dim=", config_.start_dim, ", end_dim=", config_.end_dim);
  }
};

}  // namespace kiln::nn
