// Activations in place, of floating point tensors of any shape: each writes its result over x and
// returns x. They throw DTypeError for other dtypes (hardtanh_ and relu6_ take integers, too), and
// AutodiffError as every op in place does for a leaf that requires a gradient.
#pragma once

#include "kiln/tensor/tensor.h"

namespace kiln::functional {

// hardswish_, hardsigmoid_ and the others of functions.def whose home is `activation_`.
#define KILN_HOME_activation_(type, doc, name) Tensor& name##_(Tensor& x);
#define KILN_HOME_activation_number_(type, doc, name, number, value) \
  Tensor& name##_(Tensor& x, double number = value);
#include "kiln/backend/functions.def"

// min(max(x, min_val), max_val); of relu6_ within [0, 6]. Throws ValueError unless min_val <=
// max_val.
Tensor& hardtanh_(Tensor& x, double min_val = -1.0, double max_val = 1.0);
Tensor& relu6_(Tensor& x);
// x, or alpha (e^x - 1) where x <= 0; celu_ has e^(x / alpha), and throws ValueError for an alpha
// of 0; selu_ has the constants of self-normalizing networks (Klambauer and others, 2017).
Tensor& elu_(Tensor& x, double alpha = 1.0);
Tensor& celu_(Tensor& x, double alpha = 1.0);
Tensor& selu_(Tensor& x);

}  // namespace kiln::functional
