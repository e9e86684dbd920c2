// Kernels that reduce rows, or columns, of integers (wrapping), and that count what is true.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kiln/backend/cpu/reduce/reduce_kernels.h"

namespace kiln::cpu {

enum class IntReduction : uint8_t { sum, prod, amax, amin };

template <class T>
struct IntReduceKernels {
  ReduceKernels<T, T> of[4];  // by IntReduction
};

struct IntReduceTable {
  IntReduceKernels<int64_t> i64;
  IntReduceKernels<int32_t> i32;
  IntReduceKernels<int16_t> i16;
  IntReduceKernels<int8_t> i8;
  IntReduceKernels<uint8_t> u8;
  ReduceKernels<uint8_t, int64_t> count;  // of bytes 0 and 1
  // Sums of narrow numbers in 64 bits.
  ReduceKernels<int32_t, int64_t> i32_sum;
  ReduceKernels<int16_t, int64_t> i16_sum;
  ReduceKernels<int8_t, int64_t> i8_sum;
  ReduceKernels<uint8_t, int64_t> u8_sum;

  template <class T>
  const ReduceKernels<T, T>& kernels(IntReduction op) const {
    const auto i = static_cast<size_t>(op);
    if constexpr (std::is_same_v<T, int64_t>) {
      return i64.of[i];
    } else if constexpr (std::is_same_v<T, int32_t>) {
      return i32.of[i];
    } else if constexpr (std::is_same_v<T, int16_t>) {
      return i16.of[i];
    } else if constexpr (std::is_same_v<T, int8_t>) {
      return i8.of[i];
    } else {
      static_assert(std::is_same_v<T, uint8_t>);
      return u8.of[i];
    }
  }
};

const IntReduceTable& int_reduce_kernels();

}  // namespace kiln::cpu
