// Loops over complex numbers in host memory, for what real ops cannot do in one pass. None of them
// records anything; operands broadcast and have one complex dtype. On a device whose memory is not
// the host's they compute on a copy. Internal to kiln/tensor.
#pragma once

#include "kiln/tensor/tensor.h"

namespace kiln::complex_kernels {

// x y, or x times the conjugate of y.
Tensor mul(const Tensor& x, const Tensor& y, bool conjugate);
// Scaled by the larger part of the divisor, so that no square overflows (Smith's way).
Tensor div(const Tensor& x, const Tensor& y);
Tensor conj(const Tensor& z);
// 1 where the exponent is 0; 0 where only the base is.
Tensor pow(const Tensor& x, const Tensor& y);
// |z| without overflow, real.
Tensor abs(const Tensor& z);

enum class Map : uint8_t {
  exp,
  log,
  sqrt,
  sin,
  cos,
  tan,
  sinh,
  cosh,
  tanh,
  asin,
  acos,
  atan,
  asinh,
  acosh,
  atanh,
  reciprocal,
  expm1,
  log1p,
};
Tensor map(Map function, const Tensor& z);

}  // namespace kiln::complex_kernels
