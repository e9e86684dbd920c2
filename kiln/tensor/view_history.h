// The histories of views, where other files of kiln/tensor change them.
#pragma once

#include "kiln/tensor/tensor_impl.h"

namespace kiln::detail {

// Makes x what `view`, a view of it, is: its shape and strides, and its history. Views of x, and
// what x is a view of, keep theirs: the memory is the same.
void show_as(TensorImpl& x, const TensorImpl& view);

}  // namespace kiln::detail
