// Softmax and LogSoftmax over one dim.
#pragma once

#include <optional>
#include <string>

#include "kiln/nn/layer.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

struct SoftmaxConfig {
  std::optional<int64_t> dim = {};
  KILN_CONFIG(SoftmaxConfig, doc(dim, "the dim whose elements sum to one"))
};

// exp(x) / sum(exp(x)) over dim; without one: dim 0 of x with 0, 1 or 3 dims, else dim 1.
class Softmax : public Layer<SoftmaxConfig> {
 public:
  explicit Softmax(std::optional<int64_t> dim) : Softmax(SoftmaxConfig{dim}) {}
  explicit Softmax(SoftmaxConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(Softmax)

  Tensor forward(TensorArg x) const;
  std::string extra_repr() const override;
};

struct LogSoftmaxConfig {
  std::optional<int64_t> dim = {};
  KILN_CONFIG(LogSoftmaxConfig, doc(dim, "the dim whose elements' exponentials sum to one"))
};

// log(softmax(x)) over dim, without overflow.
class LogSoftmax : public Layer<LogSoftmaxConfig> {
 public:
  explicit LogSoftmax(std::optional<int64_t> dim) : LogSoftmax(LogSoftmaxConfig{dim}) {}
  explicit LogSoftmax(LogSoftmaxConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(LogSoftmax)

  Tensor forward(TensorArg x) const;
  std::string extra_repr() const override;
};

}  // namespace kiln::nn
