#include "kiln/backend/dispatch/views.h"
#include "kiln/backend/result_layout.h"
#include "kiln/core/dim_order.h"

namespace kiln {

Dims memory_order(const ErasedTensor& x) {
  const Layout layout = layout_of(x);
  const Shape& shape = x->shape();
  if (!layout || is_contiguous(shape, *layout.strides)) return {};
  const Strides strides = result_strides(shape, {{&shape, layout.strides}});
  return is_contiguous(shape, strides) ? Dims{} : by_stride(strides);
}

}  // namespace kiln
