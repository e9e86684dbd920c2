// Places of the largest or smallest elements of columns.
#pragma once

#include <cstdint>

namespace kiln::cpu {

// out[c] = the row r < n of the best of x[r * step + c], for c < columns: NaN wins, the first of
// equals. n below 2^31.
template <class T>
using BestInColumns = void (*)(const T* x, int64_t n, int64_t step, int64_t columns, int64_t* out,
                               bool largest);

// For the best instruction set of this machine; T is float, double, int32_t or int64_t.
template <class T>
BestInColumns<T> best_in_columns_kernel();

}  // namespace kiln::cpu
