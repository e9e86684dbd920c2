// Activations in place, of floating point tensors of any shape: each writes its result over x and
// returns x. They throw DTypeError for other dtypes, and AutodiffError as every op in place does
// for a leaf that requires a gradient.
#pragma once

#include "kiln/tensor/tensor.h"

namespace kiln::functional {

// hardswish_, hardsigmoid_ and the others of functions.def whose home is `activation_`.
#define KILN_HOME_activation_(type, doc, name) Tensor& name##_(Tensor& x);
#define KILN_HOME_activation_number_(type, doc, name, number, value) \
  Tensor& name##_(Tensor& x, double number = value);
#include "kiln/backend/functions.def"

}  // namespace kiln::functional
