// The histories of views, where other files of kiln/tensor change them.
#pragma once

#include "kiln/tensor/tensor_impl.h"

namespace kiln::detail {

// Makes x what `view`, a view of it, is: its shape and strides, and its history. Views of x, and
// what x is a view of, keep theirs: the memory is the same.
void show_as(TensorImpl& x, const TensorImpl& view);

// y, computed from x by ops that may give views: a copy when it is x or a view. For results that
// PyTorch promises to have memory of their own.
Tensor own_memory(const Tensor& x, Tensor y);

}  // namespace kiln::detail
