// Complex numbers.
#include "kiln/backend/conformance/cases.h"

namespace kiln::conformance {
namespace {

// Sums of two products, which may cancel.
constexpr Tolerance kClose = {16, 32};

void add_arithmetic(CaseList& list, DType dtype) {
  // Shapes of parts: equal, broadcast both ways, one number, none, many.
  std::vector<std::pair<Shape, Shape>> forms = {
      {{2}, {2}},       {{5, 2}, {5, 2}}, {{3, 4, 2}, {4, 2}}, {{3, 1, 2}, {1, 4, 2}},
      {{3, 4, 2}, {2}}, {{2}, {7, 2}},    {{0, 2}, {0, 2}}};
  if (dtype == f32) forms.push_back({{9000, 5, 2}, {9000, 5, 2}});
  for (const auto& form : forms) {
    const Shape& x = form.first;
    const Shape& y = form.second;
    const auto add = [&](const char* op, std::vector<Argument> arguments, Tolerance tolerance) {
      Case& c = list.add(op, std::move(arguments), tolerance);
      c.elementwise = false;  // pairs of elements are one number
      c.expandable = x == y;
    };
    for (const bool conjugate : {false, true}) {
      add("float_complex_mul", {list.uniform(x, dtype), list.uniform(y, dtype), conjugate}, kClose);
    }
    add("float_complex_div", {list.uniform(x, dtype), list.uniform(y, dtype, 0.5, 2.0)}, kClose);
    add("float_complex_pow", {list.uniform(x, dtype, 0.2, 2.0), list.uniform(y, dtype)}, {64, 256});
  }
  // Divisors whose squares overflow, and those of which one part is 0.
  const double huge = dtype == f32 ? 1e30 : 1e300;
  const Operand numbers = values({1, 2, huge, huge, -3, 1}, {3, 2}, dtype);
  list.add("float_complex_div", {numbers, values({0, 2, huge, -huge, -2, 0}, {3, 2}, dtype)},
           kClose)
      .elementwise = false;
  list.add("float_complex_abs",
           {values({huge, huge, 0, 0, -3, 4, kInf, kNan, 0, kNan}, {5, 2}, dtype)}, {4, 0})
      .elementwise = false;
  const Operand bases = values({0, 0, 0, 0, 2, 1}, {3, 2}, dtype);
  list.add("float_complex_pow", {bases, values({0, 0, 2, 0, 0, 0}, {3, 2}, dtype)}, kClose)
      .elementwise = false;
  // Those that are products.
  for (const double exponent : {1.0, 2.0, 3.0, -1.0, -2.0}) {
    list.add("float_complex_pow",
             {list.uniform({6, 2}, dtype, 0.5, 2.0), values({exponent, 0}, {2}, dtype)}, {64, 64})
        .elementwise = false;
  }
}

void add_functions(CaseList& list, DType dtype) {
  const auto count = static_cast<int>(ComplexFunction::count);
  for (int i = 0; i < count; ++i) {
    const auto function = static_cast<ComplexFunction>(i);
    std::vector<Shape> shapes = {{2}, {3, 4, 2}, {0, 2}, {67, 2}};
    if (dtype == f32) shapes.push_back({3000, 2});
    for (const Shape& shape : shapes) {
      // Near -1 the logarithm's argument is all cancellation.
      const double low = function == ComplexFunction::log1p ? -0.7 : -2.0;
      Case& c =
          list.add("float_complex_unary", {list.uniform(shape, dtype, low), function}, {64, 128});
      c.elementwise = false;
      c.expandable = true;
    }
  }
  // On the axes, to either side.
  const Operand axes = values({0.5, 0, -0.5, 0, 0, 0.5, 0, -0.5, 3, 0, 0, 3}, {6, 2}, dtype);
  for (const ComplexFunction function :
       {ComplexFunction::exp, ComplexFunction::log, ComplexFunction::sqrt, ComplexFunction::asin,
        ComplexFunction::acos, ComplexFunction::asinh, ComplexFunction::tanh}) {
    list.add("float_complex_unary", {axes, function}, {64, 64}).elementwise = false;
  }
  list.add("float_complex_unary",
           {values({kInf, 1, 1, -kInf, 0, 2, -4, 0}, {4, 2}, dtype), ComplexFunction::reciprocal},
           {8, 0})
      .elementwise = false;
  for (const Shape& shape : {Shape{2}, Shape{5, 2}, Shape{3, 4, 2}, Shape{0, 2}, Shape{67, 2}}) {
    Case& c = list.add("float_complex_abs", {list.uniform(shape, dtype)}, {4, 0});
    c.elementwise = false;
    c.expandable = true;
  }
  for (const Shape& shape :
       {Shape{1, 1, 2}, Shape{3, 4, 2}, Shape{2, 3, 5, 2}, Shape{0, 3, 2}, Shape{3, 0, 2}}) {
    Case& c = list.add("float_complex_rows", {list.uniform(shape, dtype)});
    c.elementwise = false;
    c.expandable = true;
  }
}

}  // namespace

void add_complex_cases(CaseList& list) {
  for (const DType dtype : list.floats) {
    if (dtype != f32 && dtype != f64) continue;
    add_arithmetic(list, dtype);
    add_functions(list, dtype);
  }
}

}  // namespace kiln::conformance
