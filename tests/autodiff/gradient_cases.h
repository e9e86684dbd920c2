// A case for every float op of the table that has a gradient. Inputs keep away from kinks, where
// differences and derivatives do not meet.
#pragma once

#include <set>

#include "gradient_cases_recurrence.h"
#include "gradient_cases_transforms.h"

namespace gradcheck {

template <class B>
std::vector<Case<B>> elementwise_cases() {
  using A = kiln::Autodiff<B>;
  using T = typename A::FloatTensorPrimitive;
  using V = std::vector<T>;
  using kiln::Scalar;
  std::vector<Case<B>> out;
  const TensorData a = uniform({2, 3}, -2.0, 2.0, 1);
  const TensorData b = uniform({2, 3}, 0.5, 2.0, 2);
  const TensorData row = uniform({3}, 0.5, 2.0, 3);
  const TensorData column = uniform({2, 1}, 0.5, 1.5, 4);
  const TensorData unit = uniform({2, 3}, -0.8, 0.8, 5);
  const TensorData above_one = uniform({2, 3}, 1.2, 3.0, 6);
  const TensorData number = uniform({}, 0.5, 1.5, 7);

#define KILN_CASE_1(op, input) \
  out.push_back({#op, {input}, [](const V& x) { return A::op(x[0]); }});
  KILN_CASE_1(float_neg, a)
  KILN_CASE_1(float_abs, a)
  KILN_CASE_1(float_sign, a)
  KILN_CASE_1(float_square, a)
  KILN_CASE_1(float_sqrt, b)
  KILN_CASE_1(float_rsqrt, b)
  KILN_CASE_1(float_recip, b)
  KILN_CASE_1(float_exp, a)
  KILN_CASE_1(float_expm1, a)
  KILN_CASE_1(float_log, b)
  KILN_CASE_1(float_log1p, b)
  KILN_CASE_1(float_log2, b)
  KILN_CASE_1(float_log10, b)
  KILN_CASE_1(float_sin, a)
  KILN_CASE_1(float_cos, a)
  KILN_CASE_1(float_tan, unit)
  KILN_CASE_1(float_asin, unit)
  KILN_CASE_1(float_acos, unit)
  KILN_CASE_1(float_atan, a)
  KILN_CASE_1(float_sinh, a)
  KILN_CASE_1(float_cosh, a)
  KILN_CASE_1(float_tanh, a)
  KILN_CASE_1(float_asinh, a)
  KILN_CASE_1(float_acosh, above_one)
  KILN_CASE_1(float_atanh, unit)
  KILN_CASE_1(float_erf, a)
  KILN_CASE_1(float_floor, a)
  KILN_CASE_1(float_ceil, a)
  KILN_CASE_1(float_round, a)
  KILN_CASE_1(float_trunc, a)
  KILN_CASE_1(float_relu, a)
  KILN_CASE_1(float_sigmoid, a)
  KILN_CASE_1(float_silu, a)
  KILN_CASE_1(float_contiguous, a)
  KILN_CASE_1(float_exp, number)
#undef KILN_CASE_1

// Both operands differentiated: equal shapes, and broadcast both ways.
#define KILN_CASE_2(op, left, right)                                                 \
  out.push_back({#op, {left, right}, [](const V& x) { return A::op(x[0], x[1]); }}); \
  out.push_back({#op, {column, row}, [](const V& x) { return A::op(x[0], x[1]); }}); \
  out.push_back({#op, {number, right}, [](const V& x) { return A::op(x[0], x[1]); }});
  KILN_CASE_2(float_add, a, b)
  KILN_CASE_2(float_sub, a, b)
  KILN_CASE_2(float_mul, a, b)
  KILN_CASE_2(float_div, a, b)
  KILN_CASE_2(float_pow, b, a)
  KILN_CASE_2(float_atan2, a, b)
  KILN_CASE_2(float_maximum, a, b)
  KILN_CASE_2(float_minimum, a, b)
  out.push_back({"float_remainder", {a, uniform({2, 3}, 0.71, 0.73, 8)}, [](const V& x) {
                   return A::float_remainder(x[0], x[1]);
                 }});
#undef KILN_CASE_2
  // The same tensor twice.
  out.push_back({"float_mul", {a}, [](const V& x) { return A::float_mul(x[0], x[0]); }});

#define KILN_CASE_SCALAR(op, input, s) \
  out.push_back({#op, {input}, [](const V& x) { return A::op(x[0], Scalar(s)); }});
  KILN_CASE_SCALAR(float_add_scalar, a, 1.5)
  KILN_CASE_SCALAR(float_mul_scalar, a, -2.5)
  KILN_CASE_SCALAR(float_div_scalar, a, 3.0)
  KILN_CASE_SCALAR(float_remainder_scalar, a, 0.7)
  KILN_CASE_SCALAR(float_pow_scalar, b, 2.5)
  KILN_CASE_SCALAR(float_pow_scalar, a, 3.0)
  KILN_CASE_SCALAR(float_pow_scalar, a, 0.0)
  KILN_CASE_SCALAR(float_rsub_scalar, a, 1.5)
  KILN_CASE_SCALAR(float_rdiv_scalar, b, 1.5)
#undef KILN_CASE_SCALAR
  out.push_back({"float_clamp", {a}, [](const V& x) { return A::float_clamp(x[0], -1.0, 1.1); }});
  for (const bool approximate : {false, true}) {
    out.push_back({"float_gelu", {a}, [approximate](const V& x) {
                     return A::float_gelu(x[0], approximate);
                   }});
    out.push_back({"float_gelu_backward", {a, b}, [approximate](const V& x) {
                     return A::float_gelu_backward(x[0], x[1], approximate);
                   }});
  }
  // (g, result): the result is what the op gave, so that it is differentiated as a number of its
  // own.
  out.push_back({"float_relu_backward", {a, unit}, [](const V& x) {
                   return A::float_relu_backward(x[0], x[1]);
                 }});
  out.push_back({"float_sigmoid_backward", {a, unit}, [](const V& x) {
                   return A::float_sigmoid_backward(x[0], x[1]);
                 }});
  out.push_back({"float_tanh_backward", {a, unit}, [](const V& x) {
                   return A::float_tanh_backward(x[0], x[1]);
                 }});
  out.push_back({"float_silu_backward", {a, unit}, [](const V& x) {
                   return A::float_silu_backward(x[0], x[1]);
                 }});
  return out;
}

template <class B>
std::vector<Case<B>> function_cases() {
  using A = kiln::Autodiff<B>;
  using T = typename A::FloatTensorPrimitive;
  using V = std::vector<T>;
  using U = kiln::UnaryFunction::Type;
  std::vector<Case<B>> out;
  const TensorData a = uniform({2, 3}, -2.0, 2.0, 1);
  const TensorData b = uniform({2, 3}, 0.5, 2.0, 2);
  const TensorData row = uniform({3}, 0.5, 2.0, 3);
  const TensorData column = uniform({2, 1}, 2.1, 3.5, 4);
  const TensorData unit = uniform({2, 3}, -0.8, 0.8, 5);
  const TensorData inside = uniform({2, 3}, 0.1, 0.9, 6);
  const auto unary = [&](const TensorData& x, kiln::UnaryFunction f) {
    out.push_back({"float_unary", {x}, [f](const V& v) { return A::float_unary(v[0], f); }});
  };
  for (const auto type : {U::exp2, U::erfc, U::erfcx, U::ndtr, U::log_ndtr, U::sinc, U::nan_to_num,
                          U::bessel_i0, U::bessel_i0e, U::bessel_i1, U::bessel_i1e, U::bessel_j0,
                          U::bessel_j1, U::log_sigmoid, U::frexp_mantissa}) {
    unary(a, {type});
  }
  for (const auto type : {U::lgamma, U::digamma, U::entr, U::bessel_y0, U::bessel_y1, U::bessel_k0,
                          U::bessel_k1, U::bessel_k0e, U::bessel_k1e}) {
    unary(b, {type});
  }
  unary(uniform({4}, -1.8, -1.2, 7), {U::digamma});
  unary(b, {U::polygamma, 2.0});
  unary(a, {U::sinc, 1.0});
  unary(a, {U::bessel_j_over, 1.0});
  unary(a, {U::bessel_i_over, 1.0});
  unary(a, {U::bessel_i_over, 2.0, 1.0});
  unary(unit, {U::erfinv});
  unary(unit, {U::frac});
  unary(a, {U::softplus, 1.5, 20.0});
  unary(inside, {U::ndtri});
  unary(inside, {U::logit, -1.0});
  unary(uniform({2, 3}, 0.3, 0.6, 8), {U::logit, 0.2});
  for (const auto& f : std::vector<kiln::UnaryFunction>{{U::leaky_relu, 0.25},
                                                        {U::threshold, 0.3, -1.0},
                                                        {U::hardtanh, -1.0, 0.7},
                                                        {U::hardshrink, 0.3},
                                                        {U::softshrink, 0.3},
                                                        {U::hardsigmoid},
                                                        {U::hardswish},
                                                        {U::elu, 0.75, 1.25, 2.0},
                                                        {U::softplus, 1.5, 20.0},
                                                        {U::softplus, 1.5, 0.5},
                                                        {U::softplus, -1.0, 50.0}}) {
    unary(a, f);
    unary(uniform({2, 3}, -5.0, 5.0, 15), f);
  }
  const auto binary = [&](const TensorData& x, const TensorData& y, kiln::BinaryFunction f) {
    out.push_back(
        {"float_binary", {x, y}, [f](const V& v) { return A::float_binary(v[0], v[1], f); }});
  };
  using enum kiln::BinaryFunction::Type;
  for (const auto f : {kiln::BinaryFunction::Type::hypot, kiln::BinaryFunction::Type::copysign,
                       xlogy, xlog1py, logaddexp, logaddexp2, kiln::BinaryFunction::Type::fmax,
                       kiln::BinaryFunction::Type::fmin}) {
    binary(a, b, f);
    binary(column, row, f);
  }
  binary(a, uniform({2, 3}, 0.71, 0.73, 8), kiln::BinaryFunction::Type::fmod);
  binary(a, uniform({2, 3}, 0.71, 0.73, 8), trunc_divide);
  binary(a, uniform({2, 3}, 0.71, 0.73, 8), floor_divide);
  binary(a, b, heaviside);
  for (const auto& f : std::vector<kiln::BinaryFunction>{{prelu},
                                                         {glu},
                                                         {huber, 0.4, 1.5},
                                                         {bce_with_logits},
                                                         {squared_difference},
                                                         {absolute_difference},
                                                         {leaky_relu_backward, 0.25},
                                                         {threshold_backward, 0.7},
                                                         {hardtanh_backward, 0.1, 1.2, 0.5},
                                                         {shrink_backward, 0.7},
                                                         {hardswish_backward},
                                                         {elu_backward, 0.75, 1.25, 2.0},
                                                         {softplus_backward, 1.5, 20.0},
                                                         {prelu_weight_backward}}) {
    binary(a, b, f);
    binary(b, a, f);
    binary(column, row, f);
  }
  for (const auto& f : std::vector<kiln::BinaryFunction>{{huber, 0.4, 1.5},
                                                         {bce_with_logits},
                                                         {squared_difference},
                                                         {absolute_difference},
                                                         {logaddexp}}) {
    const auto sum = [f](const V& v) { return A::float_binary_sum(v[0], v[1], f, 1.5); };
    out.push_back({"float_binary_sum", {a, b}, sum});
    out.push_back({"float_binary_sum", {column, row}, sum});
  }
  const TensorData order = uniform({2, 3}, 1.5, 4.0, 9);
  for (const auto f : {zeta, gammainc, gammaincc}) {
    out.push_back({"float_binary", {b}, [f, order](const V& v) {
                     return A::float_binary(T{B::float_from_data(order, A::device(v[0]))}, v[0], f);
                   }});
  }
  const TensorData degrees(std::vector<double>{0, 1, 2, 3, 4, 6}, Shape{2, 3});
  for (const double family : {0, 1, 2, 3, 4, 5, 6, 7}) {
    const kiln::BinaryFunction f{polynomial, family};
    out.push_back({"float_binary", {uniform({2, 3}, -1.0, 1.0, 15)}, [f, degrees](const V& v) {
                     return A::float_binary(v[0], T{B::float_from_data(degrees, A::device(v[0]))},
                                            f);
                   }});
  }
  using W = kiln::TernaryFunction::Type;
  for (const auto type : {W::lerp, W::addcmul, W::addcdiv}) {
    const kiln::TernaryFunction f{type, -1.5};
    const auto run = [f](const V& v) { return A::float_ternary(v[0], v[1], v[2], f); };
    out.push_back({"float_ternary", {a, unit, b}, run});
    out.push_back({"float_ternary", {column, unit, row}, run});
    out.push_back({"float_ternary", {row, uniform({}, 0.5, 1.0, 10), column}, run});
  }
  for (const auto type :
       {W::prelu_backward, W::glu_backward, W::huber_backward, W::bce_with_logits_backward}) {
    const kiln::TernaryFunction f{type, 0.4, 1.5};
    const auto run = [f](const V& v) { return A::float_ternary(v[0], v[1], v[2], f); };
    out.push_back({"float_ternary", {a, unit, b}, run});
    out.push_back({"float_ternary", {column, unit, row}, run});
  }
  const auto clamped = [](const V& v) { return A::float_ternary(v[0], v[1], v[2], {W::clamp}); };
  out.push_back(
      {"float_ternary", {a, uniform({3}, -1.0, -0.9, 11), uniform({2, 1}, 0.9, 1.0, 12)}, clamped});
  out.push_back(
      {"float_ternary", {a, uniform({3}, 0.9, 1.0, 13), uniform({3}, -1.0, -0.9, 14)}, clamped});
  return out;
}

template <class B>
std::vector<Case<B>> shape_cases(kiln::Device device) {
  using A = kiln::Autodiff<B>;
  using T = typename A::FloatTensorPrimitive;
  using V = std::vector<T>;
  using kiln::Range;
  std::vector<Case<B>> out;
  const TensorData a = uniform({2, 3, 4}, -2.0, 2.0, 1);
  const TensorData b = uniform({2, 3, 4}, -2.0, 2.0, 2);
  const auto ints = [device](std::vector<int64_t> values, const Shape& shape) {
    return B::int_from_data(TensorData(values, shape), device);
  };
  const auto mask = B::float_greater(B::float_from_data(uniform({2, 3, 4}, -1, 1, 3), device),
                                     B::float_from_data(uniform({2, 3, 4}, -1, 1, 4), device));

  out.push_back({"float_cast", {a}, [](const V& x) { return A::float_cast(x[0], kiln::f64); }});
  out.push_back(
      {"float_to_device", {a}, [device](const V& x) { return A::float_to_device(x[0], device); }});
  out.push_back({"float_reshape", {a}, [](const V& x) {
                   return A::float_reshape(x[0], Shape{4, 6});
                 }});
  out.push_back({"float_permute", {a}, [](const V& x) {
                   return A::float_permute(x[0], Shape{2, 0, 1});
                 }});
  out.push_back({"float_expand", {uniform({3, 1}, -1, 1, 5)}, [](const V& x) {
                   return A::float_expand(x[0], Shape{2, 3, 4});
                 }});
  out.push_back({"float_slice", {a}, [](const V& x) {
                   return A::float_slice(x[0], 2, Range{1, 4, 2});
                 }});
  out.push_back({"float_slice", {a}, [](const V& x) {  // of a view
                   return A::float_slice(A::float_permute(x[0], Shape{2, 1, 0}), 0, Range{1, 3, 1});
                 }});
  out.push_back({"float_flip", {a}, [](const V& x) { return A::float_flip(x[0], Shape{0, 2}); }});
  const auto index = ints({0, 2, 1, 1, 0, 3, 3, 3}, {2, 1, 4});
  const auto src = uniform({2, 1, 4}, -1, 1, 6);
  out.push_back(
      {"float_gather", {a}, [index](const V& x) { return A::float_gather(x[0], 2, index); }});
  const auto unique = ints({0, 2, 1, 3, 3, 0, 2, 1}, {2, 1, 4});
  out.push_back({"float_scatter", {a, src}, [unique](const V& x) {
                   return A::float_scatter(x[0], 2, unique, x[1]);
                 }});
  out.push_back({"float_scatter_add", {a, src}, [index](const V& x) {
                   return A::float_scatter_add(x[0], 2, index, x[1]);
                 }});
  const auto rows = ints({2, 0, 2}, {3});
  out.push_back({"float_index_select", {a}, [rows](const V& x) {
                   return A::float_index_select(x[0], 1, rows);
                 }});
  out.push_back({"float_index_add", {a, uniform({2, 3, 4}, -1, 1, 7)}, [rows](const V& x) {
                   return A::float_index_add(x[0], 1, rows, x[1]);
                 }});
  for (const bool mean : {false, true}) {
    out.push_back({"float_bag_sum",
                   {uniform({4, 3}, -1, 1, 7)},
                   [mean, picked = ints({2, 0, 2, 3, 1}, {5}), starts = ints({0, 2, 2, 5}, {4})](
                       const V& x) { return A::float_bag_sum(x[0], picked, starts, mean); }});
  }
  const auto starts = ints({0, 2, 2, 5}, {4});
  const auto places = ints({2, 0, 3, 1, 3}, {5});
  for (const bool turned : {false, true}) {
    out.push_back({"float_csr_matmul",
                   {uniform({5}, -1, 1, 8), uniform({turned ? 3 : 4, 2}, -1, 1, 9)},
                   [starts, places, turned](const V& x) {
                     return A::float_csr_matmul(starts, places, x[0], x[1], 4, turned);
                   }});
  }
  out.push_back({"float_csr_sampled_matmul",
                 {uniform({3, 2}, -1, 1, 8), uniform({4, 2}, -1, 1, 9)},
                 [starts, places](const V& x) {
                   return A::float_csr_sampled_matmul(starts, places, x[0], x[1]);
                 }});
  out.push_back({"float_index_copy",
                 {a, uniform({2, 2, 4}, -1, 1, 7)},
                 [other = ints({2, 0}, {2})](const V& x) {
                   return A::float_index_copy(x[0], 1, other, x[1]);
                 }});
  // A place that three elements meet at, one that none does, and products with one zero and with
  // two.
  const auto meeting = ints({0, 2, 2, 1, 0, 3, 3, 3}, {2, 4});
  TensorData zeros = uniform({2, 4}, 0.5, 2.0, 10);
  zeros.as_mutable<double>()[0] = zeros.as_mutable<double>()[5] = 0.0;
  zeros.as_mutable<double>()[6] = 0.0;
  for (const auto reduction :
       {kiln::ScatterReduction::prod, kiln::ScatterReduction::amax, kiln::ScatterReduction::amin}) {
    out.push_back({"float_scatter_reduce",
                   {uniform({2, 5}, 0.5, 2.0, 11), uniform({2, 4}, 0.5, 2.0, 12)},
                   [meeting, reduction](const V& x) {
                     return A::float_scatter_reduce(x[0], 1, meeting, x[1], reduction);
                   }});
  }
  out.push_back({"float_scatter_reduce",
                 {uniform({3, 4}, 0.5, 2.0, 13), zeros},
                 [rows3 = ints({0, 2, 1, 1, 0, 2, 2, 1}, {2, 4})](const V& x) {
                   return A::float_scatter_reduce(x[0], 0, rows3, x[1],
                                                  kiln::ScatterReduction::prod);
                 }});
  out.push_back({"float_cat", {a, uniform({2, 2, 4}, -1, 1, 8)}, [](const V& x) {
                   return A::float_cat(std::span<const T>(x), 1);
                 }});
  out.push_back({"float_mask_where", {a, b}, [mask](const V& x) {
                   return A::float_mask_where(x[0], mask, x[1]);
                 }});
  out.push_back({"float_mask_where", {a, uniform({4}, -1, 1, 9)}, [mask](const V& x) {
                   return A::float_mask_where(x[0], mask, x[1]);
                 }});
  out.push_back({"float_mask_fill", {a}, [mask](const V& x) {
                   return A::float_mask_fill(x[0], mask, kiln::Scalar(0.5));
                 }});
  return out;
}

template <class B>
std::vector<Case<B>> reduction_cases() {
  using A = kiln::Autodiff<B>;
  using T = typename A::FloatTensorPrimitive;
  using V = std::vector<T>;
  using kiln::Dims;
  std::vector<Case<B>> out;
  const TensorData a = uniform({2, 3, 4}, -2.0, 2.0, 1);
  TensorData zeros = uniform({2, 3}, 0.5, 2.0, 2);  // a zero in one row, two in the other
  zeros.as_mutable<double>()[1] = 0.0;
  zeros.as_mutable<double>()[3] = 0.0;
  zeros.as_mutable<double>()[5] = 0.0;
#define KILN_CASE_REDUCE(op, ...)                                                          \
  out.push_back({#op, {a}, [](const V& x) { return A::op(x[0], Dims{1}, __VA_ARGS__); }}); \
  out.push_back({#op, {a}, [](const V& x) { return A::op(x[0], Dims{0, 2}, __VA_ARGS__); }});
  KILN_CASE_REDUCE(float_sum, false)
  KILN_CASE_REDUCE(float_nansum, false)
  KILN_CASE_REDUCE(float_mean, true)
  KILN_CASE_REDUCE(float_prod, false)
  KILN_CASE_REDUCE(float_amax, false)
  KILN_CASE_REDUCE(float_amin, true)
  KILN_CASE_REDUCE(float_var, 1.0, false)
  KILN_CASE_REDUCE(float_logsumexp, false)
#undef KILN_CASE_REDUCE
  out.push_back(
      {"float_prod", {zeros}, [](const V& x) { return A::float_prod(x[0], Dims{1}, false); }});
  out.push_back({"float_cumprod", {a}, [](const V& x) { return A::float_cumprod(x[0], 1); }});
  out.push_back({"float_cumprod", {zeros}, [](const V& x) { return A::float_cumprod(x[0], 1); }});
  out.push_back(
      {"float_logcumsumexp", {a}, [](const V& x) { return A::float_logcumsumexp(x[0], 2); }});
  for (const bool reversed : {false, true}) {
    out.push_back({"float_linear_scan", {a, uniform({2, 3, 4}, -1, 1, 14)}, [reversed](const V& x) {
                     return A::float_linear_scan(x[0], x[1], 2, reversed);
                   }});
  }
  for (const double order : {0.0, 0.7, 1.0, 2.0, 3.0, -1.5, static_cast<double>(INFINITY),
                             -static_cast<double>(INFINITY)}) {
    out.push_back({"float_norm", {a}, [order](const V& x) {
                     return A::float_norm(x[0], order, Dims{0, 2}, order == 2.0);
                   }});
  }
  out.push_back({"float_cumsum", {a}, [](const V& x) { return A::float_cumsum(x[0], 1); }});
  out.push_back(
      {"float_sort", {a}, [](const V& x) { return A::float_sort(x[0], 1, false).first; }});
  out.push_back({"float_sort", {a}, [](const V& x) { return A::float_sort(x[0], 2, true).first; }});
  out.push_back({"float_softmax", {a}, [](const V& x) { return A::float_softmax(x[0], 1); }});
  out.push_back(
      {"float_log_softmax", {a}, [](const V& x) { return A::float_log_softmax(x[0], 2); }});
  const TensorData g = uniform({2, 3, 4}, -1, 1, 3);
  out.push_back({"float_softmax_backward", {g, uniform({2, 3, 4}, 0.1, 0.9, 4)}, [](const V& x) {
                   return A::float_softmax_backward(x[0], x[1], 1);
                 }});
  out.push_back({"float_log_softmax_backward", {g, a}, [](const V& x) {
                   return A::float_log_softmax_backward(x[0], x[1], 1);
                 }});
  const auto matmul = [](const V& x) { return A::float_matmul(x[0], x[1]); };
  out.push_back({"float_matmul", {uniform({2, 3}, -1, 1, 5), uniform({3, 4}, -1, 1, 6)}, matmul});
  out.push_back(
      {"float_matmul", {uniform({2, 1, 2, 3}, -1, 1, 7), uniform({3, 3, 2}, -1, 1, 8)}, matmul});
  out.push_back(
      {"float_linear",
       {uniform({2, 2, 3}, -1, 1, 9), uniform({4, 3}, -1, 1, 10), uniform({4}, -1, 1, 11)},
       [](const V& x) { return A::float_linear(x[0], x[1], &x[2]); }});
  out.push_back({"float_linear",
                 {uniform({3}, -1, 1, 12), uniform({4, 3}, -1, 1, 13)},
                 [](const V& x) { return A::float_linear(x[0], x[1], nullptr); }});
  using enum kiln::Activation;
  for (const kiln::Activation activation :
       {none, relu, gelu, gelu_tanh, silu, tanh, sigmoid, relu6, hardswish, hardsigmoid}) {
    out.push_back({"float_linear_activation",
                   {uniform({2, 3}, -1, 1, 9), uniform({4, 3}, -1, 1, 10), uniform({4}, -1, 1, 11)},
                   [activation](const V& x) {
                     return A::float_linear_activation(x[0], x[1], &x[2], nullptr, activation);
                   }});
    out.push_back(
        {"float_linear_activation",
         {uniform({2, 3}, -1, 1, 9), uniform({4, 3}, -1, 1, 10), uniform({2, 4}, -1, 1, 12)},
         [activation](const V& x) {
           return A::float_linear_activation(x[0], x[1], nullptr, &x[2], activation);
         }});
  }
  out.push_back({"float_linear_quantized",
                 {uniform({2, 2, 3}, -1, 1, 14), uniform({4}, -1, 1, 15)},
                 [](const V& x) {
                   const auto weight = A::float_quantize(
                       A::float_arange(-1.0, 0.19, 12, kiln::f32, A::device(x[0])), {});
                   return A::float_linear_quantized(x[0], A::q_reshape(weight, {4, 3}), &x[1]);
                 }});
  return out;
}

template <class B>
std::vector<Case<B>> neural_cases(kiln::Device device) {
  using A = kiln::Autodiff<B>;
  using T = typename A::FloatTensorPrimitive;
  using V = std::vector<T>;
  std::vector<Case<B>> out;
  const TensorData image = uniform({2, 2, 5, 4}, -1, 1, 1);
  const kiln::ConvOptions plain;
  const kiln::ConvOptions rich{{2, 1}, {1, 2}, {1, 2}, 2};
  const TensorData w = uniform({3, 2, 3, 2}, -1, 1, 2);
  const TensorData grouped = uniform({4, 1, 2, 2}, -1, 1, 3);
  out.push_back({"float_conv2d", {image, w, uniform({3}, -1, 1, 4)}, [plain](const V& x) {
                   return A::float_conv2d(x[0], x[1], &x[2], plain);
                 }});
  out.push_back({"float_conv2d", {image, grouped}, [rich](const V& x) {
                   return A::float_conv2d(x[0], x[1], nullptr, rich);
                 }});
  const TensorData g = uniform({2, 3, 3, 3}, -1, 1, 5);
  using enum kiln::Activation;
  out.push_back({"float_separable_block",
                 {image, uniform({3, 2, 1, 1}, -1, 1, 7), uniform({3}, -1, 1, 8),
                  uniform({3, 1, 3, 2}, -1, 1, 9), uniform({3}, -1, 1, 10),
                  uniform({2, 3, 1, 1}, -1, 1, 11), uniform({2, 2, 3, 3}, -1, 1, 12)},
                 [](const V& x) {
                   return A::float_separable_block(x[0], &x[1], &x[2], silu, x[3], &x[4], tanh,
                                                   &x[5], nullptr, &x[6], none,
                                                   kiln::ConvOptions{{2, 1}, {1, 0}, {1, 1}, 3});
                 }});
  for (const kiln::Activation activation : {none, relu, gelu, silu, tanh, sigmoid, hardswish}) {
    out.push_back({"float_conv2d_activation",
                   {image, w, uniform({3}, -1, 1, 4), uniform({2, 3, 3, 3}, -1, 1, 6)},
                   [plain, activation](const V& x) {
                     return A::float_conv2d_activation(x[0], x[1], &x[2], &x[3], activation, plain);
                   }});
    out.push_back({"float_conv2d_activation", {image, grouped}, [rich, activation](const V& x) {
                     return A::float_conv2d_activation(x[0], x[1], nullptr, nullptr, activation,
                                                       rich);
                   }});
  }
  out.push_back({"float_conv2d_input_grad", {w, g}, [plain](const V& x) {
                   return A::float_conv2d_input_grad(x[0], x[1], Shape{2, 2, 5, 4}, plain);
                 }});
  out.push_back({"float_conv2d_weight_grad", {image, g}, [plain](const V& x) {
                   return A::float_conv2d_weight_grad(x[0], x[1], Shape{3, 2, 3, 2}, plain);
                 }});
  const TensorData to_enlarge = uniform({2, 3, 3, 3}, -1, 1, 7);
  for (const kiln::Activation activation : {none, relu, sigmoid}) {
    out.push_back({"float_conv_transpose2d",
                   {to_enlarge, w, uniform({2}, -1, 1, 8)},
                   [plain, activation](const V& x) {
                     return A::float_conv_transpose2d(x[0], x[1], &x[2], activation,
                                                      Shape{2, 2, 5, 4}, plain);
                   }});
  }
  const TensorData volume = uniform({1, 2, 4, 3, 3}, -1, 1, 27);
  const TensorData cubes = uniform({3, 2, 2, 2, 2}, -1, 1, 28);
  const TensorData from_volume = uniform({1, 3, 2, 3, 2}, -1, 1, 29);
  const kiln::Conv3dOptions alone{{1, 2, 1}, {1, 1, 0}, {1, 1, 1}, 2};
  const kiln::Conv3dOptions spread{{2, 1, 1}, {1, 1, 0}, {2, 2, 1}, 1};
  out.push_back({"float_conv3d", {volume, cubes, uniform({3}, -1, 1, 4)}, [spread](const V& x) {
                   return A::float_conv3d(x[0], x[1], &x[2], spread);
                 }});
  out.push_back({"float_conv3d",
                 {volume, uniform({4, 1, 2, 2, 2}, -1, 1, 30)},
                 [alone](const V& x) { return A::float_conv3d(x[0], x[1], nullptr, alone); }});
  out.push_back({"float_conv3d_input_grad", {cubes, from_volume}, [spread](const V& x) {
                   return A::float_conv3d_input_grad(x[0], x[1], Shape{1, 2, 4, 3, 3}, spread);
                 }});
  out.push_back({"float_conv3d_weight_grad", {volume, from_volume}, [spread](const V& x) {
                   return A::float_conv3d_weight_grad(x[0], x[1], Shape{3, 2, 2, 2, 2}, spread);
                 }});
  kiln::PoolOptions pool;
  pool.kernel = {3, 2};
  pool.stride = {2, 1};
  pool.padding = {1, 0};
  out.push_back({"float_max_pool2d", {image}, [pool](const V& x) {
                   return A::float_max_pool2d(x[0], pool).first;
                 }});
  out.push_back({"float_max_pool2d_values", {image}, [pool](const V& x) {
                   return A::float_max_pool2d_values(x[0], pool);
                 }});
  pool.count_include_pad = false;
  out.push_back({"float_avg_pool2d", {image}, [pool](const V& x) {
                   return A::float_avg_pool2d(x[0], pool);
                 }});
  const auto index = B::float_max_pool2d(B::float_from_data(image, device), pool).second;
  const TensorData pooled = uniform({2, 2, 3, 3}, -1, 1, 6);
  out.push_back({"float_max_pool2d_backward", {pooled}, [index, pool](const V& x) {
                   return A::float_max_pool2d_backward(x[0], index, Shape{2, 2, 5, 4}, pool);
                 }});
  out.push_back({"float_avg_pool2d_backward", {pooled}, [pool](const V& x) {
                   return A::float_avg_pool2d_backward(x[0], Shape{2, 2, 5, 4}, pool);
                 }});

  const TensorData batch = uniform({4, 3, 2}, -1, 1, 7);
  const TensorData gain = uniform({3}, 0.5, 1.5, 8);
  const TensorData bias = uniform({3}, -1, 1, 9);
  out.push_back({"float_batch_norm", {batch, gain, bias}, [](const V& x) {
                   return std::get<0>(A::float_batch_norm(x[0], &x[1], &x[2], 1e-3));
                 }});
  out.push_back({"float_batch_norm", {batch}, [](const V& x) {
                   return std::get<0>(A::float_batch_norm(x[0], nullptr, nullptr, 1e-3));
                 }});
  out.push_back({"float_batch_norm_inference",
                 {batch, bias, uniform({3}, 0.5, 1.5, 10), gain, bias},
                 [](const V& x) {
                   return A::float_batch_norm_inference(x[0], x[1], x[2], &x[3], &x[4], 1e-3);
                 }});
  const TensorData lines = uniform({3, 2, 4}, -1, 1, 11);
  const TensorData gain2 = uniform({2, 4}, 0.5, 1.5, 12);
  const TensorData bias2 = uniform({2, 4}, -1, 1, 13);
  out.push_back({"float_layer_norm", {lines, gain2, bias2}, [](const V& x) {
                   return std::get<0>(A::float_layer_norm(x[0], &x[1], &x[2], 2, 1e-3));
                 }});
  out.push_back({"float_layer_norm", {lines}, [](const V& x) {
                   return std::get<0>(A::float_layer_norm(x[0], nullptr, nullptr, 1, 1e-3));
                 }});

  const auto target =
      B::int_from_data(TensorData(std::vector<int64_t>{2, 0, -100, 4}, Shape{4}), device);
  for (const double smoothing : {0.0, 0.2}) {
    const kiln::CrossEntropyOptions options{-100, smoothing};
    out.push_back(
        {"float_cross_entropy", {uniform({4, 5}, -2, 2, 14)}, [target, options](const V& x) {
           return A::float_cross_entropy(x[0], target, options).first;
         }});
  }
  const auto classes =
      B::int_from_data(TensorData(std::vector<int64_t>{2, 0, -100, 4, 3, 1}, Shape{2, 3}), device);
  out.push_back({"float_nll_loss", {uniform({2, 5, 3}, -2, 2, 22)}, [classes](const V& x) {
                   return A::float_nll_loss(x[0], classes, nullptr, -100);
                 }});
  out.push_back({"float_nll_loss",
                 {uniform({2, 5, 3}, -2, 2, 23), uniform({5}, 0.5, 1.5, 24)},
                 [classes](const V& x) { return A::float_nll_loss(x[0], classes, &x[1], -100); }});
  out.push_back({"float_nll_loss_backward",
                 {uniform({2, 3}, -2, 2, 25), uniform({5}, 0.5, 1.5, 26)},
                 [classes](const V& x) {
                   return A::float_nll_loss_backward(x[0], classes, &x[1], 5, -100);
                 }});
  const auto ints = [device](const std::vector<int64_t>& x, const Shape& shape) {
    return B::int_from_data(TensorData(x, shape), device);
  };
  const auto labels = ints({1, 1, 2, 3, 1, 0}, {3, 2}), steps = ints({5, 4, 2}, {3});
  const auto lengths = ints({2, 2, 1}, {3});
  out.push_back(
      {"float_ctc_loss", {uniform({5, 3, 4}, -3, -0.5, 27)}, [labels, steps, lengths](const V& x) {
         return A::float_ctc_loss(x[0], labels, steps, lengths, 0);
       }});
  out.push_back({"float_ctc_loss_backward",
                 {uniform({3}, -2, 2, 28), uniform({5, 3, 4}, -3, -0.5, 29)},
                 [labels, steps, lengths](const V& x) {
                   return A::float_ctc_loss_backward(x[0], x[1], labels, steps, lengths, 0);
                 }});
  for (const bool softmax : {false, true}) {
    const auto some = ints({2, 1, 0, 3}, {2, 2}), all = ints({3, 2}, {2}),
               sizes = ints({2, 1}, {2});
    out.push_back({"float_rnnt_loss",
                   {uniform({2, 3, 3, 4}, -3, -0.5, 30)},
                   [some, all, sizes, softmax](const V& x) {
                     return A::float_rnnt_loss(x[0], some, all, sizes, 3, -1.0, softmax);
                   }});
    out.push_back({"float_rnnt_loss_backward",
                   {uniform({2}, -2, 2, 31), uniform({2, 3, 3, 4}, -3, -0.5, 32)},
                   [some, all, sizes, softmax](const V& x) {
                     return A::float_rnnt_loss_backward(x[0], x[1], some, all, sizes, 3, -1.0,
                                                        softmax);
                   }});
  }
  const auto bias_of_scores = B::float_from_data(uniform({3, 4}, -1, 1, 21), device);
  for (const kiln::AttentionOptions& options :
       {kiln::AttentionOptions{.scale = 0.7},
        kiln::AttentionOptions{.scale = 0.7, .causal = true, .dropout = 0.3, .stream = {3, 17}}}) {
    const std::vector<TensorData> qkv = {uniform({2, 4, 3, 2}, -1, 1, 18),
                                         uniform({2, 2, 4, 2}, -1, 1, 19),
                                         uniform({2, 2, 4, 3}, -1, 1, 20)};
    out.push_back({"float_attention", qkv, [bias_of_scores, options](const V& x) {
                     const T mask = A::from_inner(bias_of_scores);
                     return A::float_attention(x[0], x[1], x[2], &mask, options).first;
                   }});
    std::vector<TensorData> with_mask = qkv;
    with_mask.push_back(uniform({4, 1, 4}, -1, 1, 22));
    out.push_back({"float_attention", with_mask, [options](const V& x) {
                     return A::float_attention(x[0], x[1], x[2], &x[3], options).first;
                   }});
  }
  out.push_back({"float_dropout", {uniform({5, 7}, -1, 1, 15)}, [](const V& x) {
                   return A::float_dropout(x[0], 0.4, kiln::RandomStream{3, 17});
                 }});
  return out;
}

// Rows of the table whose gradient is not checked here, each with its reason.
inline std::set<std::string> ops_without_case() {
  return {// make tensors from nothing that has a gradient
          "float_from_data", "float_empty", "float_full", "float_random", "float_arange",
          // give no float tensor
          "float_into_data", "float_into_int", "float_into_bool", "float_equal", "float_not_equal",
          "float_greater", "float_greater_equal", "float_lower", "float_lower_equal",
          "float_equal_scalar", "float_not_equal_scalar", "float_greater_scalar",
          "float_greater_equal_scalar", "float_lower_scalar", "float_lower_equal_scalar",
          "float_is_nan", "float_is_inf", "float_argmax", "float_argmin", "float_quantize",
          "float_window_argmax", "float_argtopk", "float_argplace", "float_searchsorted",
          "float_cumarg",
          // write in place, unrecorded; see in_place.cpp
          "float_assign", "float_fill", "float_optimizer_step", "float_adamw_8bit",
          // checked through the op whose first and second derivative they compute
          "float_batch_norm_inference_backward", "float_group_norm_backward",
          "float_batch_norm_backward", "float_layer_norm_backward", "float_cross_entropy_backward",
          "float_attention_backward", "float_recurrence_backward"};
}

template <class B>
void check_all(kiln::Device device) {
  std::set<std::string> covered = ops_without_case();
  for (const auto& group :
       {elementwise_cases<B>(), function_cases<B>(), shape_cases<B>(device), reduction_cases<B>(),
        neural_cases<B>(device), norm_cases<B>(device), transform_cases<B>(), complex_cases<B>(),
        image_cases<B>(), recurrence_cases<B>()}) {
    for (const Case<B>& c : group) {
      covered.insert(c.op);
      Checker<B>(c, device).check();
    }
  }
  for (const kiln::OpInfo& op : kiln::op_table()) {
    if (op.kind != kiln::Kind::floating) continue;
    CHECK_MESSAGE(covered.contains(op.name), "no gradient case for ", std::string(op.name));
  }
}

}  // namespace gradcheck
