// mask_where and mask_fill: a choice between two tensors, element by element.
#include <bit>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/elementwise/mask_kernels.h"

namespace kiln {
namespace cpu {
namespace {

Kernel choose_kernel(DType dtype) {
  return mask_kernels().choose[std::countr_zero(size_of(dtype))];
}

HostHandle run_where(const Arg<HostHandle>& arg, const HostHandle& mask, const HostHandle& value) {
  const HostTensor& x = *arg.get();
  const HostTensor* inputs[] = {&x, mask.get(), value.get()};
  const Shape shape = broadcast_shapes(
      "mask_where", broadcast_shapes("mask_where", x.shape(), mask->shape()), value->shape());
  Output out(arg, shape, x.dtype(), inputs[1], inputs[2]);
  ElementwiseOp op{choose_kernel(x.dtype()), 3};
  op.raw = true;
  run_elementwise(op, out.tensor(), inputs, out.fresh());
  return out.finish();
}

}  // namespace
}  // namespace cpu

using cpu::run_where;

HostHandle CpuOps::float_mask_where(Arg<HostHandle> x, Arg<HostHandle> mask,
                                    Arg<HostHandle> value) {
  return run_where(x, mask, value);
}
HostHandle CpuOps::int_mask_where(Arg<HostHandle> x, Arg<HostHandle> mask, Arg<HostHandle> value) {
  return run_where(x, mask, value);
}
HostHandle CpuOps::bool_mask_where(Arg<HostHandle> x, Arg<HostHandle> mask, Arg<HostHandle> value) {
  return run_where(x, mask, value);
}
HostHandle CpuOps::float_mask_fill(Arg<HostHandle> x, Arg<HostHandle> mask, Scalar value) {
  return run_where(x, mask, float_full(Shape{}, value, x->dtype(), x->device()));
}
HostHandle CpuOps::int_mask_fill(Arg<HostHandle> x, Arg<HostHandle> mask, Scalar value) {
  return run_where(x, mask, int_full(Shape{}, value, x->dtype(), x->device()));
}
HostHandle CpuOps::bool_mask_fill(Arg<HostHandle> x, Arg<HostHandle> mask, Scalar value) {
  return run_where(x, mask, bool_full(Shape{}, value.to_bool(), x->device()));
}

}  // namespace kiln
