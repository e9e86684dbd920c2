// BatchNorm2d: normalizes each channel over batch, height and width (Ioffe & Szegedy, 2015).
#pragma once

#include <optional>
#include <string>

#include "kiln/nn/layer.h"
#include "kiln/nn/real.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

struct BatchNorm2dOptions {
  Real eps = 1e-5;
  // How far running statistics move towards the batch's; empty: their average over all batches
  // seen.
  std::optional<Real> momentum = 0.1;
  bool affine = true;               // has weight and bias
  bool track_running_stats = true;  // has running statistics, which eval mode uses
  bool bias = true;                 // with affine
  KILN_CONFIG(BatchNorm2dOptions, eps, doc(momentum, "null: the average over all batches"),
              doc(affine, "has weight and bias"),
              doc(track_running_stats, "has running statistics, which eval mode uses"),
              doc(bias, "with affine"))
};

class BatchNorm2d;
struct BatchNorm2dConfig {
  Required<int64_t> num_features;
  BatchNorm2dOptions options = {};
  static constexpr const char* kKeywordOnly = "bias";  // in Python, as in PyTorch
  KILN_CONFIG(BatchNorm2dConfig, num_features, options)
  BatchNorm2d init(const ParamOptions& param_options = {}) const;
};

// x [N, C, H, W] -> the same shape: weight (x - mean) / sqrt(var + eps) + bias. Training mode takes
// mean and (biased) variance of the batch and moves running_mean and running_var (unbiased) towards
// them; eval mode takes the running ones. weight and running_var start at 1, bias and running_mean
// at 0. Throws ShapeError unless x has 4 dims.
class BatchNorm2d : public Layer<BatchNorm2dConfig> {
 public:
  explicit BatchNorm2d(int64_t num_features, const BatchNorm2dOptions& options = {},
                       const ParamOptions& param_options = {})
      : BatchNorm2d(BatchNorm2dConfig{num_features, options}, param_options) {}
  explicit BatchNorm2d(BatchNorm2dConfig config, const ParamOptions& param_options = {});

  Param<Tensor> weight;        // [C]
  Param<Tensor> bias;          // [C]
  Buffer running_mean;         // [C]
  Buffer running_var;          // [C]
  Buffer num_batches_tracked;  // i64, 0-d
  KILN_MODULE(BatchNorm2d, weight, bias, running_mean, running_var, num_batches_tracked)

  Tensor forward(TensorArg x) const;
  void reset_running_stats();
  void reset_parameters();
  std::string extra_repr() const override;
  // Before version 2 there was no num_batches_tracked.
  static constexpr int64_t kStateVersion = 2;
  int64_t state_version() const override { return kStateVersion; }
  bool may_lack(std::string_view name, const StateMetadata& saved) const override;

  int64_t num_features() const { return config_.num_features; }
  const BatchNorm2dOptions& options() const { return config_.options; }
};

inline BatchNorm2d BatchNorm2dConfig::init(const ParamOptions& param_options) const {
  return BatchNorm2d(*this, param_options);
}

}  // namespace kiln::nn
