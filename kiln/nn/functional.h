// kiln::nn::functional: the stateless forms of layers and losses, under the name that PyTorch users
// look for.
#pragma once

#include "kiln/tensor/activations.h"
#include "kiln/tensor/attention.h"
#include "kiln/tensor/bilinear.h"
#include "kiln/tensor/convolution.h"
#include "kiln/tensor/ctc_loss.h"
#include "kiln/tensor/dropout.h"
#include "kiln/tensor/embedding.h"
#include "kiln/tensor/folding.h"
#include "kiln/tensor/fractional_pooling.h"
#include "kiln/tensor/interpolate.h"
#include "kiln/tensor/loss_functions.h"
#include "kiln/tensor/normalization.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/pooling.h"
#include "kiln/tensor/rnnt_loss.h"

namespace kiln::nn {
namespace functional = kiln::functional;
}
