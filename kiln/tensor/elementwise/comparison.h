// Comparison and tests of values as free functions: bools in the broadcast shape of the operands.
#pragma once

#include "kiln/tensor/tensor.h"

namespace kiln {

#define KILN_COMPARISON(name, alias)                                          \
  inline Tensor name(const Tensor& x, const Tensor& y) { return x.name(y); }  \
  inline Tensor name(const Tensor& x, Scalar y) { return x.name(y); }         \
  inline Tensor alias(const Tensor& x, const Tensor& y) { return x.name(y); } \
  inline Tensor alias(const Tensor& x, Scalar y) { return x.name(y); }
KILN_COMPARISON(ne, not_equal)
KILN_COMPARISON(gt, greater)
KILN_COMPARISON(ge, greater_equal)
KILN_COMPARISON(lt, less)
KILN_COMPARISON(le, less_equal)
#undef KILN_COMPARISON
inline Tensor eq(const Tensor& x, const Tensor& y) { return x.eq(y); }
inline Tensor eq(const Tensor& x, Scalar y) { return x.eq(y); }

// Of every dtype; what is not 0 is true (NaN too).
inline Tensor logical_and(const Tensor& x, const Tensor& y) { return x.logical_and(y); }
inline Tensor logical_or(const Tensor& x, const Tensor& y) { return x.logical_or(y); }
inline Tensor logical_xor(const Tensor& x, const Tensor& y) { return x.logical_xor(y); }
inline Tensor logical_not(const Tensor& x) { return x.logical_not(); }

inline Tensor isnan(const Tensor& x) { return x.isnan(); }
inline Tensor isinf(const Tensor& x) { return x.isinf(); }
inline Tensor isfinite(const Tensor& x) { return x.isfinite(); }
Tensor isposinf(const Tensor& x);
Tensor isneginf(const Tensor& x);
// Whether the sign bit is set: for -0 and NaN too. Integers: whether they are below 0.
Tensor signbit(const Tensor& x);

// Whether |x - y| <= atol + rtol |y|, or both are the same infinity (or NaN, with equal_nan).
// Throws DTypeError unless both have one dtype, ValueError for negative tolerances.
Tensor isclose(const Tensor& x, const Tensor& y, double rtol = 1e-5, double atol = 1e-8,
               bool equal_nan = false);
bool allclose(const Tensor& x, const Tensor& y, double rtol = 1e-5, double atol = 1e-8,
              bool equal_nan = false);
// One shape and the same values.
inline bool equal(const Tensor& x, const Tensor& y) { return x.equal(y); }

// Whether each of x is among the values of `test`, or, inverted, is not.
Tensor isin(const Tensor& x, const Tensor& test, bool assume_unique = false, bool invert = false);
Tensor isin(const Tensor& x, Scalar test, bool assume_unique = false, bool invert = false);
Tensor isin(Scalar x, const Tensor& test, bool assume_unique = false, bool invert = false);

// Whether the only element is not 0. Throws ValueError unless numel() == 1.
bool is_nonzero(const Tensor& x);

// The dtype that an op of both gives, by PyTorch's promotion of tensors with dims, 0-d tensors and
// numbers.
DType result_type(const Tensor& x, const Tensor& y);
DType result_type(const Tensor& x, Scalar y);
DType result_type(Scalar x, const Tensor& y);
DType result_type(Scalar x, Scalar y);
// Whether values of `from` may be written to a tensor of `to` in place: not from a larger kind.
bool can_cast(DType from, DType to);

}  // namespace kiln
