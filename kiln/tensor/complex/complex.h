// Complex tensors: c64 (pairs of f32) and c128 (pairs of f64), in memory as std::complex.
//
// Arithmetic, products, reductions, indexing and the elementary functions take them as they take
// real ones; what has no meaning for complex numbers (an order, rounding) throws DTypeError. The
// gradient of a real loss L is dL/dre + i dL/dim, PyTorch's convention.
#pragma once

#include "kiln/core/complex.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor.h"

namespace kiln {

inline bool is_complex(const Tensor& x) { return is_complex(x.dtype()); }

// re + i im, of two real tensors of one dtype (f32 or f64) that broadcast. Throws DTypeError.
Tensor complex(const Tensor& real, const Tensor& imag);
// abs (cos(angle) + i sin(angle)), of two real tensors of one dtype (f32 or f64) that broadcast.
Tensor polar(const Tensor& abs, const Tensor& angle);
// The complex number as a 0-d tensor, and a tensor full of it. c64 unless options say c128.
template <class T>
Tensor tensor(const std::complex<T>& value, TensorOptions options = {});
template <class T>
Tensor full(const Shape& shape, const std::complex<T>& value, TensorOptions options = {});

// The parts: views, whose writes the complex tensor sees. A real tensor is its own real part; its
// imaginary part is a DTypeError.
Tensor real(const Tensor& x);
Tensor imag(const Tensor& x);
// A view [.., 2] of the parts, and the complex view of such a tensor: f32 or f64, the last dim 2
// and of stride 1, other strides and the offset even. Throws DTypeError, ShapeError.
Tensor view_as_real(const Tensor& x);
Tensor view_as_complex(const Tensor& x);
// re - i im; x itself when it is real.
Tensor conj(const Tensor& x);
// The argument, in (-pi, pi]; of a real tensor 0, pi, or NaN where it is.
Tensor angle(const Tensor& x);
// x / |x|, and 0 where x is 0; of a real tensor its sign.
Tensor sgn(const Tensor& x);
// Whether the imaginary part is 0.
Tensor isreal(const Tensor& x);
// The conjugate of the last two dims transposed. Throws ShapeError for less than 2 dims.
Tensor adjoint(const Tensor& x);

namespace detail {
Tensor complex_full(const Shape& shape, std::complex<double> value, const TensorOptions& options);
std::complex<double> complex_item(const Tensor& x);
// The number in the dtype that it takes beside x: it makes x complex, and never wider.
Tensor number_like(const Tensor& x, std::complex<double> value);
}  // namespace detail

template <>
inline std::complex<double> Tensor::item<std::complex<double>>() const {
  return detail::complex_item(*this);
}
template <>
inline std::complex<float> Tensor::item<std::complex<float>>() const {
  return std::complex<float>(detail::complex_item(*this));
}

template <class T>
Tensor tensor(const std::complex<T>& value, TensorOptions options) {
  return detail::complex_full(Shape{}, std::complex<double>(value), options);
}
template <class T>
Tensor full(const Shape& shape, const std::complex<T>& value, TensorOptions options) {
  return detail::complex_full(shape, std::complex<double>(value), options);
}

// With a number: x * 2i and the like.
#define KILN_COMPLEX_OPERATOR(op)                                 \
  template <class T>                                              \
  Tensor operator op(const Tensor& x, const std::complex<T>& y) { \
    return x op detail::number_like(x, std::complex<double>(y));  \
  }                                                               \
  template <class T>                                              \
  Tensor operator op(const std::complex<T>& x, const Tensor& y) { \
    return detail::number_like(y, std::complex<double>(x)) op y;  \
  }
KILN_COMPLEX_OPERATOR(+)
KILN_COMPLEX_OPERATOR(-)
KILN_COMPLEX_OPERATOR(*)
KILN_COMPLEX_OPERATOR(/)
KILN_COMPLEX_OPERATOR(==)
KILN_COMPLEX_OPERATOR(!=)
#undef KILN_COMPLEX_OPERATOR

}  // namespace kiln
