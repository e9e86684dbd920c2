// Activation functions. Unless it says otherwise, each works elementwise on floating point tensors
// of any shape, and throws DTypeError for others. relu, sigmoid, tanh, silu, gelu, softmax and
// log_softmax are in ops.h.
#pragma once

#include <optional>

#include "kiln/tensor/tensor.h"

namespace kiln::functional {

// leaky_relu (Maas et al., 2013), hardswish (Howard et al., 2019) and the others of functions.def
// whose home is `activation` or one of its forms.
#define KILN_HOME_activation(type, doc, name) Tensor name(const Tensor& x);
#define KILN_HOME_activation_ KILN_HOME_activation
#define KILN_HOME_activation_number(type, doc, name, number, value) \
  Tensor name(const Tensor& x, double number = value);
#define KILN_HOME_activation_number_ KILN_HOME_activation_number
#include "kiln/backend/functions.def"

// min(max(x, 0), 6); integers stay integers.
Tensor relu6(const Tensor& x);
// x limited to [min_val, max_val]; integers stay integers.
Tensor hardtanh(const Tensor& x, double min_val = -1.0, double max_val = 1.0);
// leaky_relu whose slope is, with `training`, drawn for each element from [lower, upper); otherwise
// their mean (Xu et al., 2015).
Tensor rrelu(const Tensor& x, double lower = 1.0 / 8, double upper = 1.0 / 3,
             bool training = false);
// x, or alpha (e^x - 1) where x <= 0 (Clevert et al., 2015).
Tensor elu(const Tensor& x, double alpha = 1.0);
// scale elu(x, alpha), with which activations keep mean 0 and variance 1 (Klambauer et al., 2017).
Tensor selu(const Tensor& x);
// max(0, x) + min(0, alpha (e^(x / alpha) - 1)) (Barron, 2017).
Tensor celu(const Tensor& x, double alpha = 1.0);
// a sigmoid(b), where a and b are the halves of x along dim (Dauphin et al., 2016).
Tensor glu(const Tensor& x, int64_t dim = -1);
// silu(a) b, where a and b are the halves of x along dim (Shazeer, 2020).
Tensor swiglu(const Tensor& x, int64_t dim = -1);
// log(1 + e^(beta x)) / beta; x where beta x > threshold.
Tensor softplus(const Tensor& x, double beta = 1.0, double threshold = 20.0);
// x / (1 + |x|).
Tensor softsign(const Tensor& x);
// x tanh(softplus(x)) (Misra, 2019).
Tensor mish(const Tensor& x);
// x - tanh(x).
Tensor tanhshrink(const Tensor& x);
// x moved towards 0 by lambd, and 0 where |x| <= lambd. Throws ValueError for a negative lambd.
Tensor softshrink(const Tensor& x, double lambd = 0.5);
// x - bias where x > lambd, x + bias where x < -lambd, else 0.
Tensor shrink(const Tensor& x, double lambd = 0.5, double bias = 0.5);
// x where x > alpha, else 0.
Tensor thresholded_relu(const Tensor& x, double alpha = 1.0);
// softmax(-x).
Tensor softmin(const Tensor& x, int64_t dim);
// e^x_i / (1 + sum_j e^x_j) over dim: a softmax that may choose nothing (Miller, 2023).
Tensor quiet_softmax(const Tensor& x, int64_t dim);
// A sample of the relaxed one-hot distribution with these logits (Jang et al., 2016):
// softmax((logits + Gumbel noise) / tau). With `hard`, one-hot vectors with the gradient of the
// relaxed ones. Throws ValueError unless tau > 0.
Tensor gumbel_softmax(const Tensor& logits, double tau = 1.0, bool hard = false, int64_t dim = -1);

// The dtype that x is converted to first, when one is given.
Tensor softmax(const Tensor& x, int64_t dim, std::optional<DType> dtype);
Tensor log_softmax(const Tensor& x, int64_t dim, std::optional<DType> dtype);
Tensor softmin(const Tensor& x, int64_t dim, std::optional<DType> dtype);

}  // namespace kiln::functional
