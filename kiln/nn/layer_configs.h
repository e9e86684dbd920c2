// What describes a layer before there is one: its sizes and options, which load from JSON and make
// it. A model's configuration holds those of its layers, and its init() calls theirs:
//
//   struct NetConfig {
//     nn::Conv2dConfig conv{.in_channels = 1, .out_channels = 8, .kernel_size = 3};
//     nn::LinearConfig head{.in_features = 8, .out_features = 10};
//     KILN_CONFIG(NetConfig, conv, head)
//   };
//   nn::Conv2d conv = config.conv.init();
#pragma once

#include "kiln/core/config.h"
#include "kiln/nn/avg_pool2d.h"
#include "kiln/nn/batch_norm2d.h"
#include "kiln/nn/conv2d.h"
#include "kiln/nn/dropout.h"
#include "kiln/nn/embedding.h"
#include "kiln/nn/layer_norm.h"
#include "kiln/nn/linear.h"
#include "kiln/nn/max_pool2d.h"
#include "kiln/nn/prelu.h"

namespace kiln::nn {

struct LinearConfig {
  Required<int64_t> in_features;
  Required<int64_t> out_features;
  bool bias = true;
  KILN_CONFIG(LinearConfig, in_features, out_features, bias)
  Linear init(const ParamOptions& options = {}) const {
    return Linear(in_features, out_features, bias, options);
  }
};

struct Conv2dConfig {
  Required<int64_t> in_channels;
  Required<int64_t> out_channels;
  Required<Size2d> kernel_size;
  Conv2dOptions options = {};
  KILN_CONFIG(Conv2dConfig, in_channels, out_channels, kernel_size, options)
  Conv2d init(const ParamOptions& param_options = {}) const {
    return Conv2d(in_channels, out_channels, kernel_size.value(), options, param_options);
  }
};

struct BatchNorm2dConfig {
  Required<int64_t> num_features;
  BatchNorm2dOptions options = {};
  KILN_CONFIG(BatchNorm2dConfig, num_features, options)
  BatchNorm2d init(const ParamOptions& param_options = {}) const {
    return BatchNorm2d(num_features, options, param_options);
  }
};

struct LayerNormConfig {
  Required<std::vector<int64_t>> normalized_shape;
  LayerNormOptions options = {};
  KILN_CONFIG(LayerNormConfig, doc(normalized_shape, "the sizes of the last dims"), options)
  LayerNorm init(const ParamOptions& param_options = {}) const {
    Shape shape;
    for (const int64_t size : normalized_shape.value()) shape.push_back(size);
    return LayerNorm(shape, options, param_options);
  }
};

struct EmbeddingConfig {
  Required<int64_t> num_embeddings;
  Required<int64_t> embedding_dim;
  EmbeddingOptions options = {};
  KILN_CONFIG(EmbeddingConfig, num_embeddings, embedding_dim, options)
  Embedding init(const ParamOptions& param_options = {}) const {
    return Embedding(num_embeddings, embedding_dim, options, param_options);
  }
};

struct DropoutConfig {
  double p = 0.5;
  KILN_CONFIG(DropoutConfig, doc(p, "probability that an element is zeroed"))
  Dropout init() const { return Dropout(p); }
};

struct MaxPool2dConfig {
  Required<Size2d> kernel_size;
  MaxPool2dOptions options = {};
  KILN_CONFIG(MaxPool2dConfig, kernel_size, options)
  MaxPool2d init() const { return MaxPool2d(kernel_size.value(), options); }
};

struct AvgPool2dConfig {
  Required<Size2d> kernel_size;
  AvgPool2dOptions options = {};
  KILN_CONFIG(AvgPool2dConfig, kernel_size, options)
  AvgPool2d init() const { return AvgPool2d(kernel_size.value(), options); }
};

struct PReLUConfig {
  int64_t num_parameters = 1;
  double init_value = 0.25;
  KILN_CONFIG(PReLUConfig, doc(num_parameters, "1, or the number of channels"), init_value)
  PReLU init(const ParamOptions& options = {}) const {
    return PReLU(num_parameters, init_value, options);
  }
};

}  // namespace kiln::nn
