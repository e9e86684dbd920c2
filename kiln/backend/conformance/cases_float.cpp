// Elementwise float arithmetic, unary math and comparison.
#include "kiln/backend/conformance/cases.h"

namespace kiln::conformance {
namespace {

// Sizes around the vector widths, and one that spans several pieces of a parallel loop.
const Shape kFloatShapes[] = {{}, {0}, {1}, {3, 4, 5}, {67}};
const Shape kLarge = {130, 257};

// Two shapes that broadcast.
const std::pair<Shape, Shape> kPairs[] = {
    {{}, {}},         {{3, 4}, {3, 4}},    {{3, 1}, {1, 4}},
    {{2, 3, 4}, {4}}, {{4}, {2, 3, 4}},    {{}, {5}},
    {{5}, {}},        {{0, 3}, {1, 3}},    {{2, 1, 4}, {3, 1}},
    {{67}, {67}},     {{2, 3, 4}, {3, 1}}, {{1, 1}, {0}}};

const std::vector<double> kSpecials = {0.0,  -0.0,   1.0,  -1.0,  2.5,  -2.5,
                                       1e-3, -100.0, kInf, -kInf, kNan, 3.0};

struct Binary {
  const char* op;
  double low, high;  // where the second operand is drawn from; the first is from [-2, 2)
  Tolerance tolerance;
};

void add_binary(CaseList& list, const Binary& op, DType dtype) {
  const double first_low = std::string_view(op.op) == "float_pow" ? 0.1 : -2.0;
  const auto left = [&](const Shape& shape) { return list.uniform(shape, dtype, first_low, 2.0); };
  const auto right = [&](const Shape& shape) {
    return list.uniform(shape, dtype, op.low, op.high);
  };
  for (const auto& [a, b] : kPairs) {
    list.add(op.op, {left(a), right(b)}, op.tolerance).expandable = true;
  }
  if (dtype == f32) {
    list.add(op.op, {left(kLarge), right(kLarge)}, op.tolerance);
    list.add(op.op, {left(kLarge), right({257})}, op.tolerance);
    list.add(op.op, {left({130, 1}), right(kLarge)}, op.tolerance);
    list.add(op.op, {left({40001}), right({})}, op.tolerance);
  }
  const auto n = static_cast<int64_t>(kSpecials.size());
  list.add(op.op, {values(kSpecials, {n, 1}, dtype), values(kSpecials, {1, n}, dtype)},
           op.tolerance);
}

struct ScalarOp {
  const char* op;
  std::vector<double> scalars;
  Tolerance tolerance;
};

void add_scalar(CaseList& list, const ScalarOp& op, DType dtype) {
  for (double scalar : op.scalars) {
    for (const Shape& shape : kFloatShapes) {
      list.add(op.op, {list.uniform(shape, dtype, 0.1, 3.0), Scalar(scalar)}, op.tolerance)
          .expandable = true;
    }
    list.add(op.op, {values(kSpecials, dtype), Scalar(scalar)}, op.tolerance);
  }
  list.add(op.op, {list.uniform({5}, dtype, 0.5, 3.0), Scalar(2)}, op.tolerance);
  if (dtype == f32) {
    list.add(op.op, {list.uniform(kLarge, dtype, 0.1, 3.0), Scalar(op.scalars[0])}, op.tolerance);
  }
}

struct Unary {
  const char* op;
  double low, high;
  Tolerance tolerance;
};

void add_unary(CaseList& list, const Unary& op, DType dtype) {
  for (const Shape& shape : kFloatShapes) {
    list.add(op.op, {list.uniform(shape, dtype, op.low, op.high)}, op.tolerance).expandable = true;
  }
  list.add(op.op, {values(kSpecials, dtype)}, op.tolerance);
  // Small arguments: relative accuracy near 0, where 1 + x would lose it.
  list.add(op.op, {values({1e-2, -1e-2, 1e-4, -1e-4, 3e-4, 6e-4, -6e-4}, dtype)}, op.tolerance);
  list.add(op.op, {list.uniform({40}, dtype, 10.0, 60.0)}, op.tolerance);
  if (dtype == f32) list.add(op.op, {list.uniform(kLarge, dtype, op.low, op.high)}, op.tolerance);
}

}  // namespace

void add_float_cases(CaseList& list) {
  const Tolerance close = {4.0, 0.0};
  const Tolerance power = {16.0, 0.0};
  const Binary binaries[] = {
      {"float_add", -2, 2, kRounded},      {"float_sub", -2, 2, kRounded},
      {"float_mul", -2, 2, kRounded},      {"float_div", 0.5, 2, kRounded},
      {"float_remainder", 0.5, 2, {2, 1}}, {"float_pow", -3, 3, power},
      {"float_atan2", -2, 2, close},       {"float_maximum", -2, 2, {}},
      {"float_minimum", -2, 2, {}},
  };
  const ScalarOp scalars[] = {
      {"float_add_scalar", {0.5, -2, kInf}, kRounded},
      {"float_mul_scalar", {-0.5, 3, 0, kInf}, kRounded},
      // A backend may multiply by the reciprocal.
      {"float_div_scalar", {3, -0.5, 0, kInf}, {2, 0}},
      {"float_remainder_scalar", {0.5, -2, kInf}, {2, 1}},
      {"float_pow_scalar", {2, 3, -1, 0.5, 0, -0.5, 1, 2.5}, power},
      {"float_rsub_scalar", {0.5, -2, kInf}, kRounded},
      {"float_rdiv_scalar", {1, -2.5, 0}, kRounded},
  };
  const Unary unaries[] = {
      {"float_neg", -2, 2, {}},          {"float_abs", -2, 2, {}},
      {"float_sign", -2, 2, {}},         {"float_square", -2, 2, kRounded},
      {"float_sqrt", 0, 4, kRounded},    {"float_rsqrt", 0.1, 4, close},
      {"float_recip", 0.5, 4, {2, 0}},   {"float_exp", -10, 10, close},
      {"float_expm1", -5, 5, close},     {"float_log", 0.01, 10, {4, 1}},
      {"float_log1p", -0.9, 10, close},  {"float_log2", 0.01, 10, {4, 2}},
      {"float_log10", 0.01, 10, {4, 2}}, {"float_sin", -10, 10, {4, 1}},
      {"float_cos", -10, 10, {4, 1}},    {"float_tan", -10, 10, {8, 1}},
      {"float_asin", -1, 1, close},      {"float_acos", -1, 1, {4, 1}},
      {"float_atan", -5, 5, close},      {"float_sinh", -5, 5, close},
      {"float_cosh", -5, 5, close},      {"float_tanh", -5, 5, close},
      {"float_asinh", -5, 5, close},     {"float_acosh", 1, 10, {8, 1}},
      {"float_atanh", -0.9, 0.9, close}, {"float_erf", -3, 3, close},
      {"float_floor", -9, 9, {}},        {"float_ceil", -9, 9, {}},
      {"float_round", -9, 9, {}},        {"float_trunc", -9, 9, {}},
      {"float_is_nan", -2, 2, {}},       {"float_is_inf", -2, 2, {}},
  };
  for (DType dtype : list.floats) {
    for (const Binary& op : binaries) add_binary(list, op, dtype);
    for (const ScalarOp& op : scalars) add_scalar(list, op, dtype);
    for (const Unary& op : unaries) add_unary(list, op, dtype);
    const Operand halves = values({-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, -0.25, 7.0}, dtype);
    for (const char* op : {"float_round", "float_floor", "float_ceil", "float_trunc"}) {
      list.add(op, {halves});
    }
    for (const auto& [low, high] : {std::pair{-1.0, 1.0}, {-kInf, 0.5}, {0.0, kInf}, {2.0, -2.0}}) {
      list.add("float_clamp", {list.uniform({3, 4}, dtype), low, high}).expandable = true;
      list.add("float_clamp", {values(kSpecials, dtype), low, high});
      list.add("float_clamp", {list.uniform({}, dtype), low, high});
      list.add("float_clamp", {list.uniform({0}, dtype), low, high});
      if (dtype == f32) list.add("float_clamp", {list.uniform(kLarge, dtype), low, high});
    }
  }
}

void add_compare_cases(CaseList& list) {
  const auto n = static_cast<int64_t>(kSpecials.size());
  for (const char* name :
       {"equal", "not_equal", "greater", "greater_equal", "lower", "lower_equal"}) {
    const std::string tensor_op = std::string("float_") + name;
    const std::string scalar_op = tensor_op + "_scalar";
    const std::string int_op = std::string("int_") + name;
    const std::string int_scalar_op = int_op + "_scalar";
    for (DType dtype : list.floats) {
      for (const auto& [a, b] : kPairs) {
        // Few distinct numbers, so that many are equal.
        list.add(tensor_op, {list.integers(a, dtype, -2, 2), list.integers(b, dtype, -2, 2)})
            .expandable = true;
      }
      list.add(tensor_op, {values(kSpecials, {n, 1}, dtype), values(kSpecials, {1, n}, dtype)});
      for (double scalar : {0.0, 1.0, kInf, kNan}) {
        list.add(scalar_op, {values(kSpecials, dtype), Scalar(scalar)});
        list.add(scalar_op, {list.integers({3, 4}, dtype, -2, 2), Scalar(scalar)}).expandable =
            true;
      }
      list.add(scalar_op, {values({0.1, 0.2, 0.3}, dtype), Scalar(0.1)});  // rounds to the dtype
      list.add(scalar_op, {list.integers({0}, dtype, 0, 1), Scalar(1)});
      list.add(tensor_op,
               {list.integers(kLarge, dtype, -2, 2), list.integers({257}, dtype, -2, 2)});
      list.add(scalar_op, {list.integers(kLarge, dtype, -2, 2), Scalar(1)});
    }
    for (DType dtype : list.ints) {
      for (const auto& [a, b] : kPairs) {
        list.add(int_op, {list.integers(a, dtype, 0, 3), list.integers(b, dtype, 0, 3)})
            .expandable = true;
      }
      const Operand edge = int_values({0, 1, lowest_of(dtype), highest_of(dtype)}, dtype);
      list.add(int_op,
               {edge, int_values({0, 1, lowest_of(dtype), highest_of(dtype)}, {4, 1}, dtype)});
      for (int64_t scalar : {int64_t{0}, int64_t{1}, lowest_of(dtype), highest_of(dtype)}) {
        list.add(int_scalar_op, {edge, Scalar(scalar)}).expandable = true;
        list.add(int_scalar_op, {list.integers({}, dtype, 0, 3), Scalar(scalar)});
      }
      // Scalars beyond the dtype's range compare as the numbers they are.
      if (dtype != i64) {
        list.add(int_scalar_op, {edge, Scalar(highest_of(dtype) + 1)});
        list.add(int_scalar_op, {edge, Scalar(lowest_of(dtype) - 1)});
      }
      list.add(int_op, {list.integers(kLarge, dtype, 0, 3), list.integers(kLarge, dtype, 0, 3)});
      list.add(int_scalar_op, {list.integers(kLarge, dtype, 0, 3), Scalar(1)});
    }
  }
}

}  // namespace kiln::conformance
