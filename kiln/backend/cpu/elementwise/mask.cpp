// mask_where and mask_fill: a choice between two tensors, element by element.
#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"

namespace kiln {
namespace cpu {
namespace {

// Inputs: x, mask, value. U is an unsigned integer of the elements' size; nothing here depends on
// what they mean.
template <class U, bool kScalarX, bool kScalarMask, bool kScalarValue>
void choose_form(const KernelArgs& args) {
  const auto* x = static_cast<const U*>(args.in[0]);
  const auto* mask = static_cast<const uint8_t*>(args.in[1]);
  const auto* value = static_cast<const U*>(args.in[2]);
  auto* out = static_cast<U*>(args.out);
  for (int64_t i = 0; i < args.n; ++i) {
    const U other = x[kScalarX ? 0 : i];
    const U chosen = value[kScalarValue ? 0 : i];
    out[i] = mask[kScalarMask ? 0 : i] != 0 ? chosen : other;
  }
}

template <class U>
void choose(const KernelArgs& args) {
  static constexpr Kernel forms[] = {
      choose_form<U, false, false, false>, choose_form<U, true, false, false>,
      choose_form<U, false, true, false>,  choose_form<U, true, true, false>,
      choose_form<U, false, false, true>,  choose_form<U, true, false, true>,
      choose_form<U, false, true, true>,   choose_form<U, true, true, true>};
  forms[args.scalars](args);
}

Kernel choose_kernel(DType dtype) {
  switch (size_of(dtype)) {
    case 1:
      return choose<uint8_t>;
    case 2:
      return choose<uint16_t>;
    case 4:
      return choose<uint32_t>;
    default:
      return choose<uint64_t>;
  }
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
