// Running results along a dim, and what is made of neighbours.
#pragma once

#include <optional>
#include <utility>

#include "kiln/tensor/tensor.h"

namespace kiln {

// Running products along dim; of integers and bools in i64. The gradient is exact at zeros.
Tensor cumprod(const Tensor& x, int64_t dim);
// The largest (smallest) element so far along dim, and where it stands: the latest of equal ones.
// NaN wins.
std::pair<Tensor, Tensor> cummax(const Tensor& x, int64_t dim);
std::pair<Tensor, Tensor> cummin(const Tensor& x, int64_t dim);
// log(exp(x[0]) + .. + exp(x[i])) along dim, without overflow. Floating point only.
Tensor logcumsumexp(const Tensor& x, int64_t dim);

// Differences of neighbours along dim, n times over; `prepend` and `append` (undefined: none) are
// joined to x first. Of bools: whether they differ.
Tensor diff(const Tensor& x, int64_t n = 1, int64_t dim = -1, const Tensor& prepend = {},
            const Tensor& append = {});

// The integral of y along dim by the trapezoidal rule: points `dx` apart, or at the positions x
// (one for each y, or one row for all).
Tensor trapezoid(const Tensor& y, double dx = 1.0, int64_t dim = -1);
Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t dim = -1);
// Its running results: one element less along dim.
Tensor cumulative_trapezoid(const Tensor& y, double dx = 1.0, int64_t dim = -1);
Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int64_t dim = -1);

// h[0] = b[0], h[i] = a[i] h[i - 1] + b[i] along dim (a[0] is not read); from the other end with
// `reversed`. Shapes and dtypes of a and b are equal; floating point only.
Tensor linear_scan(const Tensor& a, const Tensor& b, int64_t dim, bool reversed = false);

}  // namespace kiln
