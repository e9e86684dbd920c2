// What a binding to another language needs of a tensor: its memory, and a place to remember which
// object of that language stands for it.
#pragma once

#include "kiln/tensor/tensor.h"

namespace kiln::interop {

// A tensor over memory that belongs to somebody else; `release(context)` is called when the last
// tensor that looks at it goes, on whatever thread that is. Strides are in elements and not
// negative (ValueError).
Tensor from_blob(void* data, const Shape& shape, const Strides& strides, DType dtype,
                 void (*release)(void*), void* context);

// The first element, whatever the dtype. Throws DeviceError when the tensor is not in host memory.
void* data(const Tensor& x);
// Where that is in the tensor's storage, in elements.
int64_t storage_offset(const Tensor& x);

// Makes x show what `source` shows: its shape, dtype and memory. x stays the tensor that it is: a
// leaf keeps its place in graphs and its gradient requirement. Throws DTypeError when a leaf that
// requires a gradient would no longer be floating point.
void set_data(Tensor& x, const Tensor& source);

// The object that stands for this tensor, or null. Not owned; whoever sets it clears it before the
// object dies, and guards it by the language's own lock.
void*& foreign_object(const Tensor& x);

}  // namespace kiln::interop
