#include "kiln/backend/result_layout.h"

#include <algorithm>
#include <utility>

#include "kiln/core/dim_order.h"

namespace kiln {

namespace {

// The stride that x has along dim d of `shape`; 0 where x is broadcast.
int64_t stride_along(const Lying& x, const Shape& shape, int d) {
  const int own = d - (shape.rank() - x.shape->rank());
  if (own < 0 || ((*x.shape)[own] == 1 && shape[d] != 1)) return 0;
  return (*x.strides)[own];
}

// Whether dim `outer`, which stands before dim `inner` of the order, stands there rightly: 1 if the
// operands say so, -1 if they say the other way round, 0 if they say nothing.
int compare(const Shape& shape, std::initializer_list<Lying> operands, int outer, int inner) {
  for (const Lying& x : operands) {
    const int64_t far = stride_along(x, shape, outer);
    const int64_t near = stride_along(x, shape, inner);
    if (far == 0 || near == 0) continue;
    if (far != near) return far > near ? 1 : -1;
    if (shape[inner] > shape[outer]) return -1;  // the smaller one, which has one element, is outer
  }
  return 0;
}

}  // namespace

Strides result_strides(const Shape& shape, std::initializer_list<Lying> operands) {
  const bool all_row_major = std::ranges::all_of(operands, [&](const Lying& x) {
    return *x.shape == shape && is_contiguous(shape, *x.strides);
  });
  if (all_row_major) return contiguous_strides(shape);
  // From the innermost dim outwards; a dim goes inwards past those that lie outside it.
  Dims order;
  for (int d = shape.rank() - 1; d >= 0; --d) order.push_back(d);
  for (int i = 1; i < shape.rank(); ++i) {
    int at = i;
    for (int before = i - 1; before >= 0; --before) {
      const int found =
          compare(shape, operands, static_cast<int>(order[at]), static_cast<int>(order[before]));
      if (found > 0) break;
      if (found == 0) continue;
      std::swap(order[at], order[before]);
      at = before;
    }
  }
  Strides out = Strides::filled(shape.rank(), 1);
  int64_t step = 1;
  for (const int64_t d : order) {
    out[static_cast<int>(d)] = step;
    step = detail::next_stride(step, shape[static_cast<int>(d)]);
  }
  return out;
}

Dims order_in_memory(const Shape& shape, const Strides& strides) {
  if (is_contiguous(shape, strides)) return {};
  const Dims order = by_stride(strides);
  return is_contiguous(permuted(shape, order), permuted(strides, order)) ? order : Dims{};
}

}  // namespace kiln
