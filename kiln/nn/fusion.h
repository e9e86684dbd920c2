// Layers folded into one for inference.
#pragma once

#include "kiln/nn/batch_norm.h"
#include "kiln/nn/conv2d.h"
#include "kiln/nn/conv_layers.h"
#include "kiln/nn/linear.h"

namespace kiln::nn {

// One convolution that computes bn(conv(x)) in eval mode: the normalization's scale goes into the
// weights, its shift into the bias. Nothing of either layer is shared or changed. Throws ValueError
// when a layer is in training mode, bn has no running statistics, or their channels differ.
//   model.conv1 = fuse_conv_bn_eval(model.conv1, model.bn1);
Conv1d fuse_conv_bn_eval(const Conv1d& conv, const BatchNorm1d& bn);
Conv2d fuse_conv_bn_eval(const Conv2d& conv, const BatchNorm2d& bn);
Conv3d fuse_conv_bn_eval(const Conv3d& conv, const BatchNorm3d& bn);
ConvTranspose1d fuse_conv_bn_eval(const ConvTranspose1d& conv, const BatchNorm1d& bn);
ConvTranspose2d fuse_conv_bn_eval(const ConvTranspose2d& conv, const BatchNorm2d& bn);
ConvTranspose3d fuse_conv_bn_eval(const ConvTranspose3d& conv, const BatchNorm3d& bn);
// The same of bn(linear(x)) for x [N, in_features].
Linear fuse_linear_bn_eval(const Linear& linear, const BatchNorm1d& bn);

}  // namespace kiln::nn
