// Where host tensors lie: what Layout (layout.h) asks of a backend, for HostTensor.
#pragma once

#include "kiln/backend/host_tensor.h"
#include "kiln/backend/layout.h"

namespace kiln::host {

inline Layout layout(const HostHandle& x) {
  return {&x->strides(), x->offset(), &x->storage()->root(),
          static_cast<int64_t>(x->storage()->bytes() / size_of(x->dtype()))};
}
inline HostHandle as_strided(const HostHandle& x, const Shape& shape, const Strides& strides,
                             int64_t offset) {
  return view(x, shape, strides, offset);
}
// The same memory read as elements of another dtype.
inline HostHandle reinterpret(const HostHandle& x, DType dtype, const Shape& shape,
                              const Strides& strides, int64_t offset) {
  return make_handle<HostTensor>(shape, dtype, x->device(), strides, offset, x->storage());
}

}  // namespace kiln::host
