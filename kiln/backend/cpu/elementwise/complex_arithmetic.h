// Arithmetic of complex numbers whose parts lie interleaved.
#pragma once

#include <cstdint>

namespace kiln::cpu {

// Each takes n numbers, that is 2 n parts.
template <class T>
struct ComplexArithmetic {
  void (*mul)(const T* x, const T* y, T* out, int64_t n);
  void (*mul_conj)(const T* x, const T* y, T* out, int64_t n);  // x times the conjugate of y
  // Scaled by the larger part of the divisor, so that no square overflows (Smith's way).
  void (*div)(const T* x, const T* y, T* out, int64_t n);
  void (*reciprocal)(const T* z, T* out, int64_t n);  // 0 where one part is infinite
  void (*conj)(const T* z, T* out, int64_t n);
};

// For the best instruction set of this machine.
template <class T>
const ComplexArithmetic<T>& complex_arithmetic();

}  // namespace kiln::cpu
