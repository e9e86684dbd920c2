// Blocks that several vision models consist of, under torchvision's keys.
#pragma once

#include <cstdint>
#include <functional>

#include "kiln/nn/batch_norm.h"
#include "kiln/nn/conv2d.h"
#include "kiln/nn/layer_norm.h"
#include "kiln/nn/linear.h"
#include "kiln/nn/sequential.h"

namespace kiln::models {

// The multiple of divisor next to value, which is at most a tenth less.
int64_t make_divisible(double value, int64_t divisor);
// Throws ValueError "model: name must be at least 1" for a number below.
void require_positive(const char* model, const char* name, int64_t value);

using Initializer = std::function<void(Tensor&)>;
// Layers whose weights start as `init` fills them, and whose biases start at 0.
nn::Conv2d conv2d(int64_t inputs, int64_t outputs, nn::Size2d kernel,
                  const nn::Conv2dOptions& options, const Initializer& init);
nn::Linear linear(int64_t inputs, int64_t outputs, const Initializer& init);
// Kaiming's normal numbers by fan out; `relu` with that gain.
Initializer kaiming(bool relu = true);
Initializer normal(double std);
Initializer truncated_normal(double std);

enum class Act : uint8_t { none, relu, hardswish, silu };
struct ConvNormOptions {
  int64_t kernel = 3;
  int64_t stride = 1;
  int64_t groups = 1;
  int64_t dilation = 1;
  Act act = Act::relu;
  nn::BatchNormOptions norm = {};
};
// A convolution that keeps the size at stride 1, a batch norm and an activation.
nn::Sequential conv_norm_activation(int64_t inputs, int64_t outputs,
                                    const ConvNormOptions& options = {});

// Scales each channel by what two 1x1 convolutions make of all channels' means (Hu et al., 2018).
// MobileNetV3: ReLU and a hard sigmoid; EfficientNet: SiLU and a sigmoid.
class SqueezeExcitation : public nn::Module {
 public:
  SqueezeExcitation(int64_t inputs, int64_t squeezed, bool hard);
  nn::Conv2d fc1, fc2;
  KILN_MODULE_DECLARED(SqueezeExcitation)
  Tensor forward(const Tensor& x);

 private:
  bool hard_;
};

// While training sets samples to 0 with probability p, and divides the rest by 1 - p (Huang et al.,
// 2016).
Tensor stochastic_depth(const Tensor& x, double p, bool training);

// Expands the channels, convolves each, squeezes and excites, projects; adds the input where the
// shape is the same. Of MobileNetV3, and of EfficientNet (MBConv).
struct InvertedResidualOptions {
  int64_t kernel = 3;
  int64_t expanded = 0;
  int64_t outputs = 0;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t squeezed = 0;  // channels of the squeeze; 0: there is none
  bool hard = true;      // of SqueezeExcitation
  Act act = Act::relu;
  double stochastic_depth_prob = 0.0;
  nn::BatchNormOptions norm = {};
};
class InvertedResidual : public nn::Module {
 public:
  InvertedResidual(int64_t inputs, const InvertedResidualOptions& options);
  nn::Sequential block;
  KILN_MODULE_DECLARED(InvertedResidual)
  Tensor forward(const Tensor& x);

 private:
  bool adds_;
  double stochastic_depth_prob_;
};

// A LayerNorm over the channels of [N, C, H, W].
class LayerNorm2d : public nn::Module {
 public:
  explicit LayerNorm2d(int64_t channels);
  nn::Param<Tensor> weight, bias;
  KILN_MODULE_DECLARED(LayerNorm2d)
  Tensor forward(const Tensor& x);
};

}  // namespace kiln::models
