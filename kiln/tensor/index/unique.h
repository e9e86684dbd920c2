// Distinct values.
#pragma once

#include <optional>

#include "kiln/tensor/tensor.h"

namespace kiln {

struct Unique {
  Tensor values;
  Tensor inverse;  // where each element of x stands among the values: i64, in the shape of x
                   // ([size of dim] with a dim); undefined unless asked for
  Tensor counts;   // how often each value occurs: i64; undefined unless asked for
};

// The distinct elements of x in ascending order or, with a dim, its distinct slices in
// lexicographic order. Each NaN is distinct. Has no gradient.
Unique unique(const Tensor& x, bool return_inverse = false, bool return_counts = false,
              std::optional<int64_t> dim = {});
// The first element (slice) of each run of equal ones, in the order in which they stand.
Unique unique_consecutive(const Tensor& x, bool return_inverse = false, bool return_counts = false,
                          std::optional<int64_t> dim = {});

}  // namespace kiln
