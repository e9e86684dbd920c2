// Reductions and products.
#include <algorithm>

#include "kiln/backend/conformance/cases.h"

namespace kiln::conformance {
namespace {

struct Reduction {
  Shape shape;
  Dims dims;
};

const Reduction kReductions[] = {{{}, {}},
                                 {{5}, {0}},
                                 {{1}, {0}},
                                 {{3, 4}, {}},
                                 {{3, 4}, {0}},
                                 {{3, 4}, {1}},
                                 {{3, 4}, {0, 1}},
                                 {{3, 4, 5}, {0}},
                                 {{3, 4, 5}, {1}},
                                 {{3, 4, 5}, {2}},
                                 {{3, 4, 5}, {0, 2}},
                                 {{3, 4, 5}, {1, 2}},
                                 {{3, 4, 5}, {0, 1, 2}},
                                 {{2, 3, 4, 5}, {1, 3}},
                                 {{0, 3}, {1}},
                                 {{2, 67}, {1}},
                                 {{67, 2}, {0}}};
// Those that reduce nothing to something.
const Reduction kEmpty[] = {{{0}, {0}}, {{3, 0}, {1}}, {{0, 4}, {0}}, {{2, 0, 3}, {0, 1}}};
const Reduction kLargeReductions[] = {{{130, 257}, {0}},  {{130, 257}, {1}},   {{130, 257}, {0, 1}},
                                      {{40001}, {0}},     {{2, 3, 7000}, {2}}, {{40000, 3}, {0}},
                                      {{50, 20, 40}, {1}}};

// The result's error grows with the terms: `scale` tells how large they are together.
struct ReduceOp {
  const char* op;
  bool takes_empty;
  Tolerance tolerance;
};

void add_reduction(CaseList& list, const ReduceOp& op, const Operand& x, const Dims& dims,
                   double extra = 1.0) {
  const Tolerance tolerance = {op.tolerance.relative * extra, op.tolerance.absolute * extra};
  for (bool keepdim : {false, true}) {
    Case& c = list.add(op.op, {x, dims, keepdim}, tolerance);
    c.elementwise = tolerance.relative == 0.0;
    c.expandable = true;
  }
}

void add_float_reductions(CaseList& list, DType dtype) {
  // A product of 67 numbers has 66 roundings of half a unit, in whatever order; where all are the
  // same number (an expanded operand), they do not cancel: 20 units between two orders were seen.
  // Of f32 and less the reference's own roundings do not count.
  const Tolerance product = {dtype == f64 ? 66.0 : 16.0, 0.0};
  const ReduceOp ops[] = {{"float_nansum", true, {8, 8}},   {"float_sum", true, {8, 8}},
                          {"float_mean", true, {8, 8}},     {"float_prod", true, product},
                          {"float_amax", false, {}},        {"float_amin", false, {}},
                          {"float_logsumexp", true, {8, 8}}};
  for (const ReduceOp& op : ops) {
    for (const Reduction& r : kReductions) {
      add_reduction(list, op, list.uniform(r.shape, dtype, -1.5, 1.5), r.dims);
    }
    for (const Reduction& r : kEmpty) {
      if (op.takes_empty) add_reduction(list, op, list.uniform(r.shape, dtype), r.dims);
    }
    const Operand odd =
        values({1, kNan, 2, kInf, 3, -kInf, -kInf, -kInf, 0, -0.0, kInf, -kInf}, {4, 3}, dtype);
    add_reduction(list, op, odd, {0});
    add_reduction(list, op, odd, {1});
    if (dtype != f32 || std::string_view(op.op) == "float_prod") continue;
    for (const Reduction& r : kLargeReductions) {
      // Sums of 40000 numbers of alternating sign stay within a few hundred.
      add_reduction(list, op, list.uniform(r.shape, dtype, -1.5, 1.5), r.dims, 100.0);
    }
  }
  for (const Reduction& r : kReductions) {
    for (double correction : {1.0, 0.0}) {
      Case& c =
          list.add("float_var", {list.uniform(r.shape, dtype), r.dims, correction, false}, {16, 4});
      c.elementwise = false;
      c.expandable = true;
    }
  }
  for (const Reduction& r : kEmpty) {
    list.add("float_var", {list.uniform(r.shape, dtype), r.dims, 1.0, true});
  }
  // Far from 0 a one-pass formula would cancel.
  list.add("float_var", {list.uniform({40}, dtype, 100.0, 101.0), Dims{0}, 1.0, false}, {16, 4})
      .elementwise = false;
  if (dtype == f32) {
    list.add("float_var", {list.uniform({40}, dtype, 10000.0, 10001.0), Dims{0}, 1.0, false},
             {100000, 4})
        .elementwise = false;
    for (const Reduction& r : kLargeReductions) {
      list.add("float_var", {list.uniform(r.shape, dtype), r.dims, 1.0, true}, {100, 4})
          .elementwise = false;
    }
  }
}

struct AlongDim {
  Shape shape;
  int dim;
};
const AlongDim kAlong[] = {{{5}, 0},        {{1}, 0},        {{3, 4}, 0},  {{3, 4}, 1},
                           {{3, 4, 5}, 1},  {{0, 3}, 1},     {{2, 67}, 1}, {{67, 2}, 0},
                           {{130, 257}, 0}, {{130, 257}, 1}, {{40001}, 0}};

void add_along(CaseList& list, const std::string& kind, DType dtype) {
  const bool floating = kind == "float";
  for (const auto& [shape, dim] : kAlong) {
    for (const std::string op : {"_argmax", "_argmin"}) {
      for (bool keepdim : {false, true}) {
        // Few distinct numbers: many ties, which go to the first.
        list.add(kind + op, {list.integers(shape, dtype, 0, 9), dim, keepdim}).expandable = true;
      }
    }
    for (bool descending : {false, true}) {
      // Ties keep their order; in the second case there are few.
      const std::string sort = floating ? "float_sort" : "int_argsort";
      list.add(sort, {list.integers(shape, dtype, 0, 9), dim, descending}).expandable = true;
      if (floating) list.add(sort, {list.uniform(shape, dtype), dim, descending});
    }
    const bool long_half = size_of(dtype) == 2 && shape[dim] > 200;
    if (floating && !long_half) {
      // One number expanded rounds the same way each time: n eps / 2 of the sum is possible.
      Case& c = list.add("float_cumsum", {list.uniform(shape, dtype, -1.5, 1.5), dim},
                         {shape[dim] > 200 ? 4000.0 : 8.0, shape[dim] > 200 ? 3000.0 : 16.0});
      c.elementwise = false;
      c.expandable = true;
    } else if (!floating) {
      list.add("int_cumsum", {list.integers(shape, dtype, 0, 9), dim}).expandable = true;
    }
  }
  if (dtype == DType::f32) list.add("float_sort", {list.uniform({200000}, dtype), 0, false});
  if (dtype == DType::i64)
    list.add("int_argsort", {list.integers({2, 70000}, dtype, -9, 9), 1, true});
  if (!floating) return;
  const Operand odd =
      values({1, kNan, 2, kInf, kNan, 3, -kInf, -kInf, -kInf, 0, -0.0, 0}, {4, 3}, dtype);
  for (int dim : {0, 1}) {
    list.add("float_argmax", {odd, dim, false});
    list.add("float_argmin", {odd, dim, false});
    list.add("float_sort", {odd, dim, false});
    list.add("float_sort", {odd, dim, true});
    list.add("float_cumsum", {odd, dim}, {2, 0});
  }
  list.add("float_cumsum", {list.uniform({3, 0}, dtype), 1});
}

void add_int_reductions(CaseList& list, DType dtype) {
  const ReduceOp ops[] = {{"int_sum", true, {}},
                          {"int_prod", true, {}},
                          {"int_amax", false, {}},
                          {"int_amin", false, {}}};
  for (const ReduceOp& op : ops) {
    for (const Reduction& r : kReductions) {
      add_reduction(list, op, list.integers(r.shape, dtype, 0, 100), r.dims);
    }
    for (const Reduction& r : kEmpty) {
      if (op.takes_empty) add_reduction(list, op, list.integers(r.shape, dtype, 0, 1), r.dims);
    }
    for (const Reduction& r : kLargeReductions) {
      add_reduction(list, op, list.integers(r.shape, dtype, 0, 100), r.dims);
    }
    add_reduction(list, op, int_values({lowest_of(dtype), highest_of(dtype), 3, 2}, dtype), {0});
  }
}

// A linear layer with each activation, with and without a residual.
void add_finished(CaseList& list, const std::vector<Argument>& linear, const Operand& residual,
                  Tolerance tolerance) {
  using enum Activation;
  tolerance.absolute += 8;  // the sum may cancel what is rounded before it
  for (const Activation activation :
       {none, relu, gelu, gelu_tanh, silu, tanh, sigmoid, relu6, hardswish, hardsigmoid}) {
    std::vector<Argument> arguments = linear;
    arguments.push_back(activation == relu || activation == silu ? Argument(Absent())
                                                                 : Argument(residual));
    arguments.push_back(activation);
    Case& c = list.add("float_linear_activation", arguments, tolerance);
    c.elementwise = false;
  }
}

}  // namespace

void add_reduce_cases(CaseList& list) {
  for (DType dtype : list.floats) {
    add_float_reductions(list, dtype);
    add_along(list, "float", dtype);
  }
  for (DType dtype : list.ints) {
    add_int_reductions(list, dtype);
    add_along(list, "int", dtype);
  }
  for (const bool every : {false, true}) {
    const auto add = [&](const Operand& x, const Dims& dims) {
      add_reduction(list, {every ? "bool_all" : "bool_any", true, {}}, x, dims);
      if (every) add_reduction(list, {"bool_count", true, {}}, x, dims);
    };
    for (const Reduction& r : kReductions) add(list.booleans(r.shape), r.dims);
    for (const Reduction& r : kEmpty) add(list.booleans(r.shape), r.dims);
    for (int value : {0, 1}) add(bool_values(std::vector<int>(12, value), {3, 4}), {1});
    add(list.booleans({130, 257}), {0});
    add(list.booleans({130, 257}), {0, 1});
  }
}

void add_product_cases(CaseList& list) {
  const std::pair<Shape, Shape> products[] = {
      {{1, 1}, {1, 1}},          {{2, 3}, {3, 4}},
      {{5, 1}, {1, 7}},          {{1, 9}, {9, 1}},
      {{0, 3}, {3, 4}},          {{2, 0}, {0, 4}},
      {{2, 3}, {3, 0}},          {{6, 2, 3}, {6, 3, 4}},
      {{2, 3}, {6, 3, 4}},       {{6, 2, 3}, {3, 4}},
      {{2, 1, 2, 3}, {5, 3, 4}}, {{0, 2, 3}, {3, 4}},
      {{17, 33}, {33, 19}},      {{1, 3, 2, 5}, {4, 1, 5, 2}}};
  const std::pair<Shape, Shape> large[] = {{{130, 140}, {140, 150}},
                                           {{1, 300}, {300, 400}},
                                           {{64, 2000}, {2000, 16}},
                                           {{24, 33, 40}, {24, 40, 31}}};
  for (DType dtype : list.floats) {
    const auto add = [&](const Shape& a, const Shape& b, double absolute) {
      Case& c =
          list.add("float_matmul", {list.uniform(a, dtype), list.uniform(b, dtype)}, {8, absolute});
      c.elementwise = false;
      c.expandable = true;
    };
    for (const auto& [a, b] : products) add(a, b, 32);
    if (dtype == f32 || dtype == f64) {
      for (const auto& [a, b] : large) add(a, b, 4000);
    }
    list.add("float_matmul",
             {values({1, kInf, 2, 3}, {2, 2}, dtype), values({1, 2, 1, kNan}, {2, 2}, dtype)},
             {8, 8});
    const std::pair<Shape, int64_t> linears[] = {{{3}, 4},    {{2, 3}, 4}, {{2, 5, 3}, 1},
                                                 {{0, 3}, 4}, {{2, 0}, 4}, {{64, 100}, 70}};
    for (const auto& [shape, out] : linears) {
      const Operand weight = list.uniform({out, shape.back()}, dtype);
      const Operand x = list.uniform(shape, dtype);
      for (const Argument& bias : {Argument(list.uniform(Shape{out}, dtype)), Argument(Absent())}) {
        const Tolerance tolerance{8, 8.0 * static_cast<double>(shape.back())};
        Case& c = list.add("float_linear", {x, weight, bias}, tolerance);
        c.elementwise = false;
        c.expandable = true;
        Shape result = shape;
        result.back() = out;
        add_finished(list, {x, weight, bias}, list.uniform(result, dtype), tolerance);
      }
    }
  }
  for (DType dtype : list.ints) {
    for (const auto& [a, b] : products) {
      list.add("int_matmul", {list.integers(a, dtype, 0, 20), list.integers(b, dtype, 0, 20)})
          .expandable = true;
    }
    list.add("int_matmul",
             {list.integers({65, 70}, dtype, 0, 20), list.integers({70, 75}, dtype, 0, 20)});
  }
}

}  // namespace kiln::conformance
