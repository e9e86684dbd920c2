// Gpu: the backend for GPUs, device "opencl". Internal to the plug-in libkiln_gpu.
//
// Each op is an expression for one of the kernels in kernels/ (loops.h); what is not here comes
// from BackendDefaults, as a composition of these.
#pragma once

#include "kiln/backend/gpu/function_bodies.h"
#include "kiln/backend/gpu/loops.h"
#include "kiln/backend/gpu/nn_rows.h"
#include "kiln/backend/window_math.h"

namespace kiln::gpu {

inline bool is_narrow(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }
// The body that converts a float to an int dtype as convert_element does.
Body saturated_body(DType to);
Q quantize(const H& x, const QuantScheme& scheme);
H dequantize(const Q& x, DType dtype);
H reshape(const H& x, const Shape& shape);
H flip(const H& x, const Dims& dims);
H cat(std::span<const H> parts, int dim);
H cumsum(const H& x, int dim);

struct Types {
  using Device = kiln::Device;
  using FloatElem = float;
  using IntElem = int64_t;
  using BoolElem = bool;
  using FloatTensorPrimitive = H;
  using IntTensorPrimitive = H;
  using BoolTensorPrimitive = H;
  using QuantizedTensorPrimitive = Q;
};

struct Gpu : Types, NnRows<Gpu> {
  using Device = kiln::Device;
  using Tq = Arg<Q>;

  static std::string name(Device device) { return GpuDevice::of(device).properties().name; }
  static void seed(Device, uint64_t) {}  // random ops are functions of their stream alone
  static void sync(Device device) { GpuDevice::of(device).synchronize(); }
  static const Shape& shape(const H& x) { return x->shape(); }
  static DType dtype(const H& x) { return x->dtype(); }
  static Device device(const H& x) { return x->device(); }
  static const Shape& shape(const Q& x) { return x->shape(); }
  static DType dtype(const Q& x) { return x->dtype(); }
  static Device device(const Q& x) { return x->device(); }
  static uint32_t version(const H& x) { return x->storage()->version(); }
  static H own_version(const H& x) {
    return make_handle<GpuTensor>(x->shape(), x->dtype(), x->device(), x->strides(), x->offset(),
                                  Buffer::alias(x->storage()));
  }
  static bool owns_memory(const H& x) {
    return x.unique() && x->storage().unique() && (x->is_contiguous() || is_channels_last(*x));
  }
  static Layout layout(const H& x) {
    return {&x->strides(), x->offset(), &x->storage()->root(),
            static_cast<int64_t>(x->storage()->bytes() / size_of(x->dtype()))};
  }
  static H as_strided(const H& x, const Shape& shape, const Strides& strides, int64_t offset) {
    return view(x, shape, strides, offset);
  }
  static H reinterpret(const H& x, DType dtype, const Shape& shape, const Strides& strides,
                       int64_t offset) {
    return make_handle<GpuTensor>(shape, dtype, x->device(), strides, offset, x->storage());
  }

// ---- What the kinds share
#define KILN_GPU_KIND(kind)                                                                        \
  static H kind##_from_data(const TensorData& data, Device on) { return from_data(data, on); }     \
  static TensorData kind##_into_data(const H& x) { return into_data(x); }                          \
  static H kind##_reshape(const H& x, const Shape& s) { return gpu::reshape(x, s); }               \
  static H kind##_permute(const H& x, const Dims& dims) { return window::permute(x, dims); }       \
  static H kind##_expand(const H& x, const Shape& s) { return window::expand(x, s); }              \
  static H kind##_slice(const H& x, int dim, Range range) { return window::slice(x, dim, range); } \
  static H kind##_flip(const H& x, const Dims& dims) { return gpu::flip(x, dims); }                \
  static H kind##_contiguous(const H& x) { return gpu::contiguous(x); }                            \
  static void kind##_assign(const H& x, const H& value) {                                          \
    gpu::assign(x, window::expand(value, x->shape()));                                             \
  }                                                                                                \
  static void kind##_fill(const H& x, Scalar value) {                                              \
    fill_into(x, value);                                                                           \
    x->storage()->bump_version();                                                                  \
  }                                                                                                \
  static H kind##_cat(std::span<const H> parts, int dim) { return gpu::cat(parts, dim); }          \
  static H kind##_gather(const H& x, int dim, const H& index) {                                    \
    return gpu::gather("gather", x, dim, index);                                                   \
  }                                                                                                \
  static H kind##_scatter(const H& x, int dim, const H& index, const H& src) {                     \
    return gpu::scatter("scatter", "b", x, dim, index, src);                                       \
  }                                                                                                \
  static H kind##_index_select(const H& x, int dim, const H& index) {                              \
    return gpu::index_select(x, dim, index);                                                       \
  }                                                                                                \
  static H kind##_index_copy(const H& x, int dim, const H& index, const H& src) {                  \
    return gpu::scatter("index_copy", "b", x, dim, gpu::spread_index(index, dim, src->shape()),    \
                        src);                                                                      \
  }                                                                                                \
  static H kind##_mask_where(T x, T mask, T value) {                                               \
    return map("y = x1 ? x2 : x0;", x->dtype(), {x, mask, value});                                 \
  }
  KILN_GPU_KIND(float)
  KILN_GPU_KIND(int)
  KILN_GPU_KIND(bool)
#undef KILN_GPU_KIND

#define KILN_GPU_COMPARE(kind, name, op)                                       \
  static H kind##_##name(T x, T y) {                                           \
    return map("y = x0 " op " x1;", DType::boolean, {T(x.get()), T(y.get())}); \
  }
#define KILN_GPU_COMPARE_SCALAR(kind, name, op)                                      \
  static H kind##_##name##_scalar(T x, Scalar value) {                               \
    return map("y = x0 " op " s0;", DType::boolean, {T(x.get())}, number(x, value)); \
  }
#define KILN_GPU_COMPARES(kind)               \
  KILN_GPU_COMPARE(kind, equal, "==")         \
  KILN_GPU_COMPARE(kind, not_equal, "!=")     \
  KILN_GPU_COMPARE(kind, greater, ">")        \
  KILN_GPU_COMPARE(kind, greater_equal, ">=") \
  KILN_GPU_COMPARE(kind, lower, "<")          \
  KILN_GPU_COMPARE(kind, lower_equal, "<=")

  // ---- Float: creation, conversion
  static H float_empty(const Shape& shape, DType dtype, Device on) {
    return empty(shape, dtype, on);
  }
  static H float_full(const Shape& shape, Scalar value, DType dtype, Device on) {
    H out = empty(shape, dtype, on);
    fill_into(out, value);
    return out;
  }
  static H float_random(const Shape& shape, Distribution distribution, RandomStream stream,
                        DType dtype, Device on) {
    return gpu::random(shape, distribution, stream, dtype, on);
  }
  static H float_cast(T x, DType to) {
    if (x->dtype() == to) return x.take();
    return map("y = (ACC(OUT))x0;", to, {T(x.get())});
  }
  static H float_into_int(T x, DType to) { return map(saturated_body(to), to, {T(x.get())}); }
  static H float_into_bool(T x) { return map("y = x0 != 0;", DType::boolean, {T(x.get())}); }
  static H float_mask_fill(T x, T mask, Scalar value) {
    return map("y = x1 ? s0 : x0;", x->dtype(), {x, mask}, number(x, value));
  }

// ---- Float: elementwise
#define KILN_GPU_BINARY(name, expression) \
  static H float_##name(T x, T y) { return map("y = " expression ";", x->dtype(), {x, y}); }
  KILN_GPU_BINARY(add, "x0 + x1")
  KILN_GPU_BINARY(sub, "x0 - x1")
  KILN_GPU_BINARY(mul, "x0 * x1")
  KILN_GPU_BINARY(div, "x0 / x1")
  KILN_GPU_BINARY(pow, "pow(x0, x1)")
  KILN_GPU_BINARY(atan2, "atan2(x0, x1)")
  KILN_GPU_BINARY(maximum, "x0 != x0 || x0 > x1 ? x0 : x1")
  KILN_GPU_BINARY(minimum, "x0 != x0 || x0 < x1 ? x0 : x1")
  static H float_remainder(T x, T y) {
    return map("A r = fmod(x0, x1); y = r != (A)0 && (r < (A)0) != (x1 < (A)0) ? r + x1 : r;",
               x->dtype(), {x, y});
  }
  KILN_GPU_BINARY(relu_backward, "x1 <= (A)0 ? (A)0 : x0")
  KILN_GPU_BINARY(sigmoid_backward, "x0 * x1 * ((A)1 - x1)")
  KILN_GPU_BINARY(tanh_backward, "x0 * ((A)1 - x1 * x1)")
  // exp(-x x / 2) / sqrt(2 pi) is the slope of the share of x that GELU keeps, 1 - tail for x > 0.
  // The tail's polynomial (Abramowitz and Stegun 7.1.26) is right to 1e-4 of it: enough for
  // bfloat16 alone.
#define KILN_GPU_GELU_TAIL(x)                                                 \
  "A z = fabs(" x                                                             \
  ") * (A)0.70710678118654752440; A bell = exp(-z * z); "                     \
  "A t = NEAR_RECIPROCAL(fma((A)0.3275911, z, (A)1)); "                       \
  "A tail = (A)0.5 * bell * t * fma(t, fma(t, fma(t, fma(t, (A)1.061405429, " \
  "(A)-1.453152027), (A)1.421413741), (A)-0.284496736), (A)0.254829592); "    \
  "A share = " x " < (A)0 ? tail : (A)1 - tail; "
  static H float_gelu_backward(T g, T x, bool approximate) {
    if (approximate) {
      return map(
          "A u = (A)1.59576912160573071176 * (x1 + (A)0.044715 * x1 * x1 * x1); "
          "A s = SIGMOID(A, u); y = x0 * (s + x1 * s * ((A)1 - s) * "
          "(A)1.59576912160573071176 * ((A)1 + (A)0.134145 * x1 * x1));",
          x->dtype(), {g, x});
    }
    return map(x->dtype() == DType::bf16
                   ? Body(KILN_GPU_GELU_TAIL(
                         "x1") "y = x0 * (share + x1 * (A)0.39894228040143267794 * bell);")
                   : Body("y = x0 * ((A)0.5 * erfc(x1 * (A)-0.70710678118654752440) + "
                          "x1 * (A)0.39894228040143267794 * exp((A)-0.5 * x1 * x1));"),
               x->dtype(), {g, x});
  }
  static H float_gelu(T x, bool approximate) {
    if (!approximate && x->dtype() == DType::bf16) {
      return map(KILN_GPU_GELU_TAIL("x0") "y = x0 * share;", x->dtype(), {x});
    }
    return map(approximate
                   ? Body("A u = (A)1.59576912160573071176 * (x0 + (A)0.044715 * x0 * x0 * x0); "
                          "y = x0 * SIGMOID(A, u);")
                   : Body("y = (A)0.5 * x0 * erfc(x0 * (A)-0.70710678118654752440);"),
               x->dtype(), {x});
  }
  static H float_silu_backward(T g, T x) {
    return map("A s = SIGMOID(A, x1); y = x0 * s * ((A)1 + x1 * ((A)1 - s));", x->dtype(), {g, x});
  }
#undef KILN_GPU_BINARY
#undef KILN_GPU_GELU_TAIL

#define KILN_GPU_SCALAR(name, body)                      \
  static H float_##name##_scalar(T x, Scalar value) {    \
    return map(body, x->dtype(), {x}, number(x, value)); \
  }
  KILN_GPU_SCALAR(add, "y = x0 + s0;")
  KILN_GPU_SCALAR(mul, "y = x0 * s0;")
  KILN_GPU_SCALAR(div, "y = x0 / s0;")
  KILN_GPU_SCALAR(pow, "y = s0 == (A)2 ? x0 * x0 : pow(x0, s0);")
  KILN_GPU_SCALAR(rsub, "y = s0 - x0;")
  KILN_GPU_SCALAR(rdiv, "y = s0 / x0;")
  KILN_GPU_SCALAR(remainder,
                  "A r = fmod(x0, s0); y = r != (A)0 && (r < (A)0) != (s0 < (A)0) ? r + s0 : r;")
#undef KILN_GPU_SCALAR
  static H float_clamp(T x, double low, double high) {
    const DType type = x->dtype();
    return map("y = x0 < s0 ? s0 : x0; y = y > s1 ? s1 : y;", type, {x},
               Numbers{rounded(low, type), rounded(high, type)});
  }

#define KILN_GPU_UNARY(name, expression) \
  static H float_##name(T x) { return map("y = " expression ";", x->dtype(), {x}); }
  KILN_GPU_UNARY(neg, "-x0")
  KILN_GPU_UNARY(abs, "fabs(x0)")
  KILN_GPU_UNARY(sign, "(A)(x0 > (A)0) - (A)(x0 < (A)0)")
  KILN_GPU_UNARY(square, "x0 * x0")
  KILN_GPU_UNARY(sqrt, "sqrt(x0)")
  KILN_GPU_UNARY(rsqrt, "(A)1 / sqrt(x0)")
  KILN_GPU_UNARY(recip, "(A)1 / x0")
  KILN_GPU_UNARY(exp, "exp(x0)")
  KILN_GPU_UNARY(expm1, "expm1(x0)")
  KILN_GPU_UNARY(log, "log(x0)")
  KILN_GPU_UNARY(log1p, "log1p(x0)")
  KILN_GPU_UNARY(log2, "log2(x0)")
  KILN_GPU_UNARY(log10, "log10(x0)")
  KILN_GPU_UNARY(sin, "sin(x0)")
  KILN_GPU_UNARY(cos, "cos(x0)")
  KILN_GPU_UNARY(tan, "tan(x0)")
  KILN_GPU_UNARY(asin, "asin(x0)")
  KILN_GPU_UNARY(acos, "acos(x0)")
  KILN_GPU_UNARY(atan, "atan(x0)")
  KILN_GPU_UNARY(sinh, "sinh(x0)")
  KILN_GPU_UNARY(cosh, "cosh(x0)")
  KILN_GPU_UNARY(tanh, "tanh(x0)")
  KILN_GPU_UNARY(asinh, "asinh(x0)")
  KILN_GPU_UNARY(acosh, "acosh(x0)")
  KILN_GPU_UNARY(atanh, "atanh(x0)")
  KILN_GPU_UNARY(erf, "erf(x0)")
  KILN_GPU_UNARY(floor, "floor(x0)")
  KILN_GPU_UNARY(ceil, "ceil(x0)")
  KILN_GPU_UNARY(round, "rint(x0)")
  KILN_GPU_UNARY(trunc, "trunc(x0)")
  KILN_GPU_UNARY(relu, "x0 < (A)0 ? (A)0 : x0")
  KILN_GPU_UNARY(sigmoid, "SIGMOID(A, x0)")
  KILN_GPU_UNARY(silu, "x0 * SIGMOID(A, x0)")
#undef KILN_GPU_UNARY
  static H float_is_nan(T x) { return map("y = x0 != x0;", DType::boolean, {T(x.get())}); }
  static H float_is_inf(T x) {
    return map("y = x0 == x0 && x0 - x0 != (A)0;", DType::boolean, {T(x.get())});
  }
  // The functions of functions.h.
  static H float_unary(T x, const UnaryFunction& f) {
    return map(body_of(f.type), x->dtype(), {x}, Numbers{f.a, f.b, f.c});
  }
  static H float_binary(T x, T y, const BinaryFunction& f) {
    return map(body_of(f.type, is_narrow(x->dtype())), x->dtype(), {x, y}, Numbers{f.a, f.b, f.c});
  }
  static H float_ternary(T x, T y, T z, const TernaryFunction& f) {
    return map(body_of(f.type), x->dtype(), {x, y, z}, Numbers{f.value, f.divisor});
  }

  KILN_GPU_COMPARES(float)
  KILN_GPU_COMPARE_SCALAR(float, equal, "==")
  KILN_GPU_COMPARE_SCALAR(float, not_equal, "!=")
  KILN_GPU_COMPARE_SCALAR(float, greater, ">")
  KILN_GPU_COMPARE_SCALAR(float, greater_equal, ">=")
  KILN_GPU_COMPARE_SCALAR(float, lower, "<")
  KILN_GPU_COMPARE_SCALAR(float, lower_equal, "<=")

  // ---- Float: reductions, scans, sorts
  static H float_sum(const H& x, const Dims& dims, bool keep) {
    return reduce({"0", "x", "a + b"}, x, dims, keep, x->dtype());
  }
  static H float_nansum(const H& x, const Dims& dims, bool keep) {
    return reduce({"0", "x != x ? (A)0 : x", "a + b"}, x, dims, keep, x->dtype());
  }
  static H float_mean(const H& x, const Dims& dims, bool keep) {
    const auto count = static_cast<double>(defaults::reduced_count(x->shape(), dims));
    return reduce({"0", "x", "a + b", "a / s0"}, x, dims, keep, x->dtype(), count);
  }
  static H float_prod(const H& x, const Dims& dims, bool keep) {
    return reduce({"1", "x", "a * b"}, x, dims, keep, x->dtype());
  }
  static H float_amax(const H& x, const Dims& dims, bool keep) {
    return reduce({"-(A)INFINITY", "x", "a != a || a > b ? a : b"}, x, dims, keep, x->dtype());
  }
  static H float_amin(const H& x, const Dims& dims, bool keep) {
    return reduce({"(A)INFINITY", "x", "a != a || a < b ? a : b"}, x, dims, keep, x->dtype());
  }
  static H float_argmax(const H& x, int dim, bool keep) {
    return arg_reduce("x > best", x, dim, keep);
  }
  static H float_argmin(const H& x, int dim, bool keep) {
    return arg_reduce("x < best", x, dim, keep);
  }
  static H float_cumsum(const H& x, int dim) { return gpu::cumsum(x, dim); }
  static H float_cumprod(const H& x, int dim) {
    return scan("A h = 1;", "h = h * x0; y = h;", x, dim, x->dtype());
  }
  static H float_logcumsumexp(const H& x, int dim) {
    return scan("A most = -(A)INFINITY; A s = 0;",
                "if (x0 != x0 || most != most) { most = (A)NAN; } else if (x0 > most) { "
                "s = (most - most == (A)0 ? s * exp(most - x0) : (A)0) + (A)1; most = x0; } "
                "else if (x0 == most) { s += (A)1; } "
                "else if (most - most == (A)0) { s += exp(x0 - most); } "
                "y = most - most == (A)0 ? most + log(s) : most;",
                x, dim, x->dtype());
  }
  static H float_cumarg(const H& x, int dim, bool largest) {
    return scan("A best = 0; i64 at = -1;",
                largest ? Literal("if (at < 0 || x0 != x0 || (best == best && x0 >= best)) "
                                  "{ best = x0; at = j; } y = at;")
                        : Literal("if (at < 0 || x0 != x0 || (best == best && x0 <= best)) "
                                  "{ best = x0; at = j; } y = at;"),
                x, dim, DType::i64);
  }
  static H float_linear_scan(const H& a, const H& b, int dim, bool reversed) {
    return scan("A h = 0;", "h = j == 0 ? x1 : x0 * h + x1; y = h;", a, dim, a->dtype(), &b,
                reversed);
  }
  static std::pair<H, H> float_sort(const H& x, int dim, bool descending) {
    const H index = argsort(x, dim, descending);
    if (x->shape().rank() == 0) return {contiguous(x), index};
    return {gpu::gather("sort", x, dim, index), index};
  }
  static H float_searchsorted(const H& sorted, const H& values, bool right) {
    return searchsorted(sorted, values, right);
  }

  // ---- Float: indices, products
  static H float_scatter_add(const H& x, int dim, const H& index, const H& src) {
    return combine("scatter_add", "a + b", x, dim, index, src);
  }
  static H float_index_add(const H& x, int dim, const H& index, const H& src) {
    if (has_segments(x, dim, index)) {
      if (!is_narrow(x->dtype())) return add_segments("index_add", x, index, src);
      return float_cast(
          add_segments("index_add", float_cast(x, DType::f32), index, float_cast(src, DType::f32)),
          x->dtype());
    }
    return combine("index_add", "a + b", x, dim, gpu::spread_index(index, dim, src->shape()), src);
  }
  static H float_scatter_reduce(const H& x, int dim, const H& index, const H& src,
                                ScatterReduction reduction) {
    return combine("scatter_reduce", reducing(reduction), x, dim, index, src);
  }
  static H float_matmul(const H& x, const H& y) { return gpu::matmul(x, y); }

  // ---- Int
  static H int_empty(const Shape& shape, DType dtype, Device on) { return empty(shape, dtype, on); }
  static H int_full(const Shape& shape, Scalar value, DType dtype, Device on) {
    return float_full(shape, value, dtype, on);
  }
  static H int_random(const Shape& shape, Distribution distribution, RandomStream stream,
                      DType dtype, Device on) {
    return gpu::random(shape, distribution, stream, dtype, on);
  }
  static H int_arange(int64_t start, int64_t step, int64_t count, DType dtype, Device on) {
    const H whole = empty({count}, DType::i64, on);
    return int_cast(map("y = s0 + i * s1;", DType::i64, {whole}, Integers{start, step}), dtype);
  }
  static H int_cast(T x, DType to) {
    if (x->dtype() == to) return x.take();
    return map("y = (ACC(OUT))x0;", to, {T(x.get())});
  }
  static H int_into_float(T x, DType to) { return map("y = (ACC(OUT))x0;", to, {T(x.get())}); }
  static H int_into_bool(T x) { return map("y = x0 != 0;", DType::boolean, {T(x.get())}); }
  static H int_mask_fill(T x, T mask, Scalar value) {
    return map("y = x1 ? (A)s0 : x0;", x->dtype(), {x, mask}, integer(value));
  }
#define KILN_GPU_INT(name, expression) \
  static H int_##name(T x, T y) { return map("y = (A)(" expression ");", x->dtype(), {x, y}); }
  KILN_GPU_INT(add, "(W)x0 + (W)x1")
  KILN_GPU_INT(sub, "(W)x0 - (W)x1")
  KILN_GPU_INT(mul, "(W)x0 * (W)x1")
  KILN_GPU_INT(bitwise_and, "x0 & x1")
  KILN_GPU_INT(bitwise_or, "x0 | x1")
  KILN_GPU_INT(bitwise_xor, "x0 ^ x1")
  KILN_GPU_INT(maximum, "x0 > x1 ? x0 : x1")
  KILN_GPU_INT(minimum, "x0 < x1 ? x0 : x1")
#undef KILN_GPU_INT
  static H int_div(T x, T y) {
    return map_checked("div",
                       "if (x1 == 0) { FAULT; y = 0; } "
                       "else if (x1 == (A)-1) { y = (A)((W)0 - (W)x0); } else { y = x0 / x1; }",
                       x->dtype(), {x, y});
  }
  static H int_remainder(T x, T y) {
    return map_checked("remainder",
                       "if (x1 == 0) { FAULT; y = 0; } else if (x1 == (A)-1) { y = 0; } "
                       "else { A r = x0 % x1; y = r != 0 && (r < 0) != (x1 < 0) ? r + x1 : r; }",
                       x->dtype(), {x, y});
  }
  static H int_binary(T x, T y, IntFunction f) {
    return map_checked(name_of_int(f), body_of(f), x->dtype(), {x, y});
  }
#define KILN_GPU_INT_SCALAR(name, expression)                                \
  static H int_##name##_scalar(T x, Scalar value) {                          \
    return map("y = (A)(" expression ");", x->dtype(), {x}, integer(value)); \
  }
  KILN_GPU_INT_SCALAR(add, "(W)x0 + (W)s0")
  KILN_GPU_INT_SCALAR(mul, "(W)x0 * (W)s0")
  KILN_GPU_INT_SCALAR(rsub, "(W)s0 - (W)x0")
#undef KILN_GPU_INT_SCALAR
#define KILN_GPU_INT_UNARY(name, expression) \
  static H int_##name(T x) { return map("y = (A)(" expression ");", x->dtype(), {x}); }
  KILN_GPU_INT_UNARY(neg, "(W)0 - (W)x0")
  KILN_GPU_INT_UNARY(abs, "x0 < 0 ? (W)0 - (W)x0 : (W)x0")
  KILN_GPU_INT_UNARY(sign, "(x0 > 0) - (x0 < 0)")
  KILN_GPU_INT_UNARY(bitwise_not, "~x0")
#undef KILN_GPU_INT_UNARY
  static H int_clamp(T x, int64_t low, int64_t high) {
    return map("i64 v = x0; v = v < s0 ? s0 : v; v = v > s1 ? s1 : v; y = (ACC(OUT))v;", x->dtype(),
               {x}, Integers{low, high});
  }
  KILN_GPU_COMPARES(int)
#define KILN_GPU_INT_COMPARE_SCALAR(name, op)                                           \
  static H int_##name##_scalar(T x, Scalar value) {                                     \
    return map("y = (i64)x0 " op " s0;", DType::boolean, {T(x.get())}, integer(value)); \
  }
  KILN_GPU_INT_COMPARE_SCALAR(equal, "==")
  KILN_GPU_INT_COMPARE_SCALAR(not_equal, "!=")
  KILN_GPU_INT_COMPARE_SCALAR(greater, ">")
  KILN_GPU_INT_COMPARE_SCALAR(greater_equal, ">=")
  KILN_GPU_INT_COMPARE_SCALAR(lower, "<")
  KILN_GPU_INT_COMPARE_SCALAR(lower_equal, "<=")
#undef KILN_GPU_INT_COMPARE_SCALAR

  static H int_sum(const H& x, const Dims& dims, bool keep) {
    const H wide = x->dtype() == DType::i64 ? x : int_cast(T(x), DType::i64);
    return reduce({"0", "x", "(A)((W)a + (W)b)"}, wide, dims, keep, DType::i64);
  }
  static H int_prod(const H& x, const Dims& dims, bool keep) {
    return reduce({"1", "x", "(A)((W)a * (W)b)"}, x, dims, keep, x->dtype());
  }
  static H int_amax(const H& x, const Dims& dims, bool keep) {
    return reduce({"(A)((W)1 << (8 * sizeof(A) - 1))", "x", "a > b ? a : b"}, x, dims, keep,
                  x->dtype());
  }
  static H int_amin(const H& x, const Dims& dims, bool keep) {
    return reduce({"(A)~((W)1 << (8 * sizeof(A) - 1))", "x", "a < b ? a : b"}, x, dims, keep,
                  x->dtype());
  }
  static H int_argmax(const H& x, int dim, bool keep) {
    return arg_reduce("x > best", x, dim, keep);
  }
  static H int_argmin(const H& x, int dim, bool keep) {
    return arg_reduce("x < best", x, dim, keep);
  }
  static H int_cumsum(const H& x, int dim) { return gpu::cumsum(x, dim); }
  static H int_cumprod(const H& x, int dim) {
    return scan("A h = 1;", "h = (A)((W)h * (W)x0); y = h;", x, dim, x->dtype());
  }
  static H int_cumarg(const H& x, int dim, bool largest) {
    return scan("A best = 0; i64 at = -1;",
                largest ? Literal("if (at < 0 || x0 >= best) { best = x0; at = j; } y = at;")
                        : Literal("if (at < 0 || x0 <= best) { best = x0; at = j; } y = at;"),
                x, dim, DType::i64);
  }
  static H int_argsort(const H& x, int dim, bool descending) { return argsort(x, dim, descending); }
  static H int_searchsorted(const H& sorted, const H& values, bool right) {
    return searchsorted(sorted, values, right);
  }
  static H int_scatter_add(const H& x, int dim, const H& index, const H& src) {
    return combine("scatter_add", "(A)((W)a + (W)b)", x, dim, index, src);
  }
  static H int_index_add(const H& x, int dim, const H& index, const H& src) {
    return combine("index_add", "(A)((W)a + (W)b)", x, dim,
                   gpu::spread_index(index, dim, src->shape()), src);
  }
  static H int_scatter_reduce(const H& x, int dim, const H& index, const H& src,
                              ScatterReduction reduction) {
    return combine(
        "scatter_reduce",
        reduction == ScatterReduction::prod ? Literal("(A)((W)a * (W)b)") : reducing(reduction), x,
        dim, index, src);
  }
  static H int_matmul(const H& x, const H& y) { return gpu::matmul(x, y); }

  // ---- Bool
  static H bool_empty(const Shape& shape, Device on) { return empty(shape, DType::boolean, on); }
  static H bool_full(const Shape& shape, bool value, Device on) {
    return float_full(shape, value, DType::boolean, on);
  }
  static H bool_into_float(T x, DType to) { return int_into_float(x, to); }
  static H bool_into_int(T x, DType to) { return int_into_float(x, to); }
  static H bool_mask_fill(T x, T mask, Scalar value) {
    return map("y = x1 ? (A)s0 : x0;", DType::boolean, {x, mask},
               Integers{value.to_bool() ? 1 : 0, 0});
  }
#define KILN_GPU_BOOL(name, expression) \
  static H bool_##name(T x, T y) { return map("y = " expression ";", DType::boolean, {x, y}); }
  KILN_GPU_BOOL(equal, "x0 == x1")
  KILN_GPU_BOOL(and, "x0 & x1")
  KILN_GPU_BOOL(or, "x0 | x1")
  KILN_GPU_BOOL(xor, "x0 ^ x1")
#undef KILN_GPU_BOOL
  static H bool_not(T x) { return map("y = !x0;", DType::boolean, {x}); }
  static H bool_any(const H& x, const Dims& dims, bool keep) {
    return reduce({"0", "x", "a | b"}, x, dims, keep, DType::boolean);
  }
  static H bool_all(const H& x, const Dims& dims, bool keep) {
    return reduce({"1", "x", "a & b"}, x, dims, keep, DType::boolean);
  }
  static H bool_nonzero(const H& x) { return gpu::nonzero(x); }

  // ---- Quantized
  static Q q_from_parts(const H& values, const H& scales, const QuantScheme& scheme,
                        const Shape& shape) {
    return make_handle<GpuQuantized>(values, scales, scheme, shape);
  }
  static H q_values(const Q& x) { return x->values(); }
  static H q_scales(const Q& x) { return x->scales(); }
  static QuantScheme q_scheme(const Q& x) { return x->scheme(); }
  static Q q_reshape(const Q& x, const Shape& shape) {
    return make_handle<GpuQuantized>(gpu::reshape(x->values(), shape), x->scales(), x->scheme(),
                                     shape);
  }
  static Q float_quantize(const H& x, const QuantScheme& scheme) { return quantize(x, scheme); }
  static H q_dequantize(const Q& x, DType to) { return dequantize(x, to); }

 private:
  static Numbers number(const T& x, Scalar value) { return {rounded(value, x->dtype())}; }
  static Integers integer(Scalar value) { return {value.to_int(), 0}; }
  static Literal reducing(ScatterReduction reduction) {
    switch (reduction) {
      case ScatterReduction::prod:
        return "a * b";
      case ScatterReduction::amax:
        return "a != a || a > b ? a : b";
      default:
        return "a != a || a < b ? a : b";
    }
  }
  // Scatters 16-bit floats in f32, so that they are rounded once.
  static H combine(const char* op, Literal combined, const H& x, int dim, const H& index,
                   const H& src) {
    if (!is_narrow(x->dtype())) return gpu::scatter(op, combined, x, dim, index, src);
    return float_cast(gpu::scatter(op, combined, float_cast(x, DType::f32), dim, index,
                                   float_cast(src, DType::f32)),
                      x->dtype());
  }
};

}  // namespace kiln::gpu
