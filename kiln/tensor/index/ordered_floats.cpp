#include "kiln/tensor/index/ordered_floats.h"

#include "kiln/tensor/index/unique.h"
#include "kiln/tensor/ops.h"

namespace kiln::detail {

namespace {

bool fits_double(const Tensor& x) {
  constexpr int64_t kMost = int64_t{1} << 53;
  if (x.dtype() != i64 || x.numel() == 0) return true;
  return x.max().item<int64_t>() <= kMost && x.min().item<int64_t>() >= -kMost;
}

}  // namespace

OrderedFloats::OrderedFloats(const Tensor& x) : dtype(x.dtype()) {
  if (fits_double(x)) {
    floats = x.to(f64);
    return;
  }
  const Unique ranks = unique(x, true);
  table = ranks.values;
  floats = ranks.inverse.to(f64);
}

Tensor OrderedFloats::integers(const Tensor& chosen) const {
  if (!table.defined()) return chosen.to(dtype);
  return table.index_select(0, chosen.to(i64).reshape({-1})).reshape(chosen.shape());
}

}  // namespace kiln::detail
