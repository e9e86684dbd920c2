// Complex dtypes: c64 is a pair of f32, c128 a pair of f64, in memory as std::complex has them.
#pragma once

#include <complex>

#include "kiln/core/dtype.h"

namespace kiln {

inline constexpr DType c64 = DType::c64;
inline constexpr DType c128 = DType::c128;

constexpr bool is_complex(DType t) { return t == DType::c64 || t == DType::c128; }

// The dtype of the parts of a complex number; any other dtype itself.
constexpr DType real_dtype(DType t) {
  return t == DType::c64 ? DType::f32 : t == DType::c128 ? DType::f64 : t;
}

// The complex dtype whose parts hold a real `t`: c128 for f64, a complex dtype itself, c64 for
// everything else (there is no complex dtype of 16-bit parts).
constexpr DType complex_dtype(DType t) {
  return t == DType::f64 || t == DType::c128 ? DType::c128 : DType::c64;
}

template <>
struct DTypeOf<std::complex<float>> : std::integral_constant<DType, DType::c64> {};
template <>
struct DTypeOf<std::complex<double>> : std::integral_constant<DType, DType::c128> {};

}  // namespace kiln
