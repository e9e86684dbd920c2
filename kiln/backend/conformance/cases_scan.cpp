// Running results, scattered reductions, norms.
#include <string>

#include "kiln/backend/conformance/cases.h"

namespace kiln::conformance {
namespace {

struct ScanAlong {
  Shape shape;
  int dim;
};
const ScanAlong kScans[] = {{{5}, 0},       {{1}, 0},       {{3, 4}, 0},   {{3, 4}, 1},
                            {{3, 4, 5}, 1}, {{0, 3}, 1},    {{0, 3}, 0},   {{2, 67}, 1},
                            {{67, 2}, 0},   {{130, 60}, 0}, {{60, 130}, 1}};

// Results depend on all elements before them: not element by element.
void add_rounded(CaseList& list, const std::string& op, std::vector<Argument> arguments,
                 Tolerance tolerance) {
  Case& c = list.add(op, std::move(arguments), tolerance);
  c.elementwise = false;
  c.expandable = true;
}

void add_float_scans(CaseList& list, DType dtype) {
  for (const auto& [shape, dim] : kScans) {
    add_rounded(list, "float_cumprod", {list.uniform(shape, dtype, 0.7, 1.4), dim}, {300, 0});
    add_rounded(list, "float_logcumsumexp", {list.uniform(shape, dtype, -3, 3), dim}, {16, 16});
    for (const bool flag : {false, true}) {
      add_rounded(list, "float_linear_scan",
                  {list.uniform(shape, dtype, -1, 1), list.uniform(shape, dtype, -1, 1), dim, flag},
                  {32, 32});
      list.add("float_cumarg", {list.integers(shape, dtype, 0, 9), dim, flag}).expandable = true;
    }
  }
  const Operand odd =
      values({1, kNan, 2, kInf, kNan, 3, -kInf, -kInf, -kInf, 0, -0.0, 0}, {4, 3}, dtype);
  for (const int dim : {0, 1}) {
    list.add("float_cumprod", {odd, dim}, {2, 0});
    list.add("float_logcumsumexp", {odd, dim}, {4, 4});
    list.add("float_cumarg", {odd, dim, true});
    list.add("float_cumarg", {odd, dim, false});
  }
  if (dtype != f32 && dtype != f64) return;
  add_rounded(list, "float_cumprod", {list.uniform({40001}, dtype, 0.999, 1.001), 0}, {20000, 0});
  add_rounded(list, "float_logcumsumexp", {list.uniform({40001}, dtype, -3, 3), 0}, {300, 300});
  add_rounded(list, "float_linear_scan",
              {list.uniform({40001}, dtype, -1, 1), list.uniform({40001}, dtype, -1, 1), 0, true},
              {300, 300});
  list.add("float_cumarg", {list.uniform({200, 300}, dtype), 1, true});
}

void add_norms(CaseList& list, DType dtype) {
  const std::pair<Shape, Dims> places[] = {
      {{5}, {0}},     {{3, 4}, {0}},    {{3, 4}, {1}},    {{3, 4}, {0, 1}}, {{3, 4, 5}, {0, 2}},
      {{67, 2}, {0}}, {{130, 90}, {1}}, {{130, 90}, {0}}, {{40001}, {0}},   {{40, 1001}, {0, 1}}};
  const Operand odd =
      values({1, kNan, 2, kInf, 3, -kInf, -kInf, -kInf, 0, -0.0, 0, -1}, {4, 3}, dtype);
  for (const double p : {2.0, 1.0, 0.0, kInf, -kInf, 3.0, 0.5, -1.0}) {
    for (const auto& [shape, dims] : places) {
      // Powers leave the range of 16-bit floats.
      if (shape.numel() > 100 && (size_of(dtype) == 2 || p == 0.5)) continue;
      add_rounded(list, "float_norm",
                  {list.uniform(shape, dtype, -1.5, 1.5), p, dims, shape.rank() == 2},
                  {shape.numel() > 1000 ? 20000.0 : 64.0, 0});
    }
    list.add("float_norm", {odd, p, Dims{0}, false}, {64, 0}).elementwise = false;
    list.add("float_norm", {odd, p, Dims{1}, false}, {64, 0}).elementwise = false;
  }
  for (const double p : {2.0, 1.0, 0.0, 3.0}) {
    list.add("float_norm", {list.uniform({3, 0}, dtype), p, Dims{1}, false});
  }
}

void add_scattered(CaseList& list, const std::string& kind, DType dtype) {
  const auto index = [&](const Shape& shape, int64_t size) {
    return list.integers(shape, i64, 0, size - 1);
  };
  const auto x = [&](const Shape& shape) {
    return kind == "int" ? list.integers(shape, dtype, 0, 100)
                         : list.uniform(shape, dtype, 0.5, 1.5);
  };
  using enum ScatterReduction;
  for (const ScatterReduction reduction : {prod, amax, amin}) {
    const auto add = [&](const Shape& to, int dim, const Operand& at, const Operand& src) {
      const Tolerance tolerance = {reduction == prod && kind == "float" ? 300.0 : 0.0, 0};
      Case& c = list.add(kind + "_scatter_reduce", {x(to), dim, at, src, reduction}, tolerance);
      c.elementwise = tolerance.relative == 0.0;
    };
    add({4, 5}, 0, index({9, 5}, 4), x({9, 5}));
    add({4, 5}, 1, index({3, 7}, 5), x({3, 7}));
    add({2, 3, 4}, 1, index({2, 2, 4}, 3), x({2, 2, 4}));
    add({50}, 0, index({400}, 50), x({400}));
    add({300, 64}, 0, index({200, 64}, 300), x({200, 64}));
    add({3, 64}, 1, index({3, 0}, 64), x({3, 0}));
    add({3}, 0, int_values({0, 3}), x({2}));  // IndexError
    if (kind == "float") {
      list.add("float_scatter_reduce",
               {values({1, kNan, 2}, {3}, dtype), 0, int_values({0, 1, 2, 2}),
                values({kNan, 5, kInf, -kInf}, {4}, dtype), reduction});
    }
  }
}

void add_index_copies(CaseList& list, const std::string& kind, DType dtype) {
  const auto x = [&](const Shape& shape) {
    return dtype == bool_ ? list.booleans(shape) : list.uniform(shape, dtype, 0, 100);
  };
  const std::string op = kind + "_index_copy";
  list.add(op, {x({4, 5}), 0, int_values({2, 0}), x({2, 5})});
  list.add(op, {x({4, 5}), 0, int_values({2, 2, 1}), x({3, 5})});  // the last one stays
  list.add(op, {x({4, 5}), 1, int_values({4, 1, 0}), x({4, 3})});
  list.add(op, {x({2, 3, 4}), 1, int_values({2, 0}), x({2, 2, 4})});
  list.add(op, {x({6}), 0, int_values({}), x({0})});
  list.add(op, {x({1000, 64}), 0, list.integers({900}, i64, 0, 999), x({900, 64})});
  list.add(op, {x({9000}), 0, list.integers({8000}, i64, 0, 8999), x({8000})});
  list.add(op, {x({4, 5}), 0, int_values({4}), x({1, 5})});   // IndexError
  list.add(op, {x({4, 5}), 1, int_values({-1}), x({4, 1})});  // IndexError
}

}  // namespace

void add_scan_cases(CaseList& list) {
  for (const DType dtype : list.floats) {
    add_float_scans(list, dtype);
    add_norms(list, dtype);
    add_scattered(list, "float", dtype);
    add_index_copies(list, "float", dtype);
  }
  for (const DType dtype : list.ints) {
    for (const auto& [shape, dim] : kScans) {
      list.add("int_cumprod", {list.integers(shape, dtype, 0, 5), dim}).expandable = true;
      for (const bool largest : {false, true}) {
        list.add("int_cumarg", {list.integers(shape, dtype, 0, 9), dim, largest}).expandable = true;
      }
    }
    add_scattered(list, "int", dtype);
    add_index_copies(list, "int", dtype);
  }
  add_index_copies(list, "bool", bool_);
  for (const Shape& shape : {Shape{}, Shape{7}, Shape{3, 4}, Shape{0, 3}, Shape{2, 3, 4},
                             Shape{70000}, Shape{300, 200}, Shape{30, 40, 50}}) {
    list.add("bool_nonzero", {list.booleans(shape)}).expandable = true;
  }
  list.add("bool_nonzero", {bool_values(std::vector<int>(6, 0), {2, 3})});
}

}  // namespace kiln::conformance
