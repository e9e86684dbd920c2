// Sorting of host values, for backends that have no sort of their own.
#pragma once

#include "kiln/core/tensor_data.h"

namespace kiln::host {

// Where the values of each row along `dim` stand in sorted order: i64, in the shape of x. Stable;
// NaN is larger than everything, so it comes last, or first when descending.
TensorData argsort(const TensorData& x, int dim, bool descending);

// Where each value [.., m] would be inserted into its ascending row [.., n], or into the only row
// [n]: before its equals or, with `right`, behind them. i64, in the shape of the values.
TensorData searchsorted(const TensorData& sorted, const TensorData& values, bool right);

}  // namespace kiln::host
