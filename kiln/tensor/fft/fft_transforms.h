// Fourier transforms of values, without history. Sums are multiplied by `scale`; their exponents
// are positive with `inverse`.
#pragma once

#include <vector>

#include "kiln/tensor/tensor.h"

namespace kiln::fft::detail {

// Of complex numbers along dim d.
Tensor transform(const Tensor& x, int d, bool inverse, double scale);
// Over the last dim: [.., n] real -> [.., n / 2 + 1]. Numbers 0 and n / 2 (of an even n), which
// stand for one number of the whole spectrum and not for two, are also multiplied by `ends`.
Tensor real_rows(const Tensor& x, double scale, double ends);
// [.., n / 2 + 1] -> [.., n] real. Likewise.
Tensor hermitian_rows(const Tensor& x, int64_t n, double scale, double ends);
// Of real numbers over `dims`, the last dim among them -> complex ones of the same shape.
Tensor full_spectrum(const Tensor& x, const std::vector<int>& dims, bool inverse, double scale);

}  // namespace kiln::fft::detail
