// Lists of tensors, None for an undefined one.
#pragma once

#include "binding.h"

namespace kiln::python {

inline nb::list list_of(const TensorList& xs) {
  nb::list out;
  for (const Tensor& x : xs) {
    if (x.defined()) {
      out.append(nb::steal(tensor_object(x)));
    } else {
      out.append(nb::none());
    }
  }
  return out;
}

inline TensorList tensors_of(nb::handle items) {
  TensorList out;
  for (nb::handle item : items) {
    const Tensor* x = tensor_pointer(item.ptr());
    out.push_back(x == nullptr ? Tensor() : *x);
  }
  return out;
}

}  // namespace kiln::python
