// Arithmetic of int tensors.
#include <algorithm>
#include <limits>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise/int_kernels.h"
#include "kiln/core/error.h"

namespace kiln {
namespace cpu {
namespace {

HostHandle run_int(IntOp op, const Arg<HostHandle>& a, const Arg<HostHandle>& b) {
  const HostTensor& x = *a.get();
  const HostTensor& y = *b.get();
  const DType dtype = x.dtype();
  const Kernel kernel = int_kernel(op, dtype);
  if (x.shape() == y.shape() && x.is_contiguous() && y.is_contiguous()) {
    Output out(a, b, x.shape(), dtype);
    const auto item = static_cast<int64_t>(size_of(dtype));
    const int64_t sizes[] = {item, item};
    KernelArgs args;
    args.in[0] = x.data();
    args.in[1] = y.data();
    args.out = out.tensor().data();
    args.n = x.numel();
    if (args.n != 0) run_contiguous(kernel, args, sizes, 2, item);
    return out.finish();
  }
  Output out(a, b, broadcast_shapes("int", x.shape(), y.shape()), dtype);
  const HostTensor* inputs[] = {&x, &y};
  run_elementwise({kernel, 2}, out.tensor(), inputs, out.fresh());
  return out.finish();
}

HostHandle run_int_unary(IntUnaryOp op, const Arg<HostHandle>& arg, const void* params = nullptr) {
  const HostTensor& x = *arg.get();
  Output out(arg, x.shape(), x.dtype());
  const HostTensor* inputs[] = {&x};
  run_elementwise({int_unary_kernel(op, x.dtype()), 1, params}, out.tensor(), inputs, out.fresh());
  return out.finish();
}

HostHandle run_int_scalar(IntOp op, const Arg<HostHandle>& x, Scalar value) {
  const HostHandle constant = Cpu::int_full(Shape{}, value, x->dtype(), x->device());
  return run_int(op, x, constant);
}

}  // namespace

void check_divisor(const char* op, const HostHandle& divisor) {
  if (has_zero(*contiguous(divisor))) {
    throw_error<ValueError>(op, ": integer division by zero; got a divisor of shape ",
                            divisor->shape(), " with a zero in it; expected none");
  }
}

}  // namespace cpu

using namespace cpu;

HostHandle CpuOps::int_add(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_int(IntOp::add, a, b);
}
HostHandle CpuOps::int_sub(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_int(IntOp::sub, a, b);
}
HostHandle CpuOps::int_mul(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_int(IntOp::mul, a, b);
}
HostHandle CpuOps::int_div(Arg<HostHandle> a, Arg<HostHandle> b) {
  check_divisor("div", b);
  return run_int(IntOp::div, a, b);
}
HostHandle CpuOps::int_remainder(Arg<HostHandle> a, Arg<HostHandle> b) {
  check_divisor("remainder", b);
  return run_int(IntOp::remainder, a, b);
}
HostHandle CpuOps::int_maximum(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_int(IntOp::maximum, a, b);
}
HostHandle CpuOps::int_minimum(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_int(IntOp::minimum, a, b);
}
HostHandle CpuOps::int_bitwise_and(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_int(IntOp::bitwise_and, a, b);
}
HostHandle CpuOps::int_bitwise_or(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_int(IntOp::bitwise_or, a, b);
}
HostHandle CpuOps::int_bitwise_xor(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_int(IntOp::bitwise_xor, a, b);
}
HostHandle CpuOps::int_add_scalar(Arg<HostHandle> x, Scalar value) {
  return run_int_scalar(IntOp::add, x, value);
}
HostHandle CpuOps::int_mul_scalar(Arg<HostHandle> x, Scalar value) {
  return run_int_scalar(IntOp::mul, x, value);
}
HostHandle CpuOps::int_rsub_scalar(Arg<HostHandle> x, Scalar value) {
  const HostHandle constant = int_full(Shape{}, value, x->dtype(), x->device());
  const HostTensor* inputs[] = {constant.get(), x.get().get()};
  Output out(x, x->shape(), inputs[1]->dtype());
  run_elementwise({int_kernel(IntOp::sub, inputs[1]->dtype()), 2}, out.tensor(), inputs,
                  out.fresh());
  return out.finish();
}
HostHandle CpuOps::int_bitwise_not(Arg<HostHandle> x) {
  return run_int_unary(IntUnaryOp::bitwise_not, x);
}
HostHandle CpuOps::int_neg(Arg<HostHandle> x) { return run_int_unary(IntUnaryOp::neg, x); }
HostHandle CpuOps::int_abs(Arg<HostHandle> x) { return run_int_unary(IntUnaryOp::abs, x); }
HostHandle CpuOps::int_sign(Arg<HostHandle> x) { return run_int_unary(IntUnaryOp::sign, x); }

HostHandle CpuOps::int_clamp(Arg<HostHandle> x, int64_t low, int64_t high) {
  return visit_int("clamp", x->dtype(), [&]<class T>() {
    // Bounds outside the dtype's range bound nothing.
    const int64_t least = std::numeric_limits<T>::min();
    const int64_t most = std::numeric_limits<T>::max();
    const T bounds[] = {static_cast<T>(std::clamp(low, least, most)),
                        static_cast<T>(std::clamp(high, least, most))};
    return run_int_unary(IntUnaryOp::clamp, x, bounds);
  });
}

}  // namespace kiln
