// Normalization by the statistics of groups, instances, neighbours and vectors. batch_norm and
// layer_norm are in ops.h.
#pragma once

#include <optional>

#include "kiln/tensor/tensor.h"

namespace kiln::functional {

// x [N, C, ..] with its channels in num_groups groups, each with the dims after C normalized to
// mean 0 and variance 1, then times weight [C] plus bias [C] (Wu & He, 2018). Throws ValueError
// when num_groups does not divide C.
Tensor group_norm(const Tensor& x, int64_t num_groups, const Tensor& weight = {},
                  const Tensor& bias = {}, double eps = 1e-5);
// x [N, C, ..], each channel of each instance normalized by its own statistics, or, without
// use_input_stats, by the running ones (Ulyanov et al., 2016). The running ones, when defined, are
// moved towards the batch's mean statistics by `momentum`.
Tensor instance_norm(const Tensor& x, const Tensor& running_mean = {},
                     const Tensor& running_var = {}, const Tensor& weight = {},
                     const Tensor& bias = {}, bool use_input_stats = true, double momentum = 0.1,
                     double eps = 1e-5);
// x / sqrt(mean(x^2) + eps) * weight over the last dims, whose sizes are normalized_shape (Zhang &
// Sennrich, 2019). eps is the dtype's epsilon when absent. Computed in f32 at least. Of complex
// numbers the squares themselves are averaged, as PyTorch does.
Tensor rms_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = {},
                std::optional<double> eps = {});
// x / (k + alpha mean(x^2 over `size` neighbouring channels))^beta, x [N, C, L, ..] (Krizhevsky et
// al., 2012).
Tensor local_response_norm(const Tensor& x, int64_t size, double alpha = 1e-4, double beta = 0.75,
                           double k = 1.0);
// x / max(|x|_p, eps), with the norms of the vectors along dim.
Tensor normalize(const Tensor& x, double p = 2.0, const Dims& dim = {1}, double eps = 1e-12);

}  // namespace kiln::functional
