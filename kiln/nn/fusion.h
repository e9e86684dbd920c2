// Layers folded into one for inference.
#pragma once

#include "kiln/nn/batch_norm.h"
#include "kiln/nn/conv2d.h"

namespace kiln::nn {

// One convolution that computes bn(conv(x)) in eval mode: the normalization's scale goes into the
// weights, its shift into the bias. Nothing of either layer is shared or changed. Throws ValueError
// when a layer is in training mode, bn has no running statistics, or their channels differ.
//   model.conv1 = fuse_conv_bn_eval(model.conv1, model.bn1);
Conv2d fuse_conv_bn_eval(const Conv2d& conv, const BatchNorm2d& bn);

}  // namespace kiln::nn
