// Layers that rearrange: pixels and channels, windows and columns, other sizes of images; and the
// two that compare vectors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kiln/nn/layer.h"
#include "kiln/nn/real.h"
#include "kiln/nn/size_nd.h"
#include "kiln/tensor/tensor.h"

namespace kiln::nn {

struct UnflattenConfig {
  Required<int64_t> dim = {};
  Required<std::vector<int64_t>> unflattened_size = {};
  KILN_CONFIG(UnflattenConfig, dim, doc(unflattened_size, "one of them may be -1"))
};
// Dim `dim` as several, of which one size may be -1: what is left for it.
class Unflatten : public Layer<UnflattenConfig> {
 public:
  Unflatten(int64_t dim, const Shape& sizes) : Unflatten(UnflattenConfig{dim, sizes.to_vector()}) {}
  explicit Unflatten(UnflattenConfig config) : Layer(std::move(config)) {}
  KILN_MODULE_DECLARED(Unflatten)
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};

struct PixelShuffleConfig {
  Required<int64_t> upscale_factor = {};
  KILN_CONFIG(PixelShuffleConfig, upscale_factor)
};
// [.., C r^2, H, W] -> [.., C, H r, W r] (Shi et al., 2016).
class PixelShuffle : public Layer<PixelShuffleConfig> {
 public:
  explicit PixelShuffle(PixelShuffleConfig config) : Layer(config) {}
  KILN_MODULE_DECLARED(PixelShuffle)
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};

struct PixelUnshuffleConfig {
  Required<int64_t> downscale_factor = {};
  KILN_CONFIG(PixelUnshuffleConfig, downscale_factor)
};
// [.., C, H r, W r] -> [.., C r^2, H, W].
class PixelUnshuffle : public Layer<PixelUnshuffleConfig> {
 public:
  explicit PixelUnshuffle(PixelUnshuffleConfig config) : Layer(config) {}
  KILN_MODULE_DECLARED(PixelUnshuffle)
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};

struct ChannelShuffleConfig {
  Required<int64_t> groups = {};
  KILN_CONFIG(ChannelShuffleConfig, groups)
};
// The channels of `groups` groups by turns (Zhang et al., 2018).
class ChannelShuffle : public Layer<ChannelShuffleConfig> {
 public:
  explicit ChannelShuffle(ChannelShuffleConfig config) : Layer(config) {}
  KILN_MODULE_DECLARED(ChannelShuffle)
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};

struct UnfoldConfig {
  Required<SizeNd> kernel_size = {};
  SizeNd dilation = 1;
  SizeNd padding = 0;
  SizeNd stride = 1;
  KILN_CONFIG(UnfoldConfig, kernel_size, dilation, padding, stride)
};
// The windows of x [N, C, H, W] as columns: [N, C KH KW, L].
class Unfold : public Layer<UnfoldConfig> {
 public:
  explicit Unfold(UnfoldConfig config) : Layer(std::move(config)) {}
  KILN_MODULE_DECLARED(Unfold)
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};

struct FoldConfig {
  Required<SizeNd> output_size = {};
  Required<SizeNd> kernel_size = {};
  SizeNd dilation = 1;
  SizeNd padding = 0;
  SizeNd stride = 1;
  KILN_CONFIG(FoldConfig, output_size, kernel_size, dilation, padding, stride)
};
// The columns [N, C KH KW, L] added up where they overlap: [N, C, output_size..].
class Fold : public Layer<FoldConfig> {
 public:
  explicit Fold(FoldConfig config) : Layer(std::move(config)) {}
  KILN_MODULE_DECLARED(Fold)
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};

struct UpsampleConfig {
  OptionalField<SizeNd> size = {};
  ScaleFactors scale_factor = {};
  std::string mode = "nearest";
  std::optional<bool> align_corners = {};
  std::optional<bool> recompute_scale_factor = {};
  KILN_CONFIG(UpsampleConfig, doc(size, "the spatial sizes wanted"),
              doc(scale_factor, "or by what they are multiplied"), mode, align_corners,
              recompute_scale_factor)
};
// x [N, C, ..] in other spatial sizes; functional::interpolate has the modes.
class Upsample : public Layer<UpsampleConfig> {
 public:
  explicit Upsample(UpsampleConfig config) : Layer(std::move(config)) {}
  KILN_MODULE_DECLARED(Upsample)
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};

struct Upsampling2dConfig {
  OptionalField<SizeNd> size = {};
  ScaleFactors scale_factor = {};
  KILN_CONFIG(Upsampling2dConfig, doc(size, "the spatial sizes wanted"),
              doc(scale_factor, "or by what they are multiplied"))
};
class UpsamplingNearest2d : public Layer<Upsampling2dConfig> {
 public:
  explicit UpsamplingNearest2d(Upsampling2dConfig config) : Layer(std::move(config)) {}
  KILN_MODULE_DECLARED(UpsamplingNearest2d)
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};
// With the corners' centers aligned.
class UpsamplingBilinear2d : public Layer<Upsampling2dConfig> {
 public:
  explicit UpsamplingBilinear2d(Upsampling2dConfig config) : Layer(std::move(config)) {}
  KILN_MODULE_DECLARED(UpsamplingBilinear2d)
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};

struct CosineSimilarityConfig {
  int64_t dim = 1;
  Real eps = 1e-8;
  KILN_CONFIG(CosineSimilarityConfig, dim, eps)
};
// a b / (max(|a|, eps) max(|b|, eps)) of the vectors along dim.
class CosineSimilarity : public Layer<CosineSimilarityConfig> {
 public:
  explicit CosineSimilarity(CosineSimilarityConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(CosineSimilarity)
  Tensor forward(const Tensor& x1, const Tensor& x2) const;
};

struct PairwiseDistanceConfig {
  Real p = 2.0;
  Real eps = 1e-6;
  bool keepdim = false;
  KILN_CONFIG(PairwiseDistanceConfig, p, eps, keepdim)
};
// |a - b + eps|_p of the vectors along the last dim.
class PairwiseDistance : public Layer<PairwiseDistanceConfig> {
 public:
  explicit PairwiseDistance(PairwiseDistanceConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(PairwiseDistance)
  Tensor forward(const Tensor& x1, const Tensor& x2) const;
};

}  // namespace kiln::nn
