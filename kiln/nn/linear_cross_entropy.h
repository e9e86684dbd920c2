// LinearCrossEntropyLoss: cross_entropy of a linear layer's outputs, as one layer.
#pragma once

#include <optional>
#include <vector>

#include "kiln/nn/linear.h"
#include "kiln/nn/loss.h"

namespace kiln::nn {

namespace functional = kiln::functional;

struct LinearCrossEntropyLossOptions {
  std::vector<int64_t> out_features = {};  // d1 .. dk: so many places with classes in each row
  bool bias = false;
  functional::Reduction reduction = functional::Reduction::mean;
  Tensor weight = {};  // [num_classes], a factor for each class, or undefined
  std::optional<int64_t> ignore_index = {};
  double label_smoothing = 0.0;
};

// input [N, in_features] and classes [N], or [N, d1 .. dk] -> the loss. The keys of its state dict
// are PyTorch's: linear.weight [num_classes d1 .. dk, in_features], linear.bias, weight. Throws
// ValueError and ShapeError.
class LinearCrossEntropyLoss : public Module {
 public:
  LinearCrossEntropyLoss(int64_t in_features, int64_t num_classes,
                         const LinearCrossEntropyLossOptions& options = {},
                         const ParamOptions& param_options = {});

  Buffer weight;
  Linear linear;
  KILN_MODULE_DECLARED(LinearCrossEntropyLoss)

  Tensor forward(const Tensor& input, const Tensor& target) const;
  std::string extra_repr() const override;

 private:
  int64_t num_classes_;
  LinearCrossEntropyLossOptions options_;
};

}  // namespace kiln::nn
