// CpuBasic: the ops of the fast host backend that work element by element, move data or reduce it.
//
// Every op of ops.def is here except those of CpuNeural (matrix products, convolutions,
// normalization, softmax, losses, optimizer steps). What each computes stands in ops.def; what it
// writes to, in arg.h.
#pragma once

#include <span>

#include "kiln/backend/defaults.h"
#include "kiln/backend/host_tensor.h"

namespace kiln {

struct Cpu;

struct CpuBasic : BackendDefaults<Cpu> {
  // Float tensors: data, creation, moving. (create.cpp, cast.cpp, random.cpp)
  static HostHandle float_from_data(const TensorData&, kiln::Device);
  static TensorData float_into_data(Arg<HostHandle>);
  static HostHandle float_empty(const Shape&, DType, kiln::Device);
  static HostHandle float_full(const Shape&, Scalar, DType, kiln::Device);
  static HostHandle float_random(const Shape&, Distribution, RandomStream, DType, kiln::Device);
  static HostHandle float_arange(double, double, int64_t, DType, kiln::Device);
  static HostHandle float_to_device(Arg<HostHandle>, kiln::Device);
  static HostHandle float_cast(Arg<HostHandle>, DType);
  static HostHandle float_into_int(Arg<HostHandle>, DType);
  static HostHandle float_into_bool(Arg<HostHandle>);

  // Shape: views where the strides allow one. (create.cpp, copy.cpp)
  static HostHandle float_reshape(Arg<HostHandle>, const Shape&);
  static HostHandle float_permute(Arg<HostHandle>, const Dims&);
  static HostHandle float_expand(Arg<HostHandle>, const Shape&);
  static HostHandle float_slice(Arg<HostHandle>, int, Range);
  static HostHandle float_flip(Arg<HostHandle>, const Dims&);
  static HostHandle float_contiguous(Arg<HostHandle>);

  // Writing into the first operand. (copy.cpp, create.cpp)
  static void float_assign(Arg<HostHandle>, Arg<HostHandle>);
  static void float_fill(Arg<HostHandle>, Scalar);

  // Indexing. (gather.cpp, scatter.cpp, cat.cpp, mask.cpp)
  static HostHandle float_gather(Arg<HostHandle>, int, Arg<HostHandle>);
  static HostHandle float_scatter(Arg<HostHandle>, int, Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle float_scatter_add(Arg<HostHandle>, int, Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle float_index_select(Arg<HostHandle>, int, Arg<HostHandle>);
  static HostHandle float_index_add(Arg<HostHandle>, int, Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle float_scatter_reduce(Arg<HostHandle>, int, Arg<HostHandle>, Arg<HostHandle>,
                                         ScatterReduction);
  static HostHandle float_bag_sum(Arg<HostHandle>, Arg<HostHandle>, Arg<HostHandle>, bool);
  static HostHandle float_index_copy(Arg<HostHandle>, int, Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle float_cat(std::span<const HostHandle>, int);
  static HostHandle float_mask_where(Arg<HostHandle>, Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle float_mask_fill(Arg<HostHandle>, Arg<HostHandle>, Scalar);

  // Arithmetic. (binary.cpp)
  static HostHandle float_add(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle float_sub(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle float_mul(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle float_div(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle float_remainder(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle float_pow(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle float_atan2(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle float_maximum(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle float_minimum(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle float_add_scalar(Arg<HostHandle>, Scalar);
  static HostHandle float_mul_scalar(Arg<HostHandle>, Scalar);
  static HostHandle float_div_scalar(Arg<HostHandle>, Scalar);
  static HostHandle float_remainder_scalar(Arg<HostHandle>, Scalar);
  static HostHandle float_pow_scalar(Arg<HostHandle>, Scalar);
  static HostHandle float_rsub_scalar(Arg<HostHandle>, Scalar);
  static HostHandle float_rdiv_scalar(Arg<HostHandle>, Scalar);
  static HostHandle float_clamp(Arg<HostHandle>, double, double);

  // Unary. (unary.cpp)
  static HostHandle float_neg(Arg<HostHandle>);
  static HostHandle float_abs(Arg<HostHandle>);
  static HostHandle float_sign(Arg<HostHandle>);
  static HostHandle float_square(Arg<HostHandle>);
  static HostHandle float_sqrt(Arg<HostHandle>);
  static HostHandle float_rsqrt(Arg<HostHandle>);
  static HostHandle float_recip(Arg<HostHandle>);
  static HostHandle float_exp(Arg<HostHandle>);
  static HostHandle float_expm1(Arg<HostHandle>);
  static HostHandle float_log(Arg<HostHandle>);
  static HostHandle float_log1p(Arg<HostHandle>);
  static HostHandle float_log2(Arg<HostHandle>);
  static HostHandle float_log10(Arg<HostHandle>);
  static HostHandle float_sin(Arg<HostHandle>);
  static HostHandle float_cos(Arg<HostHandle>);
  static HostHandle float_tan(Arg<HostHandle>);
  static HostHandle float_asin(Arg<HostHandle>);
  static HostHandle float_acos(Arg<HostHandle>);
  static HostHandle float_atan(Arg<HostHandle>);
  static HostHandle float_sinh(Arg<HostHandle>);
  static HostHandle float_cosh(Arg<HostHandle>);
  static HostHandle float_tanh(Arg<HostHandle>);
  static HostHandle float_asinh(Arg<HostHandle>);
  static HostHandle float_acosh(Arg<HostHandle>);
  static HostHandle float_atanh(Arg<HostHandle>);
  static HostHandle float_erf(Arg<HostHandle>);
  static HostHandle float_floor(Arg<HostHandle>);
  static HostHandle float_ceil(Arg<HostHandle>);
  static HostHandle float_round(Arg<HostHandle>);
  static HostHandle float_trunc(Arg<HostHandle>);
  // (functions.cpp)
  static HostHandle float_unary(Arg<HostHandle>, const UnaryFunction&);
  static HostHandle float_binary(Arg<HostHandle>, Arg<HostHandle>, const BinaryFunction&);
  static HostHandle float_ternary(Arg<HostHandle>, Arg<HostHandle>, Arg<HostHandle>,
                                  const TernaryFunction&);
  // (binary_sum.cpp)
  static HostHandle float_binary_sum(Arg<HostHandle>, Arg<HostHandle>, const BinaryFunction&,
                                     double);

  // Comparison. (compare.cpp)
  static HostHandle float_equal(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle float_not_equal(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle float_greater(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle float_greater_equal(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle float_lower(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle float_lower_equal(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle float_equal_scalar(Arg<HostHandle>, Scalar);
  static HostHandle float_not_equal_scalar(Arg<HostHandle>, Scalar);
  static HostHandle float_greater_scalar(Arg<HostHandle>, Scalar);
  static HostHandle float_greater_equal_scalar(Arg<HostHandle>, Scalar);
  static HostHandle float_lower_scalar(Arg<HostHandle>, Scalar);
  static HostHandle float_lower_equal_scalar(Arg<HostHandle>, Scalar);
  static HostHandle float_is_nan(Arg<HostHandle>);
  static HostHandle float_is_inf(Arg<HostHandle>);

  // Reductions. (reduce.cpp, arg_reduce.cpp, scan.cpp, sort.cpp, select.cpp)
  static HostHandle float_sum(Arg<HostHandle>, const Dims&, bool);
  static HostHandle float_mean(Arg<HostHandle>, const Dims&, bool);
  static HostHandle float_prod(Arg<HostHandle>, const Dims&, bool);
  static HostHandle float_amax(Arg<HostHandle>, const Dims&, bool);
  static HostHandle float_amin(Arg<HostHandle>, const Dims&, bool);
  static HostHandle float_var(Arg<HostHandle>, const Dims&, double, bool);
  static HostHandle float_argmax(Arg<HostHandle>, int, bool);
  static HostHandle float_argmin(Arg<HostHandle>, int, bool);
  static HostHandle float_cumsum(Arg<HostHandle>, int);
  static std::pair<HostHandle, HostHandle> float_sort(Arg<HostHandle>, int, bool);
  static HostHandle float_argtopk(Arg<HostHandle>, int64_t, int, bool);
  static HostHandle float_argplace(Arg<HostHandle>, Arg<HostHandle>, int);
  static HostHandle float_searchsorted(Arg<HostHandle>, Arg<HostHandle>, bool);
  static HostHandle float_nansum(Arg<HostHandle>, const Dims&, bool);
  static HostHandle float_norm(Arg<HostHandle>, double, const Dims&, bool);
  static HostHandle float_cumprod(Arg<HostHandle>, int);
  static HostHandle float_logcumsumexp(Arg<HostHandle>, int);
  static HostHandle float_cumarg(Arg<HostHandle>, int, bool);
  static HostHandle float_linear_scan(Arg<HostHandle>, Arg<HostHandle>, int, bool);
  // (distance.cpp)
  static HostHandle float_cdist(Arg<HostHandle>, Arg<HostHandle>, double, bool);

  // Fourier transforms. (fft.cpp)
  static HostHandle float_fft(Arg<HostHandle>, int, bool, double);
  static HostHandle float_fft_real(Arg<HostHandle>, const Dims&, bool, double);
  static HostHandle float_rfft(Arg<HostHandle>, double, double);
  static HostHandle float_irfft(Arg<HostHandle>, int64_t, double, double);

  // Complex numbers. (complex.cpp)
  static HostHandle float_complex_mul(Arg<HostHandle>, Arg<HostHandle>, bool);
  static HostHandle float_complex_div(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle float_complex_pow(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle float_complex_abs(Arg<HostHandle>);
  static HostHandle float_complex_unary(Arg<HostHandle>, ComplexFunction);
  static HostHandle float_complex_rows(Arg<HostHandle>);

  // Activations and their gradients. (unary.cpp, binary.cpp)
  static HostHandle float_relu(Arg<HostHandle>);
  static HostHandle float_relu_backward(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle float_sigmoid(Arg<HostHandle>);
  static HostHandle float_sigmoid_backward(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle float_tanh_backward(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle float_silu(Arg<HostHandle>);
  static HostHandle float_silu_backward(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle float_gelu(Arg<HostHandle>, bool);
  static HostHandle float_gelu_backward(Arg<HostHandle>, Arg<HostHandle>, bool);

  // Int tensors.
  static HostHandle int_from_data(const TensorData&, kiln::Device);
  static TensorData int_into_data(Arg<HostHandle>);
  static HostHandle int_empty(const Shape&, DType, kiln::Device);
  static HostHandle int_full(const Shape&, Scalar, DType, kiln::Device);
  static HostHandle int_random(const Shape&, Distribution, RandomStream, DType, kiln::Device);
  static HostHandle int_arange(int64_t, int64_t, int64_t, DType, kiln::Device);
  static HostHandle int_to_device(Arg<HostHandle>, kiln::Device);
  static HostHandle int_cast(Arg<HostHandle>, DType);
  static HostHandle int_into_float(Arg<HostHandle>, DType);
  static HostHandle int_into_bool(Arg<HostHandle>);
  static HostHandle int_reshape(Arg<HostHandle>, const Shape&);
  static HostHandle int_permute(Arg<HostHandle>, const Dims&);
  static HostHandle int_expand(Arg<HostHandle>, const Shape&);
  static HostHandle int_slice(Arg<HostHandle>, int, Range);
  static HostHandle int_flip(Arg<HostHandle>, const Dims&);
  static HostHandle int_contiguous(Arg<HostHandle>);
  static void int_assign(Arg<HostHandle>, Arg<HostHandle>);
  static void int_fill(Arg<HostHandle>, Scalar);
  static HostHandle int_gather(Arg<HostHandle>, int, Arg<HostHandle>);
  static HostHandle int_scatter(Arg<HostHandle>, int, Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle int_scatter_add(Arg<HostHandle>, int, Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle int_index_select(Arg<HostHandle>, int, Arg<HostHandle>);
  static HostHandle int_index_add(Arg<HostHandle>, int, Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle int_scatter_reduce(Arg<HostHandle>, int, Arg<HostHandle>, Arg<HostHandle>,
                                       ScatterReduction);
  static HostHandle int_index_copy(Arg<HostHandle>, int, Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle int_cat(std::span<const HostHandle>, int);
  static HostHandle int_mask_where(Arg<HostHandle>, Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle int_mask_fill(Arg<HostHandle>, Arg<HostHandle>, Scalar);
  static HostHandle int_add(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle int_sub(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle int_mul(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle int_div(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle int_remainder(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle int_maximum(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle int_minimum(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle int_add_scalar(Arg<HostHandle>, Scalar);
  static HostHandle int_mul_scalar(Arg<HostHandle>, Scalar);
  static HostHandle int_rsub_scalar(Arg<HostHandle>, Scalar);
  static HostHandle int_clamp(Arg<HostHandle>, int64_t, int64_t);
  static HostHandle int_bitwise_and(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle int_bitwise_or(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle int_bitwise_xor(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle int_bitwise_not(Arg<HostHandle>);
  static HostHandle int_binary(Arg<HostHandle>, Arg<HostHandle>, IntFunction);
  static HostHandle int_neg(Arg<HostHandle>);
  static HostHandle int_abs(Arg<HostHandle>);
  static HostHandle int_sign(Arg<HostHandle>);
  static HostHandle int_equal(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle int_not_equal(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle int_greater(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle int_greater_equal(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle int_lower(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle int_lower_equal(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle int_equal_scalar(Arg<HostHandle>, Scalar);
  static HostHandle int_not_equal_scalar(Arg<HostHandle>, Scalar);
  static HostHandle int_greater_scalar(Arg<HostHandle>, Scalar);
  static HostHandle int_greater_equal_scalar(Arg<HostHandle>, Scalar);
  static HostHandle int_lower_scalar(Arg<HostHandle>, Scalar);
  static HostHandle int_lower_equal_scalar(Arg<HostHandle>, Scalar);
  static HostHandle int_sum(Arg<HostHandle>, const Dims&, bool);
  static HostHandle int_prod(Arg<HostHandle>, const Dims&, bool);
  static HostHandle int_amax(Arg<HostHandle>, const Dims&, bool);
  static HostHandle int_amin(Arg<HostHandle>, const Dims&, bool);
  static HostHandle int_argmax(Arg<HostHandle>, int, bool);
  static HostHandle int_argmin(Arg<HostHandle>, int, bool);
  static HostHandle int_cumsum(Arg<HostHandle>, int);
  static HostHandle int_argsort(Arg<HostHandle>, int, bool);
  static HostHandle int_argtopk(Arg<HostHandle>, int64_t, int, bool);
  static HostHandle int_argplace(Arg<HostHandle>, Arg<HostHandle>, int);
  static HostHandle int_searchsorted(Arg<HostHandle>, Arg<HostHandle>, bool);
  static HostHandle int_cumprod(Arg<HostHandle>, int);
  static HostHandle int_cumarg(Arg<HostHandle>, int, bool);

  // Bool tensors.
  static HostHandle bool_from_data(const TensorData&, kiln::Device);
  static TensorData bool_into_data(Arg<HostHandle>);
  static HostHandle bool_empty(const Shape&, kiln::Device);
  static HostHandle bool_full(const Shape&, bool, kiln::Device);
  static HostHandle bool_to_device(Arg<HostHandle>, kiln::Device);
  static HostHandle bool_into_float(Arg<HostHandle>, DType);
  static HostHandle bool_into_int(Arg<HostHandle>, DType);
  static HostHandle bool_reshape(Arg<HostHandle>, const Shape&);
  static HostHandle bool_permute(Arg<HostHandle>, const Dims&);
  static HostHandle bool_expand(Arg<HostHandle>, const Shape&);
  static HostHandle bool_slice(Arg<HostHandle>, int, Range);
  static HostHandle bool_flip(Arg<HostHandle>, const Dims&);
  static HostHandle bool_contiguous(Arg<HostHandle>);
  static void bool_assign(Arg<HostHandle>, Arg<HostHandle>);
  static void bool_fill(Arg<HostHandle>, Scalar);
  static HostHandle bool_gather(Arg<HostHandle>, int, Arg<HostHandle>);
  static HostHandle bool_scatter(Arg<HostHandle>, int, Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle bool_index_select(Arg<HostHandle>, int, Arg<HostHandle>);
  static HostHandle bool_index_copy(Arg<HostHandle>, int, Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle bool_nonzero(Arg<HostHandle>);
  static HostHandle bool_cat(std::span<const HostHandle>, int);
  static HostHandle bool_mask_where(Arg<HostHandle>, Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle bool_mask_fill(Arg<HostHandle>, Arg<HostHandle>, Scalar);
  static HostHandle bool_equal(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle bool_and(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle bool_or(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle bool_xor(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle bool_not(Arg<HostHandle>);
  static HostHandle bool_any(Arg<HostHandle>, const Dims&, bool);
  static HostHandle bool_all(Arg<HostHandle>, const Dims&, bool);
  static HostHandle bool_count(Arg<HostHandle>, const Dims&, bool);

  // Quantized tensors. (quantize.cpp)
  static QuantizedHandle float_quantize(Arg<HostHandle>, const QuantScheme&);
  static QuantizedHandle q_from_parts(Arg<HostHandle>, Arg<HostHandle>, const QuantScheme&,
                                      const Shape&);
  static HostHandle q_values(Arg<QuantizedHandle> x) { return x->values(); }
  static HostHandle q_scales(Arg<QuantizedHandle> x) { return x->scales(); }
  static QuantScheme q_scheme(Arg<QuantizedHandle> x) { return x->scheme(); }
  static QuantizedHandle q_reshape(Arg<QuantizedHandle>, const Shape&);
  static HostHandle q_dequantize(Arg<QuantizedHandle>, DType);
};

}  // namespace kiln
