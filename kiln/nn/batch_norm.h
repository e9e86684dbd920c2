// BatchNorm1d, 2d, 3d: normalize each channel over the batch and all other dims (Ioffe & Szegedy,
// 2015).
#pragma once

#include <optional>
#include <string>
#include <utility>

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
  Required<int64_t> num_features = {};
  BatchNorm2dOptions options = {};
  static constexpr const char* kKeywordOnly = "bias";  // in Python, as in PyTorch
  KILN_CONFIG(BatchNorm2dConfig, num_features, options)
  BatchNorm2d init(const ParamOptions& param_options = {}) const;
};
using BatchNormOptions = BatchNorm2dOptions;
struct BatchNormConfig {
  Required<int64_t> num_features = {};
  BatchNormOptions options = {};
  static constexpr const char* kKeywordOnly = "bias";
  KILN_CONFIG(BatchNormConfig, num_features, options)
};

// x [N, C, ..] -> the same shape: weight (x - mean) / sqrt(var + eps) + bias. Training mode takes
// mean and (biased) variance of the batch and moves running_mean and running_var (unbiased) towards
// them; eval mode takes the running ones. weight and running_var start at 1, bias and running_mean
// at 0. Throws ShapeError for x of other dims.
template <class ConfigType>
class BatchNormLayer : public Layer<ConfigType> {
 public:
  Param<Tensor> weight;        // [C]
  Param<Tensor> bias;          // [C]
  Buffer running_mean;         // [C]
  Buffer running_var;          // [C]
  Buffer num_batches_tracked;  // i64, 0-d

  Tensor forward(TensorArg x) const;
  void reset_running_stats();
  void reset_parameters();
  std::string extra_repr() const override;
  // Before version 2 there was no num_batches_tracked.
  static constexpr int64_t kStateVersion = 2;
  int64_t state_version() const override { return kStateVersion; }
  bool may_lack(std::string_view name, const StateMetadata& saved) const override;

  int64_t num_features() const { return this->config_.num_features; }
  const BatchNormOptions& options() const { return this->config_.options; }

 protected:
  // `name`: of the class; x has at least `least` and at most `most` dims.
  BatchNormLayer(const char* name, int least, int most, ConfigType config,
                 const ParamOptions& param_options);

 private:
  const char* name_;
  int least_, most_;
};
extern template class BatchNormLayer<BatchNormConfig>;
extern template class BatchNormLayer<BatchNorm2dConfig>;

// x [N, C] or [N, C, L].
class BatchNorm1d : public BatchNormLayer<BatchNormConfig> {
 public:
  explicit BatchNorm1d(int64_t num_features, const BatchNormOptions& options = {},
                       const ParamOptions& param_options = {});
  explicit BatchNorm1d(BatchNormConfig config, const ParamOptions& param_options = {});
  KILN_MODULE_DECLARED(BatchNorm1d)
};

// x [N, C, H, W].
class BatchNorm2d : public BatchNormLayer<BatchNorm2dConfig> {
 public:
  explicit BatchNorm2d(int64_t num_features, const BatchNormOptions& options = {},
                       const ParamOptions& param_options = {});
  explicit BatchNorm2d(BatchNorm2dConfig config, const ParamOptions& param_options = {});
  KILN_MODULE_DECLARED(BatchNorm2d)
};

// x [N, C, D, H, W].
class BatchNorm3d : public BatchNormLayer<BatchNormConfig> {
 public:
  explicit BatchNorm3d(int64_t num_features, const BatchNormOptions& options = {},
                       const ParamOptions& param_options = {});
  explicit BatchNorm3d(BatchNormConfig config, const ParamOptions& param_options = {});
  KILN_MODULE_DECLARED(BatchNorm3d)
};

}  // namespace kiln::nn
