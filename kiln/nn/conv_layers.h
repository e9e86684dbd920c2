// Conv1d, Conv3d and the transposed convolutions; Conv2d has a header of its own.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kiln/nn/layer.h"
#include "kiln/nn/padding_nd.h"
#include "kiln/nn/size_nd.h"
#include "kiln/tensor/nn/convolution.h"
#include "kiln/tensor/tensor.h"

namespace kiln::nn {

struct ConvNdOptions {
  SizeNd stride = 1;
  PaddingNd padding = 0;
  SizeNd dilation = 1;
  int64_t groups = 1;  // divides both numbers of channels
  bool bias = true;
  std::string padding_mode = "zeros";  // or reflect, replicate, circular
  KILN_CONFIG(ConvNdOptions, stride, doc(padding, "on each side"), dilation,
              doc(groups, "divides both numbers of channels"), bias,
              doc(padding_mode, "zeros, reflect, replicate or circular"))
};
struct ConvNdConfig {
  Required<int64_t> in_channels = {};
  Required<int64_t> out_channels = {};
  Required<SizeNd> kernel_size = {};
  ConvNdOptions options = {};
  KILN_CONFIG(ConvNdConfig, in_channels, out_channels, kernel_size, options)
};

// x [N, C, L..] or [C, L..] -> [N, O, L'..], L' = (L + 2 padding - dilation (K - 1) - 1) / stride +
// 1. weight [O, C / groups, K..] and bias [O] start uniform within 1 / sqrt(C / groups K..).
class ConvNdLayer : public Layer<ConvNdConfig> {
 public:
  Param<Tensor> weight;
  Param<Tensor> bias;

  Tensor forward(const Tensor& x) const { return forward(x, functional::ConvEpilogue{}); }
  // activation(conv(x) + residual) in one go: conv(x, {.activation = Activation::relu}).
  Tensor forward(const Tensor& x, const functional::ConvEpilogue& epilogue) const;
  void reset_parameters();
  std::string extra_repr() const override;

  int64_t in_channels() const { return config_.in_channels; }
  int64_t out_channels() const { return config_.out_channels; }
  const ConvNdOptions& options() const { return config_.options; }

 protected:
  ConvNdLayer(const char* name, int dims, ConvNdConfig config, const ParamOptions& param_options);

 private:
  int dims_;
};

// nn::Conv1d conv{16, 32, 3, {.padding = 1}};
class Conv1d : public ConvNdLayer {
 public:
  Conv1d(int64_t in_channels, int64_t out_channels, SizeNd kernel_size,
         const ConvNdOptions& options = {}, const ParamOptions& param_options = {})
      : Conv1d(ConvNdConfig{in_channels, out_channels, kernel_size, options}, param_options) {}
  explicit Conv1d(ConvNdConfig config, const ParamOptions& param_options = {})
      : ConvNdLayer("Conv1d", 1, std::move(config), param_options) {}
  KILN_MODULE_DECLARED(Conv1d)
};

class Conv3d : public ConvNdLayer {
 public:
  Conv3d(int64_t in_channels, int64_t out_channels, SizeNd kernel_size,
         const ConvNdOptions& options = {}, const ParamOptions& param_options = {})
      : Conv3d(ConvNdConfig{in_channels, out_channels, kernel_size, options}, param_options) {}
  explicit Conv3d(ConvNdConfig config, const ParamOptions& param_options = {})
      : ConvNdLayer("Conv3d", 3, std::move(config), param_options) {}
  KILN_MODULE_DECLARED(Conv3d)
};

// ---- Transposed: the gradient of a convolution with respect to its input, as a layer

struct ConvTransposeOptions {
  SizeNd stride = 1;
  SizeNd padding = 0;
  SizeNd output_padding = 0;  // elements more at the end of each dim
  int64_t groups = 1;         // divides both numbers of channels
  bool bias = true;
  SizeNd dilation = 1;
  std::string padding_mode = "zeros";  // no other
  KILN_CONFIG(ConvTransposeOptions, stride, padding,
              doc(output_padding, "elements more at the end of each dim"),
              doc(groups, "divides both numbers of channels"), bias, dilation,
              doc(padding_mode, "zeros"))
};
struct ConvTransposeConfig {
  Required<int64_t> in_channels = {};
  Required<int64_t> out_channels = {};
  Required<SizeNd> kernel_size = {};
  ConvTransposeOptions options = {};
  KILN_CONFIG(ConvTransposeConfig, in_channels, out_channels, kernel_size, options)
};

// x [N, C, L..] or [C, L..] -> [N, O, L'..], L' = (L - 1) stride - 2 padding + dilation (K - 1) +
// output_padding + 1. weight [C, O / groups, K..] and bias [O].
class ConvTransposeLayer : public Layer<ConvTransposeConfig> {
 public:
  Param<Tensor> weight;
  Param<Tensor> bias;

  // With an output_size (the spatial sizes, or all) output_padding follows from it. Throws
  // ValueError for one that the options cannot give. The activation is applied in one go.
  Tensor forward(const Tensor& x, const std::optional<std::vector<int64_t>>& output_size = {},
                 Activation activation = Activation::none) const;
  void reset_parameters();
  std::string extra_repr() const override;

  const ConvTransposeOptions& options() const { return config_.options; }

 protected:
  ConvTransposeLayer(const char* name, int dims, ConvTransposeConfig config,
                     const ParamOptions& param_options);

 private:
  Shape output_padding(const Tensor& x, std::span<const int64_t> output_size) const;

  const char* name_;
  int dims_;
};

class ConvTranspose1d : public ConvTransposeLayer {
 public:
  ConvTranspose1d(int64_t in_channels, int64_t out_channels, SizeNd kernel_size,
                  const ConvTransposeOptions& options = {}, const ParamOptions& param_options = {})
      : ConvTranspose1d(ConvTransposeConfig{in_channels, out_channels, kernel_size, options},
                        param_options) {}
  explicit ConvTranspose1d(ConvTransposeConfig config, const ParamOptions& param_options = {})
      : ConvTransposeLayer("ConvTranspose1d", 1, std::move(config), param_options) {}
  KILN_MODULE_DECLARED(ConvTranspose1d)
};

class ConvTranspose2d : public ConvTransposeLayer {
 public:
  ConvTranspose2d(int64_t in_channels, int64_t out_channels, SizeNd kernel_size,
                  const ConvTransposeOptions& options = {}, const ParamOptions& param_options = {})
      : ConvTranspose2d(ConvTransposeConfig{in_channels, out_channels, kernel_size, options},
                        param_options) {}
  explicit ConvTranspose2d(ConvTransposeConfig config, const ParamOptions& param_options = {})
      : ConvTransposeLayer("ConvTranspose2d", 2, std::move(config), param_options) {}
  KILN_MODULE_DECLARED(ConvTranspose2d)
};

class ConvTranspose3d : public ConvTransposeLayer {
 public:
  ConvTranspose3d(int64_t in_channels, int64_t out_channels, SizeNd kernel_size,
                  const ConvTransposeOptions& options = {}, const ParamOptions& param_options = {})
      : ConvTranspose3d(ConvTransposeConfig{in_channels, out_channels, kernel_size, options},
                        param_options) {}
  explicit ConvTranspose3d(ConvTransposeConfig config, const ParamOptions& param_options = {})
      : ConvTransposeLayer("ConvTranspose3d", 3, std::move(config), param_options) {}
  KILN_MODULE_DECLARED(ConvTranspose3d)
};

}  // namespace kiln::nn
