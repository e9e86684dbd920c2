// Window functions for spectra. `periodic` ones (the default) are those of a signal that repeats
// with their length: a symmetric window of one number more, without its last. f32 unless `options`
// say otherwise. Throw ValueError for a negative length.
#pragma once

#include "kiln/tensor/tensor.h"

namespace kiln {

Tensor bartlett_window(int64_t length, bool periodic = true, TensorOptions options = {});
Tensor hann_window(int64_t length, bool periodic = true, TensorOptions options = {});
// alpha - beta cos(2 pi n / N).
Tensor hamming_window(int64_t length, bool periodic = true, double alpha = 0.54, double beta = 0.46,
                      TensorOptions options = {});
Tensor blackman_window(int64_t length, bool periodic = true, TensorOptions options = {});
// I0(beta sqrt(1 - (2 n / N - 1)^2)) / I0(beta).
Tensor kaiser_window(int64_t length, bool periodic = true, double beta = 12.0,
                     TensorOptions options = {});

}  // namespace kiln
