// The functions of functions.h.
#include <algorithm>

#include "kiln/backend/conformance/cases.h"

namespace kiln::conformance {
namespace {

const Shape kFunctionShapes[] = {{}, {0}, {1}, {3, 4, 5}, {67}};
const Shape kFunctionLarge = {130, 257};
const std::pair<Shape, Shape> kFunctionPairs[] = {
    {{}, {}},  {{3, 4}, {3, 4}}, {{3, 1}, {1, 4}}, {{2, 3, 4}, {4}},   {{4}, {2, 3, 4}},
    {{}, {5}}, {{0, 3}, {1, 3}}, {{67}, {67}},     {{2, 3, 4}, {3, 1}}};
const std::vector<double> kFunctionSpecials = {0.0,  -0.0,   1.0,  -1.0,  2.5,  -2.5,
                                               1e-3, -100.0, kInf, -kInf, kNan, 3.0};

struct UnaryRow {
  UnaryFunction f;
  double low, high;
  Tolerance tolerance;
};

void add_unary_function(CaseList& list, const UnaryRow& op, DType dtype) {
  for (const Shape& shape : kFunctionShapes) {
    list.add("float_unary", {list.uniform(shape, dtype, op.low, op.high), op.f}, op.tolerance)
        .expandable = true;
  }
  list.add("float_unary", {values(kFunctionSpecials, dtype), op.f}, op.tolerance);
  list.add("float_unary", {values({1e-2, -1e-2, 1e-4, -1e-4, 0.5, 0.999, 0.75}, dtype), op.f},
           op.tolerance);
  if (dtype == f32) {
    list.add("float_unary", {list.uniform(kFunctionLarge, dtype, op.low, op.high), op.f},
             op.tolerance);
    list.add("float_unary", {list.uniform({200}, dtype, -40.0, 40.0), op.f}, op.tolerance);
  }
}

struct BinaryRow {
  BinaryFunction f;
  double x_low, x_high, y_low, y_high;
  Tolerance tolerance;
};

void add_binary_function(CaseList& list, const BinaryRow& op, DType dtype) {
  const auto left = [&](const Shape& shape) {
    return list.uniform(shape, dtype, op.x_low, op.x_high);
  };
  const auto right = [&](const Shape& shape) {
    return list.uniform(shape, dtype, op.y_low, op.y_high);
  };
  for (const auto& [a, b] : kFunctionPairs) {
    list.add("float_binary", {left(a), right(b), op.f}, op.tolerance).expandable = true;
  }
  if (dtype == f32) {
    list.add("float_binary", {left(kFunctionLarge), right(kFunctionLarge), op.f}, op.tolerance);
    list.add("float_binary", {left({130, 1}), right(kFunctionLarge), op.f}, op.tolerance);
    list.add("float_binary", {left({40001}), right({}), op.f}, op.tolerance);
  }
  const auto n = static_cast<int64_t>(kFunctionSpecials.size());
  list.add(
      "float_binary",
      {values(kFunctionSpecials, {n, 1}, dtype), values(kFunctionSpecials, {1, n}, dtype), op.f},
      op.tolerance);
}

void add_ternary(CaseList& list, TernaryFunction f, Tolerance tolerance, DType dtype) {
  struct Shapes {
    Shape x, y, z;
  };
  const Shapes shapes[] = {{{}, {}, {}},     {{3, 4}, {3, 4}, {3, 4}}, {{3, 1}, {1, 4}, {}},
                           {{0}, {0}, {1}},  {{67}, {67}, {}},         {{4}, {2, 3, 4}, {3, 1}},
                           {{67}, {}, {67}}, {{}, {67}, {67}}};
  const auto draw = [&](const Shape& shape) { return list.uniform(shape, dtype, 0.25, 2.0); };
  for (const auto& [a, b, c] : shapes) {
    list.add("float_ternary", {draw(a), draw(b), draw(c), f}, tolerance).expandable = true;
  }
  const auto n = static_cast<int64_t>(kFunctionSpecials.size());
  list.add("float_ternary",
           {values(kFunctionSpecials, {n, 1, 1}, dtype), values(kFunctionSpecials, {n, 1}, dtype),
            values(kFunctionSpecials, dtype), f},
           tolerance);
  if (dtype == f32) {
    list.add("float_ternary", {draw(kFunctionLarge), draw(kFunctionLarge), draw(kFunctionLarge), f},
             tolerance);
    list.add("float_ternary", {draw(kFunctionLarge), draw({257}), draw({130, 1}), f}, tolerance);
  }
}

// Sums of numbers that are not negative, so that their errors stay small beside them.
void add_binary_sum(CaseList& list, const BinaryFunction& f, Tolerance tolerance, DType dtype) {
  const auto draw = [&](const Shape& shape) { return list.uniform(shape, dtype, 0.0, 2.0); };
  const auto add = [&](const Shape& x, const Shape& y, double divisor) {
    list.add("float_binary_sum", {draw(x), draw(y), f, divisor}, tolerance).elementwise = false;
  };
  for (const auto& [a, b] : kFunctionPairs) add(a, b, 1.0);
  add({3, 4}, {3, 4}, 12.0);
  if (dtype != f32) return;
  add(kFunctionLarge, kFunctionLarge, 33410.0);
  add({40001}, {40001}, 1.0);
  add({40001}, {}, 40001.0);
}

}  // namespace

void add_function_cases(CaseList& list) {
  using U = UnaryFunction::Type;
  const Tolerance close = {4.0, 0.0};
  const Tolerance near_zeros = {8.0, 4.0};
  const UnaryRow unaries[] = {{{U::exp2}, -10, 10, close},
                              {{U::erfc}, -3, 3, close},
                              {{U::erfcx}, -3, 3, close},
                              {{U::erfinv}, -1, 1, close},
                              {{U::lgamma}, -5, 10, near_zeros},
                              {{U::digamma}, -5, 10, near_zeros},
                              {{U::polygamma, 1.0}, -3, 10, near_zeros},
                              {{U::polygamma, 4.0}, 0.2, 10, near_zeros},
                              {{U::ndtr}, -5, 5, close},
                              {{U::ndtri}, 0, 1, {4, 1}},
                              {{U::log_ndtr}, -20, 5, close},
                              {{U::entr}, 0, 3, {4, 1}},
                              {{U::sinc}, -3, 3, {4, 1}},
                              {{U::sinc, 2.0}, -3, 3, {4, 4}},
                              {{U::frac}, -9, 9, {}},
                              {{U::logit, -1.0}, 0, 1, {4, 1}},
                              {{U::logit, 0.25}, -1, 2, {4, 1}},
                              {{U::nan_to_num, 1.5, 7.0, -8.0}, -2, 2, {}},
                              {{U::bessel_i0}, -12, 12, close},
                              {{U::bessel_i0e}, -12, 12, close},
                              {{U::bessel_i1}, -12, 12, close},
                              {{U::bessel_i1e}, -12, 12, close},
                              {{U::bessel_j0}, -12, 12, {4, 4}},
                              {{U::bessel_j1}, -12, 12, {4, 4}},
                              {{U::bessel_j_over, 1.0}, -12, 12, {4, 4}},
                              {{U::bessel_j_over, 3.0}, -12, 12, {4, 4}},
                              {{U::bessel_i_over, 1.0}, -12, 12, close},
                              {{U::bessel_i_over, 2.0, 1.0}, -12, 12, close},
                              {{U::bessel_y0}, 0.1, 12, {4, 4}},
                              {{U::bessel_y1}, 0.1, 12, {4, 4}},
                              {{U::bessel_k0}, 0.1, 12, close},
                              {{U::bessel_k1}, 0.1, 12, close},
                              {{U::bessel_k0e}, 0.1, 12, close},
                              {{U::bessel_k1e}, 0.1, 12, close},
                              {{U::airy_ai}, -5, 5, {8, 4}},
                              {{U::softplus, 2.0, 3.0}, -5, 5, close},
                              {{U::softplus, 1.0, 20.0}, -30, 30, close},
                              {{U::log_sigmoid}, -5, 5, close},
                              {{U::frexp_mantissa}, -50, 50, {}},
                              {{U::frexp_exponent}, -50, 50, {}},
                              {{U::leaky_relu, 0.25}, -2, 2, close},
                              {{U::leaky_relu, -1.5}, -2, 2, close},
                              {{U::threshold, 0.5, -1.0}, -2, 2, {}},
                              {{U::hardtanh, -1.0, 0.5}, -2, 2, {}},
                              {{U::hardshrink, 0.5}, -2, 2, {}},
                              {{U::softshrink, 0.5}, -2, 2, close},
                              {{U::hardsigmoid}, -5, 5, close},
                              {{U::hardswish}, -5, 5, close},
                              {{U::elu, 1.5, 1.0, 1.0}, -5, 5, close},
                              {{U::elu, 0.75, 1.25, 2.0}, -5, 5, {8, 0}}};
  // Those that need no numbers and no tolerance of their own: their rows in functions.def say all.
  std::vector<UnaryRow> others;
  const auto add_other = [&](U type, double low, double high) {
    const auto is_same = [&](const UnaryRow& op) { return op.f.type == type; };
    if (std::none_of(std::begin(unaries), std::end(unaries), is_same)) {
      others.push_back({{type}, low, high, {4, 1}});
    }
  };
#define KILN_HOME_tensor(type, doc, name, low, high) add_other(U::type, low, high);
#define KILN_HOME_special(type, doc, name, low, high, ...) add_other(U::type, low, high);
#include "kiln/backend/functions.def"
  using enum BinaryFunction::Type;
  const BinaryRow binaries[] = {
      {BinaryFunction::Type::fmod, -5, 5, 0.5, 2, {}},
      {floor_divide, -5, 5, 0.5, 2, {}},
      {trunc_divide, -5, 5, 0.5, 2, {}},
      {BinaryFunction::Type::hypot, -2, 2, -2, 2, close},
      {BinaryFunction::Type::copysign, -2, 2, -2, 2, {}},
      {BinaryFunction::Type::nextafter, -2, 2, -2, 2, {}},
      {BinaryFunction::Type::fmax, -2, 2, -2, 2, {}},
      {BinaryFunction::Type::fmin, -2, 2, -2, 2, {}},
      {heaviside, -2, 2, -2, 2, {}},
      {xlogy, -2, 2, 0.1, 4, {4, 4}},
      {xlog1py, -2, 2, -0.9, 4, {4, 4}},
      {logaddexp, -5, 5, -5, 5, {4, 2}},
      {logaddexp2, -5, 5, -5, 5, {4, 2}},
      {zeta, 1.1, 6, 0.2, 6, close},
      {gammainc, 0.2, 12, 0, 12, {8, 1}},
      {gammaincc, 0.2, 12, 0, 12, {8, 1}},
      {{polynomial, 0.0}, -1, 1, -1, 7, {16, 8}},
      {{polynomial, 4.0, 1.0}, -1, 1, -1, 7, {16, 8}},
      {{polynomial, 7.0, 2.0}, -1, 1, -1, 7, {16, 8}},
      {prelu, -2, 2, -0.5, 0.5, close},
      {glu, -2, 2, -5, 5, {4, 1}},  // a subnormal sigmoid has few digits
      {{huber, 0.5, 1.0}, -2, 2, -2, 2, close},
      {{huber, 0.5, 0.75}, -2, 2, -2, 2, {8, 0}},
      {bce_with_logits, -8, 8, 0, 1, {4, 8}},
      {squared_difference, -2, 2, -2, 2, close},
      {absolute_difference, -2, 2, -2, 2, kRounded},
      {{leaky_relu_backward, 0.25}, -2, 2, -2, 2, close},
      {{threshold_backward, 0.5}, -2, 2, -2, 2, {}},
      {{hardtanh_backward, -1.0, 0.5, 1.0}, -2, 2, -2, 2, {}},
      {{hardtanh_backward, -3.0, 3.0, 1.0 / 6.0}, -2, 2, -5, 5, close},
      {{shrink_backward, 0.5}, -2, 2, -2, 2, {}},
      {hardswish_backward, -2, 2, -5, 5, {4, 4}},
      // e^-80 of the special -100: e^-125 would be 0 in f32, times infinity NaN.
      {{elu_backward, 0.75, 0.8, 2.0}, -2, 2, -5, 5, {8, 0}},
      {{softplus_backward, 0.5, 2.0}, -2, 2, -5, 6, close},
      {{softplus_backward, -1.0, kInf}, -2, 2, -50, 50, close},
      {prelu_weight_backward, -2, 2, -2, 2, close}};
  for (DType dtype : list.floats) {
    for (const UnaryRow& op : unaries) add_unary_function(list, op, dtype);
    for (const UnaryRow& op : others) add_unary_function(list, op, dtype);
    for (BinaryRow op : binaries) {
      // The exponent a log x - x - lgamma(a) is up to 30, whose last bit is that many of the
      // result's: in 64 bits the reference itself is off the true values by twice {8, 1}.
      const bool is_gamma = op.f.type == gammainc || op.f.type == gammaincc;
      if (is_gamma && dtype == f64) op.tolerance = {40, 5};
      add_binary_function(list, op, dtype);
    }
    for (const BinaryFunction& f :
         {BinaryFunction(huber, 0.5, 0.75), BinaryFunction(bce_with_logits),
          BinaryFunction(squared_difference), BinaryFunction(absolute_difference)}) {
      add_binary_sum(list, f, {8, 8}, dtype);
    }
    using W = TernaryFunction::Type;
    add_ternary(list, {W::lerp}, {4, 8}, dtype);
    add_ternary(list, {W::addcmul, -0.5}, {4, 8}, dtype);
    add_ternary(list, {W::addcdiv, 2.0}, {4, 8}, dtype);
    add_ternary(list, {W::clamp}, {}, dtype);
    add_ternary(list, {W::prelu_backward}, {4, 0}, dtype);
    add_ternary(list, {W::glu_backward}, {8, 1}, dtype);
    add_ternary(list, {W::huber_backward, 0.5, 0.75}, {8, 0}, dtype);
    add_ternary(list, {W::bce_with_logits_backward}, {4, 8}, dtype);
  }
  for (DType dtype : list.ints) {
    for (int i = 0; i < static_cast<int>(IntFunction::count); ++i) {
      const auto f = static_cast<IntFunction>(i);
      for (const auto& [a, b] : kFunctionPairs) {
        list.add("int_binary", {list.integers(a, dtype, 0, 100), list.integers(b, dtype, 1, 9), f})
            .expandable = true;
      }
      list.add("int_binary", {list.integers(kFunctionLarge, dtype, 0, 100),
                              list.integers(kFunctionLarge, dtype, 1, 9), f});
      const std::vector<int64_t> edges = {0,
                                          1,
                                          2,
                                          3,
                                          lowest_of(dtype),
                                          lowest_of(dtype) + 1,
                                          highest_of(dtype),
                                          highest_of(dtype) - 1,
                                          77};
      std::vector<int64_t> others = {1, 2, 7, 63, 64, highest_of(dtype), 8, 31, 5};
      if (dtype != u8) {
        others[6] = -1;
        others[7] = lowest_of(dtype);
        others[8] = -5;
      }
      list.add("int_binary",
               {int_values(edges, {9, 1}, dtype), int_values(others, {1, 9}, dtype), f});
    }
    // Division by zero is a ValueError on every backend.
    for (IntFunction f : {IntFunction::fmod, IntFunction::floor_divide}) {
      list.add("int_binary", {int_values({1, 2, 3}, dtype), int_values({1, 0, 1}, dtype), f});
    }
  }
}

}  // namespace kiln::conformance
