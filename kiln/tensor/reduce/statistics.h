// Quantiles, modes, histograms, covariances.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "kiln/tensor/tensor.h"

namespace kiln {

// The q-quantiles of x along dim (over everything without one), q in [0, 1]: a number, or a row of
// them, which becomes the first dim. Between two elements by `interpolation`: "linear", "lower",
// "higher", "midpoint" or "nearest". A row with a NaN gives NaN; nanquantile leaves NaN out.
// Floating point of 32 or 64 bits, q of x's dtype. Throws ValueError for q outside [0, 1].
Tensor quantile(const Tensor& x, const Tensor& q, std::optional<int64_t> dim = {},
                bool keepdim = false, const std::string& interpolation = "linear");
Tensor quantile(const Tensor& x, double q, std::optional<int64_t> dim = {}, bool keepdim = false,
                const std::string& interpolation = "linear");
Tensor nanquantile(const Tensor& x, const Tensor& q, std::optional<int64_t> dim = {},
                   bool keepdim = false, const std::string& interpolation = "linear");
Tensor nanquantile(const Tensor& x, double q, std::optional<int64_t> dim = {}, bool keepdim = false,
                   const std::string& interpolation = "linear");

// The most frequent value along dim, the smallest of several, and where it stands last.
std::pair<Tensor, Tensor> mode(const Tensor& x, int64_t dim = -1, bool keepdim = false);

// How often each number 0, 1, .. occurs in a row of non-negative integers, up to the largest or to
// minlength - 1: i64, or the sums of their weights (f32 for f32 weights, else f64).
Tensor bincount(const Tensor& x, const Tensor& weights = {}, int64_t minlength = 0);

// How many elements fall into each of `bins` equal intervals of [min, max] (of x's range where both
// are 0), in x's floating point dtype. The last interval has both ends; others do not count.
Tensor histc(const Tensor& x, int64_t bins = 100, double min = 0, double max = 0);

// (counts, edges) with `bins` equal intervals of the range (x's own without one), or with given
// ascending edges. Elements count `weight` (undefined: 1). With `density` the counts are divided so
// that they integrate to 1.
struct HistogramOptions {
  std::optional<std::pair<double, double>> range = {};
  Tensor weight = {};
  bool density = false;
};
std::pair<Tensor, Tensor> histogram(const Tensor& x, int64_t bins = 100,
                                    const HistogramOptions& options = {});
std::pair<Tensor, Tensor> histogram(const Tensor& x, const Tensor& edges,
                                    const HistogramOptions& options = {});

// Covariances of the rows of a matrix (variables) over its columns (observations), divided by
// n - correction. fweights: how often each observation counts; aweights: how much.
Tensor cov(const Tensor& x, int64_t correction = 1, const Tensor& fweights = {},
           const Tensor& aweights = {});
// Pearson's correlation coefficients of the rows.
Tensor corrcoef(const Tensor& x);

}  // namespace kiln
