// Flatten: joins a range of dims into one.
#pragma once

#include <string>

#include "kiln/nn/module.h"
#include "kiln/tensor/tensor.h"

namespace kiln::nn {

// x [N, C, H, W] -> [N, C H W], or another range of dims, both ends included.
class Flatten : public Module {
 public:
  explicit Flatten(int64_t start_dim = 1, int64_t end_dim = -1)
      : start_dim_(start_dim), end_dim_(end_dim) {}
  KILN_MODULE(Flatten)

  Tensor forward(const Tensor& x) const { return x.flatten(start_dim_, end_dim_); }
  std::string extra_repr() const override {
    return concat("start_dim=", start_dim_, ", end_dim=", end_dim_);
  }

 private:
  int64_t start_dim_;
  int64_t end_dim_;
};

}  // namespace kiln::nn
