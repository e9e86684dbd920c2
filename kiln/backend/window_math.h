// Views that need no kernel, for any tensor that is a strided window on a storage: T has shape(),
// strides(), offset(), storage(), is_contiguous(), and view(handle, shape, strides, offset) gives
// another window on the same storage.
#pragma once

#include <utility>

#include "kiln/core/dtype.h"
#include "kiln/core/handle.h"
#include "kiln/core/shape.h"
#include "kiln/core/slice.h"

namespace kiln::window {

template <class T>
Handle<T> permute(const Handle<T>& x, const Dims& dims) {
  Shape shape = x->shape();
  Strides strides = x->strides();
  for (int i = 0; i < dims.rank(); ++i) {
    shape[i] = x->shape()[static_cast<int>(dims[i])];
    strides[i] = x->strides()[static_cast<int>(dims[i])];
  }
  return view(x, shape, strides, x->offset());
}

// The strides that x has when read in the broadcast shape `to`.
template <class T>
Strides broadcast_strides(const T& x, const Shape& to) {
  Strides strides = Shape::filled(to.rank(), 0);
  const int lead = to.rank() - x.shape().rank();
  for (int i = lead; i < to.rank(); ++i) {
    strides[i] = x.shape()[i - lead] == 1 && to[i] != 1 ? 0 : x.strides()[i - lead];
  }
  return strides;
}

template <class T>
Handle<T> expand(const Handle<T>& x, const Shape& shape) {
  return view(x, shape, broadcast_strides(*x, shape), x->offset());
}

template <class T>
Handle<T> slice(const Handle<T>& x, int dim, Range range) {
  Shape shape = x->shape();
  Strides strides = x->strides();
  const int64_t offset = x->offset() + (range.length() == 0 ? 0 : range.start * strides[dim]);
  shape[dim] = range.length();
  if (shape[dim] > 1)
    strides[dim] *= range.step;  // else the step may be anything, and means nothing
  return view(x, shape, strides, offset);
}

// A view with the new shape where x's strides allow one, else null.
template <class T>
Handle<T> try_reshape(const Handle<T>& x, const Shape& shape) {
  if (x->is_contiguous()) return view(x, shape, contiguous_strides(shape), x->offset());
  // Walk both shapes from the back; each group of new dims must lie within one evenly strided run
  // of old dims.
  const Shape& old_shape = x->shape();
  const Strides& old_strides = x->strides();
  Strides strides = Shape::filled(shape.rank(), 0);
  int to = shape.rank() - 1;
  int64_t run = 1;      // elements in the current run of old dims
  int64_t covered = 1;  // of those, covered by new dims
  int64_t step = old_shape.rank() == 0 ? 1 : old_strides.back();
  for (int from = old_shape.rank() - 1; from >= 0; --from) {
    run *= old_shape[from];
    const bool run_ends =
        from == 0 || (old_shape[from - 1] != 1 && old_strides[from - 1] != run * step);
    if (!run_ends) continue;
    while (to >= 0 && (covered < run || shape[to] == 1)) {
      strides[to] = covered * step;
      covered *= shape[to];
      --to;
    }
    if (covered != run) return nullptr;
    if (from > 0) {
      step = old_strides[from - 1];
      run = 1;
      covered = 1;
    }
  }
  if (to != -1) return nullptr;
  return view(x, shape, strides, x->offset());
}

// Bytes [first, last) of the storage that x touches; x has elements.
template <class T>
std::pair<int64_t, int64_t> extent(const T& x) {
  int64_t low = x.offset();
  int64_t high = x.offset();
  for (int i = 0; i < x.shape().rank(); ++i) {
    const int64_t reach = (x.shape()[i] - 1) * x.strides()[i];
    (reach < 0 ? low : high) += reach;
  }
  const auto item = static_cast<int64_t>(size_of(x.dtype()));
  return {low * item, (high + 1) * item};
}

// Whether the two might share an element (exact for different storages, else by their extents).
template <class T>
bool may_overlap(const T& a, const T& b) {
  if (&a.storage()->root() != &b.storage()->root() || a.numel() == 0 || b.numel() == 0)
    return false;
  const auto [a_low, a_high] = extent(a);
  const auto [b_low, b_high] = extent(b);
  return a_low < b_high && b_low < a_high;
}

}  // namespace kiln::window
