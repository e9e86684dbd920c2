// InstanceNorm1d, 2d, 3d: normalize each channel of each instance (Ulyanov et al., 2016).
#pragma once

#include <string>
#include <utility>

#include "kiln/nn/layer.h"
#include "kiln/nn/real.h"
#include "kiln/tensor/tensor.h"

namespace kiln::nn {

struct InstanceNormConfig {
  Required<int64_t> num_features = {};
  Real eps = 1e-5;
  Real momentum = 0.1;               // how far running statistics move towards the batch's
  bool affine = false;               // has weight and bias
  bool track_running_stats = false;  // has running statistics, which eval mode uses
  bool bias = true;                  // with affine
  static constexpr const char* kKeywordOnly = "bias";  // in Python, as in PyTorch
  KILN_CONFIG(InstanceNormConfig, num_features, eps, momentum, doc(affine, "has weight and bias"),
              doc(track_running_stats, "has running statistics, which eval mode uses"),
              doc(bias, "with affine"))
};

// x [N, C, ..] or [C, ..] -> the same shape: weight (x - mean) / sqrt(var + eps) + bias, with the
// statistics of each channel of each instance. Throws ShapeError for other dims, and for another
// number of channels with `affine`.
class InstanceNormLayer : public Layer<InstanceNormConfig> {
 public:
  Param<Tensor> weight;        // [C]
  Param<Tensor> bias;          // [C]
  Buffer running_mean;         // [C]
  Buffer running_var;          // [C]
  Buffer num_batches_tracked;  // i64, 0-d; stays 0

  Tensor forward(const Tensor& x) const;
  void reset_running_stats();
  void reset_parameters();
  std::string extra_repr() const override;
  static constexpr int64_t kStateVersion = 2;
  int64_t state_version() const override { return kStateVersion; }

 protected:
  InstanceNormLayer(const char* name, int dims, InstanceNormConfig config,
                    const ParamOptions& param_options);

 private:
  const char* name_;
  int dims_;  // of one instance, with its channels
};

// x [N, C, L] or [C, L].
class InstanceNorm1d : public InstanceNormLayer {
 public:
  explicit InstanceNorm1d(InstanceNormConfig config, const ParamOptions& param_options = {})
      : InstanceNormLayer("InstanceNorm1d", 2, std::move(config), param_options) {}
  KILN_MODULE_DECLARED(InstanceNorm1d)
};

// x [N, C, H, W] or [C, H, W].
class InstanceNorm2d : public InstanceNormLayer {
 public:
  explicit InstanceNorm2d(InstanceNormConfig config, const ParamOptions& param_options = {})
      : InstanceNormLayer("InstanceNorm2d", 3, std::move(config), param_options) {}
  KILN_MODULE_DECLARED(InstanceNorm2d)
};

// x [N, C, D, H, W] or [C, D, H, W].
class InstanceNorm3d : public InstanceNormLayer {
 public:
  explicit InstanceNorm3d(InstanceNormConfig config, const ParamOptions& param_options = {})
      : InstanceNormLayer("InstanceNorm3d", 4, std::move(config), param_options) {}
  KILN_MODULE_DECLARED(InstanceNorm3d)
};

}  // namespace kiln::nn
