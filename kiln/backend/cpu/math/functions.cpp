// The functions of functions.h.
#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise/int_kernels.h"
#include "kiln/backend/cpu/math/function_kernels.h"

namespace kiln {
namespace cpu {
namespace {

HostHandle run(const ElementwiseOp& op, Output& out, const HostTensor* const* inputs) {
  run_elementwise(op, out.tensor(), inputs, out.fresh());
  return out.finish();
}

}  // namespace
}  // namespace cpu

using cpu::ElementwiseOp;
using cpu::function_kernel;
using cpu::Output;

HostHandle CpuOps::float_unary(Arg<HostHandle> arg, const UnaryFunction& f) {
  const HostTensor& x = *arg.get();
  const DType dtype = x.dtype();
  Output out(arg, x.shape(), dtype);
  const HostTensor* inputs[] = {&x};
  const bool streams = cpu::streams(f.type);
  return cpu::run({function_kernel(f.type, dtype == DType::f64), 1, &f, streams}, out, inputs);
}

HostHandle CpuOps::float_binary(Arg<HostHandle> a, Arg<HostHandle> b, const BinaryFunction& f) {
  const HostTensor& x = *a.get();
  const HostTensor& y = *b.get();
  const DType dtype = x.dtype();
  ElementwiseOp op{function_kernel(f.type, dtype), 2, &f, cpu::streams(f.type)};
  op.raw = f.type == BinaryFunction::Type::nextafter;
  const HostTensor* inputs[] = {&x, &y};
  const Shape shape = broadcast_shapes("binary", x.shape(), y.shape());
  Output out(a, b, shape, dtype);
  return cpu::run(op, out, inputs);
}

HostHandle CpuOps::float_ternary(Arg<HostHandle> a, Arg<HostHandle> b, Arg<HostHandle> c,
                                 const TernaryFunction& f) {
  const HostTensor& x = *a.get();
  const DType dtype = x.dtype();
  const bool is_double = dtype == DType::f64;
  const HostTensor* inputs[] = {&x, b.get().get(), c.get().get()};
  const Shape shape = broadcast_shapes(
      "ternary", broadcast_shapes("ternary", x.shape(), inputs[1]->shape()), inputs[2]->shape());
  Output out(a, shape, dtype, inputs[1], inputs[2]);
  const bool streams = cpu::streams(f.type, is_double);
  return cpu::run({function_kernel(f.type, is_double), 3, &f, streams}, out, inputs);
}

HostHandle CpuOps::int_binary(Arg<HostHandle> a, Arg<HostHandle> b, IntFunction f) {
  const HostTensor& x = *a.get();
  const HostTensor& y = *b.get();
  const bool divides = f == IntFunction::fmod || f == IntFunction::floor_divide;
  if (divides) {
    cpu::check_divisor(f == IntFunction::fmod ? "fmod" : "floor_divide", b);
  }
  const HostTensor* inputs[] = {&x, &y};
  Output out(a, b, broadcast_shapes("binary", x.shape(), y.shape()), x.dtype());
  return cpu::run({function_kernel(f, x.dtype()), 2}, out, inputs);
}

}  // namespace kiln
