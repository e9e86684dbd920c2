// GroupNorm, RMSNorm and the response norms; kiln/tensor/nn/normalization.h has the formulas.
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kiln/nn/layer.h"
#include "kiln/nn/real.h"
#include "kiln/tensor/tensor.h"

namespace kiln::nn {

struct GroupNormConfig {
  Required<int64_t> num_groups = {};
  Required<int64_t> num_channels = {};
  Real eps = 1e-5;
  bool affine = true;                                  // has weight and bias
  bool bias = true;                                    // with affine
  static constexpr const char* kKeywordOnly = "bias";  // in Python, as in PyTorch
  KILN_CONFIG(GroupNormConfig, num_groups, num_channels, eps, doc(affine, "has weight and bias"),
              doc(bias, "with affine"))
};

// x [N, C, ..] with the channels in num_groups groups, each normalized (Wu & He, 2018). Throws
// ValueError unless num_groups divides num_channels.
class GroupNorm : public Layer<GroupNormConfig> {
 public:
  explicit GroupNorm(GroupNormConfig config, const ParamOptions& param_options = {});
  Param<Tensor> weight;  // [C]
  Param<Tensor> bias;    // [C]
  KILN_MODULE_DECLARED(GroupNorm)
  Tensor forward(const Tensor& x) const;
  void reset_parameters();
  std::string extra_repr() const override;
};

struct RMSNormConfig {
  Required<std::vector<int64_t>> normalized_shape = {};
  std::optional<Real> eps = {};
  bool elementwise_affine = true;  // has a weight
  KILN_CONFIG(RMSNormConfig, doc(normalized_shape, "the sizes of the last dims"),
              doc(eps, "null: the dtype's epsilon"), doc(elementwise_affine, "has a weight"))
};

// x / sqrt(mean(x^2) + eps) weight over the last dims (Zhang & Sennrich, 2019).
class RMSNorm : public Layer<RMSNormConfig> {
 public:
  // Templates, so that braces that name an option are the configuration's.
  explicit RMSNorm(const std::same_as<Shape> auto& normalized_shape, RMSNormConfig options = {},
                   const ParamOptions& param_options = {})
      : RMSNorm(detail::with_positions(std::move(options), normalized_shape.to_vector()),
                param_options) {}
  template <std::integral T, size_t kCount>
  explicit RMSNorm(const T (&normalized_shape)[kCount], RMSNormConfig options = {},
                   const ParamOptions& param_options = {})
      : RMSNorm(Shape(std::vector<int64_t>(normalized_shape, normalized_shape + kCount)),
                std::move(options), param_options) {}
  explicit RMSNorm(int64_t features, RMSNormConfig options = {},
                   const ParamOptions& param_options = {});
  explicit RMSNorm(RMSNormConfig config, const ParamOptions& param_options = {});
  Param<Tensor> weight;  // normalized_shape
  KILN_MODULE_DECLARED(RMSNorm)
  Tensor forward(const Tensor& x) const;
  void reset_parameters();
  std::string extra_repr() const override;

 private:
  Shape shape() const;
};

struct LocalResponseNormConfig {
  Required<int64_t> size = {};
  Real alpha = 1e-4;
  Real beta = 0.75;
  Real k = 1.0;
  KILN_CONFIG(LocalResponseNormConfig, doc(size, "channels that are neighbours"), alpha, beta, k)
};

// x / (k + alpha mean(x^2 over `size` neighbouring channels))^beta (Krizhevsky et al., 2012).
class LocalResponseNorm : public Layer<LocalResponseNormConfig> {
 public:
  explicit LocalResponseNorm(LocalResponseNormConfig config);
  KILN_MODULE_DECLARED(LocalResponseNorm)
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};

}  // namespace kiln::nn
