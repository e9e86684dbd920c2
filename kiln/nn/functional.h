// kiln::nn::functional: the stateless forms of layers and losses, under the name that PyTorch users
// look for.
#pragma once

#include "kiln/tensor/nn/activations.h"
#include "kiln/tensor/nn/activations_in_place.h"
#include "kiln/tensor/nn/attention.h"
#include "kiln/tensor/nn/bilinear.h"
#include "kiln/tensor/nn/convolution.h"
#include "kiln/tensor/nn/ctc_loss.h"
#include "kiln/tensor/nn/dropout.h"
#include "kiln/tensor/nn/embedding.h"
#include "kiln/tensor/nn/folding.h"
#include "kiln/tensor/nn/fractional_pooling.h"
#include "kiln/tensor/nn/interpolate.h"
#include "kiln/tensor/nn/losses.h"
#include "kiln/tensor/nn/normalization.h"
#include "kiln/tensor/nn/pooling.h"
#include "kiln/tensor/nn/rnnt_loss.h"
#include "kiln/tensor/nn/separable_conv2d.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {
namespace functional = kiln::functional;
}
