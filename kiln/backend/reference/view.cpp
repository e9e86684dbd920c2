// Shape ops. All but flip and cat give views.
#include "kiln/backend/reference/elements.h"

namespace kiln {

using reference::make;
using reference::Ops;
using reference::read;
using reference::Tensor;

namespace {

HostHandle reshape(const HostHandle& x, const Shape& shape) {
  if (HostHandle view = host::try_reshape(x, shape)) return view;
  return visit_dtype("reshape", x->dtype(), [&]<class T>() {
    using V = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
    return make(shape, x->dtype(), x->device(), read<V>(x));
  });
}

template <class V>
HostHandle flip(const HostHandle& x, const Dims& dims) {
  Strides strides = x->strides();
  int64_t offset = x->offset();
  if (x->numel() > 0) {
    for (int64_t dim : dims) {
      const auto d = static_cast<int>(dim);
      offset += (x->shape()[d] - 1) * strides[d];
      strides[d] = -strides[d];
    }
  }
  return make(x->shape(), x->dtype(), x->device(),
              read<V>(host::view(x, x->shape(), strides, offset)));
}

template <class V>
HostHandle cat(std::span<const HostHandle> parts, int dim) {
  Shape shape = parts[0]->shape();
  shape[dim] = 0;
  for (const HostHandle& part : parts) shape[dim] += part->shape()[dim];
  const HostHandle out = host::empty(shape, parts[0]->dtype(), parts[0]->device());
  int64_t at = 0;
  for (const HostHandle& part : parts) {
    const int64_t size = part->shape()[dim];
    reference::write(host::slice(out, dim, {at, at + size, 1}), read<V>(part));
    at += size;
  }
  return out;
}

}  // namespace

#define KILN_VIEW_OPS(kind, V)                                                                   \
  HostHandle Ops::kind##_reshape(Tensor x, const Shape& shape) { return reshape(x, shape); }     \
  HostHandle Ops::kind##_permute(Tensor x, const Dims& dims) { return host::permute(x, dims); }  \
  HostHandle Ops::kind##_expand(Tensor x, const Shape& shape) { return host::expand(x, shape); } \
  HostHandle Ops::kind##_slice(Tensor x, int dim, Range range) {                                 \
    return host::slice(x, dim, range);                                                           \
  }                                                                                              \
  HostHandle Ops::kind##_flip(Tensor x, const Dims& dims) { return flip<V>(x, dims); }           \
  HostHandle Ops::kind##_cat(std::span<const HostHandle> parts, int dim) {                       \
    return cat<V>(parts, dim);                                                                   \
  }
KILN_VIEW_OPS(float, double)
KILN_VIEW_OPS(int, int64_t)
KILN_VIEW_OPS(bool, int64_t)
#undef KILN_VIEW_OPS

}  // namespace kiln
