// Draws of gamma distributions with rate 1, and how they and P(a, x) change with the concentration.
#pragma once

#include "kiln/tensor/tensor.h"

namespace kiln::distributions {

// Logs of draws from gamma distributions of rate 1, in f64 whatever the dtype of concentration (so
// that nothing underflows). The draws are those of Marsaglia and Tsang (2000). Their derivative is
// implicit (Figurnov, Mohamed and Mnih, 2018): a draw keeps its probability P(a, x), so
// dx/da = -(dP/da) / (dP/dx). It has no second derivative (AutodiffError).
Tensor log_standard_gamma(const Tensor& concentration);

// The draws themselves, in the dtype of concentration; never 0.
Tensor standard_gamma(const Tensor& concentration);

// P(a, x), the regularized lower incomplete gamma function, with both derivatives. a and x
// broadcast.
Tensor gammainc_of_both(const Tensor& a, const Tensor& x);

}  // namespace kiln::distributions
