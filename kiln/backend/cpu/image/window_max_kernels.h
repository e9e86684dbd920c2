// Where the largest element of a box lies.
#pragma once

#include <cstdint>

namespace kiln::cpu {

// Of `rows` rows of `width` elements in float or double, `step` elements apart: the offset of the
// first largest one, or of the first NaN.
template <class T>
using WindowMax = int64_t (*)(const T* x, int64_t rows, int64_t step, int64_t width);

// For the best instruction set of this machine.
template <class T>
WindowMax<T> window_max();

}  // namespace kiln::cpu
