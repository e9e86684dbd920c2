// Reductions beyond Tensor's methods. Without dims (or with an empty list) over everything.
#pragma once

#include <optional>
#include <utility>

#include "kiln/tensor/tensor.h"

namespace kiln {

// Sum and mean of what is not NaN; the mean of nothing else is NaN.
Tensor nansum(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor nanmean(const Tensor& x, const Dims& dims = {}, bool keepdim = false);

// (variance or standard deviation, mean); the squares are divided by n - correction.
std::pair<Tensor, Tensor> var_mean(const Tensor& x, const Dims& dims = {}, double correction = 1,
                                   bool keepdim = false);
std::pair<Tensor, Tensor> std_mean(const Tensor& x, const Dims& dims = {}, double correction = 1,
                                   bool keepdim = false);

// (sum |x|^p)^(1/p); the largest |x| for p = inf, the smallest for -inf, the number of nonzero ones
// for 0. Floating point only; the gradient is 0 where the norm has a kink, shared evenly where
// several elements are the extremum.
Tensor norm(const Tensor& x, double p = 2.0, const Dims& dims = {}, bool keepdim = false);

// (smallest, largest), over dim or everything. Elements that are equal share the gradient.
std::pair<Tensor, Tensor> aminmax(const Tensor& x, std::optional<int64_t> dim = {},
                                  bool keepdim = false);

// Whether any (all) elements are nonzero: bools, or u8 for u8.
Tensor any(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor all(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
// How many elements are nonzero: i64.
Tensor count_nonzero(const Tensor& x, const Dims& dims = {});

}  // namespace kiln
