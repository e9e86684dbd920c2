// Random numbers beyond rand and randn. Every function draws from the default generator unless one
// is given; equal seeds give equal numbers at any number of threads.
#pragma once

#include "kiln/tensor/creation.h"

namespace kiln {

// Normal numbers with a mean and a standard deviation for each element (both broadcast), in the
// dtype of the tensor. Throws ValueError for a negative deviation.
Tensor normal(const Tensor& mean, const Tensor& std, Generator* generator = nullptr);
Tensor normal(const Tensor& mean, double std = 1.0, Generator* generator = nullptr);
Tensor normal(double mean, const Tensor& std, Generator* generator = nullptr);
Tensor normal(double mean, double std, const Shape& shape, TensorOptions options = {},
              Generator* generator = nullptr);
// Ones with probability p, in the shape and dtype of x.
Tensor bernoulli(const Tensor& x, double p, Generator* generator = nullptr);
// Indices (i64) drawn with weights [n] or [rows, n], which need not sum to 1: [num_samples] or
// [rows, num_samples]. Without replacement no index is drawn twice. Throws ValueError for weights
// that are negative, not finite or all 0, and for more samples than there are to draw.
Tensor multinomial(const Tensor& weights, int64_t num_samples, bool replacement = false,
                   Generator* generator = nullptr);
// Poisson numbers with the given rates (>= 0), in their dtype.
Tensor poisson(const Tensor& rates, Generator* generator = nullptr);
// How many of `count` trials succeed with probability p, in the dtype of p; both broadcast.
Tensor binomial(const Tensor& count, const Tensor& p, Generator* generator = nullptr);
Tensor randint_like(const Tensor& x, int64_t low, int64_t high, Generator* generator = nullptr);

// ---- In place. Not recorded; the tensor may be any float (bernoulli_, geometric_, random_: also
// integers). Each returns x.

Tensor& uniform_(Tensor& x, double from = 0.0, double to = 1.0, Generator* generator = nullptr);
Tensor& normal_(Tensor& x, double mean = 0.0, double std = 1.0, Generator* generator = nullptr);
Tensor& bernoulli_(Tensor& x, double p = 0.5, Generator* generator = nullptr);
Tensor& bernoulli_(Tensor& x, const Tensor& p, Generator* generator = nullptr);
// Density lambd e^(-lambd x).
Tensor& exponential_(Tensor& x, double lambd = 1.0, Generator* generator = nullptr);
// How many trials until the first success of probability p, from 1.
Tensor& geometric_(Tensor& x, double p, Generator* generator = nullptr);
// Density 1 / (pi sigma (1 + ((x - median) / sigma)^2)).
Tensor& cauchy_(Tensor& x, double median = 0.0, double sigma = 1.0, Generator* generator = nullptr);
// e to normal numbers with this mean and deviation.
Tensor& log_normal_(Tensor& x, double mean = 1.0, double std = 2.0, Generator* generator = nullptr);
// Whole numbers in [from, to); without bounds, all that the dtype holds from 0 on (floats: up to
// 2^digits, not included).
Tensor& random_(Tensor& x, Generator* generator = nullptr);
Tensor& random_(Tensor& x, int64_t to, Generator* generator = nullptr);
Tensor& random_(Tensor& x, int64_t from, int64_t to, Generator* generator = nullptr);

}  // namespace kiln
