// kiln::nn::functional: the stateless forms of layers and losses, under the name that PyTorch users
// look for.
#pragma once

#include "kiln/tensor/attention.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {
namespace functional = kiln::functional;
}
