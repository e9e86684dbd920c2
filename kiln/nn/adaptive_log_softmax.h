// AdaptiveLogSoftmaxWithLoss: log-probabilities of many classes, of which the rare ones stand in
// clusters with smaller layers of their own (Grave et al., 2017).
#pragma once

#include <vector>

#include "kiln/nn/linear.h"
#include "kiln/nn/sequential.h"

namespace kiln::nn {

struct AdaptiveLogSoftmaxOptions {
  double div_value = 4.0;  // cluster i has in_features / div_value^(i + 1) hidden features
  bool head_bias = false;
};

// The classes are in the order of their frequency; cutoffs are where clusters begin. Keys of the
// state dict are PyTorch's: head.weight, tail.0.0.weight, tail.0.1.weight, ...
class AdaptiveLogSoftmaxWithLoss : public Module {
 public:
  // Throws ValueError unless 0 < cutoffs[0] < cutoffs[1] < .. < n_classes, and for a div_value that
  // leaves a cluster without features.
  AdaptiveLogSoftmaxWithLoss(int64_t in_features, int64_t n_classes, std::vector<int64_t> cutoffs,
                             const AdaptiveLogSoftmaxOptions& options = {},
                             const ParamOptions& param_options = {});

  Linear head;  // the first classes, and one output for each cluster
  std::vector<Sequential> tail;
  KILN_MODULE_DECLARED(AdaptiveLogSoftmaxWithLoss)

  // The log-probability of each target, and the mean of their negatives.
  struct Output {
    Tensor output, loss;
  };
  // input [N, in_features] and target [N], or both without N. Throws ShapeError, and IndexError for
  // a target that is no class.
  Output forward(const Tensor& input, const Tensor& target) const;
  // The log-probabilities of all classes [N, n_classes], and the most probable one [N].
  Tensor log_prob(const Tensor& input) const;
  Tensor predict(const Tensor& input) const;
  void reset_parameters();

  int64_t n_classes() const { return ends_.back(); }
  int64_t shortlist_size() const { return ends_[0]; }

 private:
  std::vector<int64_t> ends_;  // cutoffs and n_classes
};

}  // namespace kiln::nn
