// Ops of two float tensors, or of one and a number, element by element.
#include <cstring>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise/binary_kernels.h"
#include "kiln/backend/cpu/float_scalar.h"

namespace kiln {
namespace cpu {
namespace {

Kernel binary_kernel(BinaryOp op, DType dtype) {
  if (op >= kFirstLong) {
    const Kernel kernel = scalar_binary_kernel(op, dtype == DType::f64);
    if (kernel != nullptr) return kernel;
  }
  return binary_kernels().kernels[index_of(op)][column_of(dtype)];
}

[[gnu::noinline]] HostHandle run_any_binary(BinaryOp op, const Arg<HostHandle>& a,
                                            const Arg<HostHandle>& b) {
  const HostTensor& x = *a.get();
  const HostTensor& y = *b.get();
  const DType dtype = x.dtype();
  const Shape shape = broadcast_shapes("binary", x.shape(), y.shape());
  Output out(a, b, shape, dtype);
  const HostTensor* inputs[] = {&x, &y};
  run_elementwise({binary_kernel(op, dtype), 2, nullptr, op < kFirstLong}, out.tensor(), inputs,
                  out.fresh());
  return out.finish();
}

HostHandle run_binary(BinaryOp op, const Arg<HostHandle>& a, const Arg<HostHandle>& b) {
  const HostTensor& x = *a.get();
  const HostTensor& y = *b.get();
  const DType dtype = x.dtype();
  const auto item = static_cast<int64_t>(size_of(dtype));
  if (item >= 4 && x.shape() == y.shape() && x.is_contiguous() && y.is_contiguous()) [[likely]] {
    const int64_t n = x.numel();
    if (!should_stream(n * item)) [[likely]] {
      Output out(a, b, x.shape(), dtype);
      KernelArgs args;
      args.in[0] = x.data();
      args.in[1] = y.data();
      args.out = out.tensor().data();
      args.n = n;
      const int64_t sizes[] = {item, item};
      if (n != 0) run_contiguous(binary_kernel(op, dtype), args, sizes, 2, item);
      return out.finish();
    }
  }
  return run_any_binary(op, a, b);
}

// With a number as the second operand, or as the first where `number_first`.
HostHandle run_scalar(BinaryOp op, const Arg<HostHandle>& arg, Scalar value,
                      bool number_first = false) {
  const HostTensor& x = *arg.get();
  const DType dtype = x.dtype();
  const auto item = static_cast<int64_t>(size_of(dtype));
  // Not rounded to a 16-bit dtype: beside f16, 1e9 is a number and no infinity.
  const DType computed = dtype == DType::f64 ? DType::f64 : DType::f32;
  const FloatScalar number(value, computed);
  const int64_t n = x.numel();
  Output out(arg, x.shape(), dtype);
  if (n == 0) return out.finish();
  const Kernel kernel = binary_kernel(op, dtype);
  if (item >= 4 && x.is_contiguous() && out.tensor().is_contiguous() &&
      !(out.fresh() && should_stream(n * item))) [[likely]] {
    KernelArgs args;
    args.in[number_first] = x.data();
    args.in[!number_first] = number.data();
    args.scalars = number_first ? 1u : 2u;
    args.out = out.tensor().data();
    args.n = n;
    const int64_t sizes[] = {item, item};
    run_contiguous(kernel, args, sizes, 2, item);
    return out.finish();
  }
  // A 0-d tensor on the stack's behalf: the engine broadcasts it.
  HostHandle constant = host::empty(Shape{}, computed, x.device());
  std::memcpy(constant->data(), number.data(), size_of(computed));
  const HostTensor* inputs[2];
  inputs[number_first] = &x;
  inputs[!number_first] = constant.get();
  run_elementwise({kernel, 2, nullptr, op < kFirstLong}, out.tensor(), inputs, out.fresh());
  return out.finish();
}

}  // namespace
}  // namespace cpu

using cpu::BinaryOp;
using cpu::run_binary;
using cpu::run_scalar;

HostHandle CpuOps::float_add(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_binary(BinaryOp::add, a, b);
}
HostHandle CpuOps::float_sub(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_binary(BinaryOp::sub, a, b);
}
HostHandle CpuOps::float_mul(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_binary(BinaryOp::mul, a, b);
}
HostHandle CpuOps::float_div(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_binary(BinaryOp::div, a, b);
}
HostHandle CpuOps::float_remainder(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_binary(BinaryOp::remainder, a, b);
}
HostHandle CpuOps::float_pow(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_binary(BinaryOp::pow, a, b);
}
HostHandle CpuOps::float_atan2(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_binary(BinaryOp::atan2, a, b);
}
HostHandle CpuOps::float_maximum(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_binary(BinaryOp::maximum, a, b);
}
HostHandle CpuOps::float_minimum(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_binary(BinaryOp::minimum, a, b);
}

HostHandle CpuOps::float_add_scalar(Arg<HostHandle> x, Scalar value) {
  return run_scalar(BinaryOp::add, x, value);
}
HostHandle CpuOps::float_mul_scalar(Arg<HostHandle> x, Scalar value) {
  return run_scalar(BinaryOp::mul, x, value);
}
HostHandle CpuOps::float_div_scalar(Arg<HostHandle> x, Scalar value) {
  return run_scalar(BinaryOp::div, x, value);
}
HostHandle CpuOps::float_remainder_scalar(Arg<HostHandle> x, Scalar value) {
  return run_scalar(BinaryOp::remainder, x, value);
}
HostHandle CpuOps::float_rsub_scalar(Arg<HostHandle> x, Scalar value) {
  return run_scalar(BinaryOp::sub, x, value, /*number_first=*/true);
}
HostHandle CpuOps::float_rdiv_scalar(Arg<HostHandle> x, Scalar value) {
  return run_scalar(BinaryOp::div, x, value, /*number_first=*/true);
}

HostHandle CpuOps::float_relu_backward(Arg<HostHandle> g, Arg<HostHandle> y) {
  return run_binary(BinaryOp::relu_backward, g, y);
}
HostHandle CpuOps::float_sigmoid_backward(Arg<HostHandle> g, Arg<HostHandle> y) {
  return run_binary(BinaryOp::sigmoid_backward, g, y);
}
HostHandle CpuOps::float_tanh_backward(Arg<HostHandle> g, Arg<HostHandle> y) {
  return run_binary(BinaryOp::tanh_backward, g, y);
}
HostHandle CpuOps::float_silu_backward(Arg<HostHandle> g, Arg<HostHandle> x) {
  return run_binary(BinaryOp::silu_backward, g, x);
}
HostHandle CpuOps::float_gelu_backward(Arg<HostHandle> g, Arg<HostHandle> x, bool tanh_form) {
  return run_binary(tanh_form ? BinaryOp::gelu_tanh_backward : BinaryOp::gelu_backward, g, x);
}

}  // namespace kiln
