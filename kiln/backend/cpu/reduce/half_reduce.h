// Reductions of 16-bit floats: the kernels of float, on pieces that are converted within the
// caches. Internal to the Cpu backend.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/elementwise/convert_kernels.h"
#include "kiln/backend/cpu/reduce/reduce_kernels.h"

namespace kiln::cpu {

// `Reduction::of<T>()` gives the kernels of a dtype.
template <Convert kType, class Reduction>
struct HalfKernels {
  using Acc = decltype(Reduction::template of<float>().combine(0, 0));
  static constexpr int64_t kBuffer = 8192;  // floats
  static constexpr int64_t kPanel = 128;    // columns

  static void rows(const uint16_t* x, int64_t n, int64_t count, Acc* out, const double*) {
    alignas(64) float buffer[kBuffer];
    const ReduceKernels<float, Acc>& kernels = Reduction::template of<float>();
    if (n <= kBuffer) {
      const int64_t at_once = kBuffer / n;
      for (int64_t r = 0; r < count; r += at_once) {
        const int64_t rows = std::min(at_once, count - r);
        convert_kernels().to_float(kType, x + r * n, buffer, rows * n);
        kernels.rows(buffer, n, rows, out + r, nullptr);
      }
      return;
    }
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t i = 0; i < n; i += kBuffer) {
        const int64_t length = std::min(kBuffer, n - i);
        Acc part;
        convert_kernels().to_float(kType, x + r * n + i, buffer, length);
        kernels.rows(buffer, length, 1, &part, nullptr);
        out[r] = i == 0 ? part : kernels.combine(out[r], part);
      }
    }
  }

  static void columns(const uint16_t* x, int64_t rows, int64_t columns, int64_t step, Acc* out,
                      const double*) {
    alignas(64) float buffer[kBuffer];
    Acc part[kPanel];
    const ReduceKernels<float, Acc>& kernels = Reduction::template of<float>();
    for (int64_t first = 0; first < columns; first += kPanel) {
      const int64_t width = std::min(kPanel, columns - first);
      const int64_t at_once = kBuffer / width;
      for (int64_t r = 0; r < rows; r += at_once) {
        const int64_t count = std::min(at_once, rows - r);
        const uint16_t* from = x + r * step + first;
        if (step == width) {
          convert_kernels().to_float(kType, from, buffer, count * width);
        } else {
          for (int64_t k = 0; k < count; ++k) {
            convert_kernels().to_float(kType, from + k * step, buffer + k * width, width);
          }
        }
        Acc* to = out + first;
        kernels.columns(buffer, count, width, width, r == 0 ? to : part, nullptr);
        for (int64_t c = 0; r > 0 && c < width; ++c) to[c] = kernels.combine(to[c], part[c]);
      }
    }
  }

  static constexpr ReduceKernels<uint16_t, Acc> table() {
    return {rows, columns,
            [](Acc a, Acc b) { return Reduction::template of<float>().combine(a, b); }};
  }
};

// Calls f(kernels, first element) for a tensor of T, or of 16-bit floats when T is float.
template <class T, class Reduction, class F>
decltype(auto) with_kernels(const HostTensor& source, F&& f) {
  if constexpr (sizeof(T) == 4) {
    const auto* bits = static_cast<const uint16_t*>(source.data());
    switch (convert_of(source.dtype())) {
      case Convert::f16:
        return f(HalfKernels<Convert::f16, Reduction>::table(), bits);
      case Convert::bf16:
        return f(HalfKernels<Convert::bf16, Reduction>::table(), bits);
      default:
        break;
    }
  }
  return f(Reduction::template of<T>(), static_cast<const T*>(source.data()));
}

}  // namespace kiln::cpu
