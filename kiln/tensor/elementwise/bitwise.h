// Bits and divisors of integers.
#pragma once

#include "kiln/tensor/ops.h"

namespace kiln {

// Integers and bools; DTypeError for others.
inline Tensor bitwise_and(const Tensor& x, const Tensor& y) { return x.bitwise_and(y); }
inline Tensor bitwise_or(const Tensor& x, const Tensor& y) { return x.bitwise_or(y); }
inline Tensor bitwise_xor(const Tensor& x, const Tensor& y) { return x.bitwise_xor(y); }
inline Tensor bitwise_not(const Tensor& x) { return x.bitwise_not(); }
Tensor bitwise_and(const Tensor& x, Scalar y);
Tensor bitwise_or(const Tensor& x, Scalar y);
Tensor bitwise_xor(const Tensor& x, Scalar y);
inline Tensor operator~(const Tensor& x) { return x.bitwise_not(); }
inline Tensor operator&(const Tensor& x, Scalar y) { return bitwise_and(x, y); }
inline Tensor operator|(const Tensor& x, Scalar y) { return bitwise_or(x, y); }
inline Tensor operator^(const Tensor& x, Scalar y) { return bitwise_xor(x, y); }

// x 2^y, bits beyond the dtype lost; 0 when y is negative or not below the number of bits. Integers
// only.
Tensor bitwise_left_shift(TensorArg x, TensorArg y);
Tensor bitwise_left_shift(TensorArg x, Scalar y);
Tensor bitwise_left_shift(Scalar x, TensorArg y);
// floor(x / 2^y); for such y, 0 or, where x < 0, -1.
Tensor bitwise_right_shift(TensorArg x, TensorArg y);
Tensor bitwise_right_shift(TensorArg x, Scalar y);
Tensor bitwise_right_shift(Scalar x, TensorArg y);
inline Tensor operator<<(const Tensor& x, const Tensor& y) { return bitwise_left_shift(x, y); }
inline Tensor operator<<(const Tensor& x, int64_t y) { return bitwise_left_shift(x, Scalar(y)); }
inline Tensor operator>>(const Tensor& x, const Tensor& y) { return bitwise_right_shift(x, y); }
inline Tensor operator>>(const Tensor& x, int64_t y) { return bitwise_right_shift(x, Scalar(y)); }

// The greatest common divisor and the least common multiple, neither negative. Integers only.
Tensor gcd(TensorArg x, TensorArg y);
Tensor lcm(TensorArg x, TensorArg y);

}  // namespace kiln
