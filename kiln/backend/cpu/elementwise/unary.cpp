// Ops of one float tensor, element by element.
#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise/unary_kernels.h"

namespace kiln {
namespace cpu {

Kernel unary_kernel(UnaryOp op, DType dtype) {
  if (op < kFirstMath) return light_unary_kernels().kernels[index_of(op)][column_of(dtype)];
  if (dtype == DType::f64) return double_math_kernel(op);
  if (op < kFirstWideMath) return math_kernels().kernels[index_of(op) - index_of(kFirstMath)];
  return wide_math_kernels().kernels[index_of(op) - index_of(kFirstWideMath)];
}

namespace {

// The sign of 16-bit floats is a bit, which needs no conversion.
template <bool kFlip>
void sign_bits(const KernelArgs& args) {
  const auto* from = static_cast<const uint16_t*>(args.in[0]);
  auto* to = static_cast<uint16_t*>(args.out);
  const auto run = [](uint16_t bits) {
    return static_cast<uint16_t>(kFlip ? bits ^ 0x8000 : bits & 0x7fff);
  };
  for (int64_t i = 0; i < args.n; ++i) to[i] = run(from[args.scalars != 0 ? 0 : i]);
}

HostHandle run_unary(UnaryOp op, const Arg<HostHandle>& arg, const void* params = nullptr) {
  const HostTensor& x = *arg.get();
  const DType dtype = x.dtype();
  const Kernel kernel = unary_kernel(op, dtype);
  Output out(arg, x.shape(), dtype);
  const bool light = op < kFirstMath;
  const int64_t n = x.numel();
  const auto item = static_cast<int64_t>(size_of(dtype));
  if (item >= 4 && x.is_contiguous() && out.tensor().is_contiguous() &&
      (!out.fresh() || !should_stream(n * item))) [[likely]] {
    KernelArgs args;
    args.in[0] = x.data();
    args.out = out.tensor().data();
    args.n = n;
    args.params = params;
    if (n != 0) run_contiguous(kernel, args, &item, 1, item);
    return out.finish();
  }
  const HostTensor* inputs[] = {&x};
  if (item == 2 && (op == UnaryOp::neg || op == UnaryOp::abs)) {
    ElementwiseOp bits{op == UnaryOp::neg ? sign_bits<true> : sign_bits<false>, 1};
    bits.raw = true;
    run_elementwise(bits, out.tensor(), inputs, out.fresh());
    return out.finish();
  }
  run_elementwise({kernel, 1, params, light}, out.tensor(), inputs, out.fresh());
  return out.finish();
}

}  // namespace
}  // namespace cpu

using cpu::run_unary;
using cpu::UnaryOp;

HostHandle CpuOps::float_neg(Arg<HostHandle> x) { return run_unary(UnaryOp::neg, x); }
HostHandle CpuOps::float_abs(Arg<HostHandle> x) { return run_unary(UnaryOp::abs, x); }
HostHandle CpuOps::float_sign(Arg<HostHandle> x) { return run_unary(UnaryOp::sign, x); }
HostHandle CpuOps::float_square(Arg<HostHandle> x) { return run_unary(UnaryOp::square, x); }
HostHandle CpuOps::float_sqrt(Arg<HostHandle> x) { return run_unary(UnaryOp::sqrt, x); }
HostHandle CpuOps::float_rsqrt(Arg<HostHandle> x) { return run_unary(UnaryOp::rsqrt, x); }
HostHandle CpuOps::float_recip(Arg<HostHandle> x) { return run_unary(UnaryOp::recip, x); }
HostHandle CpuOps::float_exp(Arg<HostHandle> x) { return run_unary(UnaryOp::exp, x); }
HostHandle CpuOps::float_expm1(Arg<HostHandle> x) { return run_unary(UnaryOp::expm1, x); }
HostHandle CpuOps::float_log(Arg<HostHandle> x) { return run_unary(UnaryOp::log, x); }
HostHandle CpuOps::float_log1p(Arg<HostHandle> x) { return run_unary(UnaryOp::log1p, x); }
HostHandle CpuOps::float_log2(Arg<HostHandle> x) { return run_unary(UnaryOp::log2, x); }
HostHandle CpuOps::float_log10(Arg<HostHandle> x) { return run_unary(UnaryOp::log10, x); }
HostHandle CpuOps::float_sin(Arg<HostHandle> x) { return run_unary(UnaryOp::sin, x); }
HostHandle CpuOps::float_cos(Arg<HostHandle> x) { return run_unary(UnaryOp::cos, x); }
HostHandle CpuOps::float_tan(Arg<HostHandle> x) { return run_unary(UnaryOp::tan, x); }
HostHandle CpuOps::float_asin(Arg<HostHandle> x) { return run_unary(UnaryOp::asin, x); }
HostHandle CpuOps::float_acos(Arg<HostHandle> x) { return run_unary(UnaryOp::acos, x); }
HostHandle CpuOps::float_atan(Arg<HostHandle> x) { return run_unary(UnaryOp::atan, x); }
HostHandle CpuOps::float_sinh(Arg<HostHandle> x) { return run_unary(UnaryOp::sinh, x); }
HostHandle CpuOps::float_cosh(Arg<HostHandle> x) { return run_unary(UnaryOp::cosh, x); }
HostHandle CpuOps::float_tanh(Arg<HostHandle> x) { return run_unary(UnaryOp::tanh, x); }
HostHandle CpuOps::float_asinh(Arg<HostHandle> x) { return run_unary(UnaryOp::asinh, x); }
HostHandle CpuOps::float_acosh(Arg<HostHandle> x) { return run_unary(UnaryOp::acosh, x); }
HostHandle CpuOps::float_atanh(Arg<HostHandle> x) { return run_unary(UnaryOp::atanh, x); }
HostHandle CpuOps::float_erf(Arg<HostHandle> x) { return run_unary(UnaryOp::erf, x); }
HostHandle CpuOps::float_floor(Arg<HostHandle> x) { return run_unary(UnaryOp::floor, x); }
HostHandle CpuOps::float_ceil(Arg<HostHandle> x) { return run_unary(UnaryOp::ceil, x); }
HostHandle CpuOps::float_round(Arg<HostHandle> x) { return run_unary(UnaryOp::round, x); }
HostHandle CpuOps::float_trunc(Arg<HostHandle> x) { return run_unary(UnaryOp::trunc, x); }
HostHandle CpuOps::float_relu(Arg<HostHandle> x) { return run_unary(UnaryOp::relu, x); }
HostHandle CpuOps::float_sigmoid(Arg<HostHandle> x) { return run_unary(UnaryOp::sigmoid, x); }
HostHandle CpuOps::float_silu(Arg<HostHandle> x) { return run_unary(UnaryOp::silu, x); }
HostHandle CpuOps::float_gelu(Arg<HostHandle> x, bool tanh_form) {
  return run_unary(tanh_form ? UnaryOp::gelu_tanh : UnaryOp::gelu, x);
}

HostHandle CpuOps::float_clamp(Arg<HostHandle> x, double low, double high) {
  const double bounds[] = {low, high};
  const float float_bounds[] = {static_cast<float>(low), static_cast<float>(high)};
  const bool wide = x->dtype() == DType::f64;
  return run_unary(UnaryOp::clamp, x, wide ? static_cast<const void*>(bounds) : float_bounds);
}

// Powers that are cheaper, and closer, as something else.
HostHandle CpuOps::float_pow_scalar(Arg<HostHandle> x, Scalar value) {
  const double exponent = value.to_double();
  if (exponent == 2.0) return run_unary(UnaryOp::square, x);
  if (exponent == 3.0) return run_unary(UnaryOp::cube, x);
  if (exponent == -1.0) return run_unary(UnaryOp::recip, x);
  const HostHandle constant = float_full(Shape{}, value, x->dtype(), x->device());
  return float_pow(x, constant);
}

}  // namespace kiln
