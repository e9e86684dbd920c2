// What describes a layer before there is one: its sizes and options, which load from JSON and make
// it. A model's configuration holds those of its layers, and its init() calls theirs:
//
//   struct NetConfig {
//     nn::Conv2dConfig conv{.in_channels = 1, .out_channels = 8, .kernel_size = 3};
//     nn::LinearConfig head{.in_features = 8, .out_features = 10};
//     KILN_CONFIG(NetConfig, conv, head)
//   };
//   nn::Conv2d conv = config.conv.init();
//
// Each stands beside its layer.
#pragma once

#include "kiln/core/config.h"
#include "kiln/nn/avg_pool2d.h"
#include "kiln/nn/batch_norm.h"
#include "kiln/nn/conv2d.h"
#include "kiln/nn/dropout.h"
#include "kiln/nn/embedding.h"
#include "kiln/nn/layer_norm.h"
#include "kiln/nn/linear.h"
#include "kiln/nn/max_pool2d.h"
#include "kiln/nn/prelu.h"
