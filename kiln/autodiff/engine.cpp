#include "kiln/autodiff/engine.h"

namespace kiln::autodiff {

void throw_freed(const char* op) {
  throw_error<FreedGraphError>(
      "backward: the graph was freed by an earlier pass; got a second pass through ", op,
      "; expected retain_graph in the first one, or a new forward pass");
}

void throw_untracked() {
  throw_error<AutodiffError>(
      "backward: the tensor does not require a gradient and no tracked op made it; expected a "
      "result of ops on a tensor with requires_grad_(), computed while recording");
}

void throw_no_grad_wanted() {
  throw_error<AutodiffError>("grad_replace: the tensor does not require a gradient");
}

void check_like(const char* op, const Shape& shape, DType dtype, Device device, const Shape& wanted,
                DType wanted_dtype, Device wanted_device) {
  if (!(shape == wanted)) {
    throw_error<ShapeError>(op, ": the gradient must have the tensor's shape; got ", shape,
                            "; expected ", wanted);
  }
  if (dtype != wanted_dtype) {
    throw_error<DTypeError>(op, ": the gradient must have the tensor's dtype; got ", dtype,
                            "; expected ", wanted_dtype);
  }
  if (!(device == wanted_device)) {
    throw_error<DeviceError>(op, ": the gradient must be on the tensor's device; got ", device,
                             "; expected ", wanted_device);
  }
}

}  // namespace kiln::autodiff
