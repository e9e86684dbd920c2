// Kernels that reduce integers (wrapping), and products of floats: plain loops.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kiln/backend/cpu/reduce_kernels.h"

namespace kiln::cpu {

enum class IntReduction : uint8_t { sum, prod, amax, amin };

namespace detail {

template <IntReduction kOp, class Acc>
Acc combine(Acc a, Acc b) {
  if constexpr (kOp == IntReduction::amax) return a < b ? b : a;
  if constexpr (kOp == IntReduction::amin) return b < a ? b : a;
  if constexpr (std::is_floating_point_v<Acc>) {
    return kOp == IntReduction::sum ? a + b : a * b;
  } else {
    // Unsigned and at least 32 bits wide, so that it wraps.
    using U = std::conditional_t<(sizeof(Acc) < 4), uint32_t, std::make_unsigned_t<Acc>>;
    const U x = static_cast<U>(a);
    const U y = static_cast<U>(b);
    return static_cast<Acc>(kOp == IntReduction::sum ? x + y : x * y);
  }
}

template <IntReduction kOp, class T, class Acc>
void rows(const T* x, int64_t n, int64_t count, Acc* out, const double*) {
  for (int64_t r = 0; r < count; ++r) {
    const T* row = x + r * n;
    Acc result = static_cast<Acc>(row[0]);
    for (int64_t i = 1; i < n; ++i) result = combine<kOp, Acc>(result, static_cast<Acc>(row[i]));
    out[r] = result;
  }
}

template <IntReduction kOp, class T, class Acc>
void columns(const T* x, int64_t count, int64_t width, int64_t step, Acc* out, const double*) {
  for (int64_t c = 0; c < width; ++c) out[c] = static_cast<Acc>(x[c]);
  for (int64_t r = 1; r < count; ++r) {
    const T* row = x + r * step;
    for (int64_t c = 0; c < width; ++c) {
      out[c] = combine<kOp, Acc>(out[c], static_cast<Acc>(row[c]));
    }
  }
}

template <IntReduction kOp, class T, class Acc>
ReduceKernels<T, Acc> kernels() {
  return {rows<kOp, T, Acc>, columns<kOp, T, Acc>, combine<kOp, Acc>};
}

}  // namespace detail

template <class T>
ReduceKernels<T, T> int_reduce_kernels(IntReduction op) {
  switch (op) {
    case IntReduction::sum:
      return detail::kernels<IntReduction::sum, T, T>();
    case IntReduction::prod:
      return detail::kernels<IntReduction::prod, T, T>();
    case IntReduction::amax:
      return detail::kernels<IntReduction::amax, T, T>();
    default:
      return detail::kernels<IntReduction::amin, T, T>();
  }
}

template <class T, class Acc>
ReduceKernels<T, Acc> product_kernels() {
  return detail::kernels<IntReduction::prod, T, Acc>();
}

}  // namespace kiln::cpu
