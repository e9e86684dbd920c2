// What the ops on complex tensors are written with. Internal to kiln/tensor; see the note on
// complex tensors in tensor_impl.h.
#pragma once

#include "kiln/core/storage.h"
#include "kiln/tensor/complex/complex.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln::detail {

// Whether an op has to take the way of complex numbers. False for undefined tensors, which the op
// itself refuses.
inline bool has_complex(const Tensor& x) { return x.defined() && state_of(x).is_complex(); }
inline bool has_complex(const Tensor& x, const Tensor& y) {
  return has_complex(x) || has_complex(y);
}

// The parts of a complex tensor: a real view [.., 2].
Tensor parts_of(const Tensor& z);
// The complex tensor that has these parts: a view where they are interleaved, else a copy.
Tensor from_parts(const Tensor& parts);
// The parts as two real tensors (views), and back. A real tensor's imaginary part is undefined.
struct Parts {
  Tensor re;
  Tensor im;
};
Parts split_parts(const Tensor& z);
Tensor join_parts(const Tensor& re, const Tensor& im);

// f(parts) for an op that treats both parts alike and leaves the last dim where it is.
template <class F>
Tensor through_parts(const Tensor& z, F&& f) {
  return from_parts(f(parts_of(z)));
}
// The dims of z as dims of its parts: normalized, so that negative ones do not count the last.
int parts_dim(const char* op, const Tensor& z, int64_t dim);
Dims parts_dims(const char* op, const Tensor& z, const Dims& dims);
Shape parts_shape(const Shape& shape);

// PyTorch's rule for a result of which one operand at least is complex: a 0-d tensor does not widen
// a tensor with dims.
DType complex_result_type(const char* op, const Tensor& x, const Tensor& y);

// Conversion where either dtype is complex. From complex to real it drops the imaginary part, to
// bool it asks whether the number is not zero.
Tensor complex_cast(const Tensor& x, DType dtype);

// A tensor over host memory, complex or not; strides and offset count elements of `dtype`.
Tensor wrap_host(const Shape& shape, DType dtype, const Strides& strides, int64_t offset,
                 Handle<Storage> storage);

}  // namespace kiln::detail
