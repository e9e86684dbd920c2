// Fourier transforms and distances.
#include "kiln/backend/conformance/cases.h"

namespace kiln::conformance {
namespace {

Shape with_parts(Shape shape) {
  shape.push_back(2);
  return shape;
}

// Whether every term of a sum counts alike, so that its rounding errors grow with their number.
Tolerance of_sums(int64_t terms) { return {64, 16.0 + 2.0 * static_cast<double>(terms)}; }

void add_complex_fft(CaseList& list, DType dtype) {
  struct Form {
    Shape shape;  // of complex numbers
    int dim;
  };
  // Lengths with and without factors, a long prime, columns side by side.
  std::vector<Form> forms = {{{1}, 0},     {{2}, 0},     {{8}, 0},       {{12}, 0},
                             {{37}, 0},    {{3, 30}, 1}, {{5, 3, 4}, 0}, {{2, 7, 3}, 1},
                             {{6, 20}, 0}, {{0, 4}, 1},  {{4, 0}, 0},    {{3, 64}, 1}};
  if (dtype == f32) forms.push_back({{20, 40, 6}, 1});
  for (const auto& [shape, dim] : forms) {
    for (const bool inverse : {false, true}) {
      for (const double scale : {1.0, 0.25}) {
        Case& c =
            list.add("float_fft", {list.uniform(with_parts(shape), dtype), dim, inverse, scale},
                     of_sums(shape[dim]));
        c.elementwise = false;
        c.expandable = true;
      }
    }
  }
}

void add_real_fft(CaseList& list, DType dtype) {
  struct Form {
    Shape shape;
    Dims dims;
  };
  const Form forms[] = {
      {{1}, {0}},       {{9}, {0}},         {{8}, {0}},          {{3, 10}, {1}},
      {{4, 6}, {0, 1}}, {{4, 5}, {1, 0}},   {{3, 4, 7}, {0, 2}}, {{3, 4, 6}, {0, 1, 2}},
      {{0, 4}, {1}},    {{2, 3, 5}, {1, 2}}};
  for (const auto& [shape, dims] : forms) {
    for (const bool inverse : {false, true}) {
      Case& c = list.add("float_fft_real", {list.uniform(shape, dtype), dims, inverse, 0.5},
                         of_sums(shape.numel()));
      c.elementwise = false;
      c.expandable = true;
    }
  }
}

void add_half_spectra(CaseList& list, DType dtype) {
  for (const Shape& shape :
       {Shape{1}, Shape{2}, Shape{9}, Shape{3, 10}, Shape{2, 3, 37}, Shape{0, 6}, Shape{3, 64}}) {
    const int64_t n = shape.back();
    Shape half = shape;
    half.back() = n / 2 + 1;
    for (const double ends : {1.0, 0.5, 2.0}) {
      Case& forward =
          list.add("float_rfft", {list.uniform(shape, dtype), 0.5, ends}, of_sums(2 * n));
      forward.elementwise = false;
      forward.expandable = true;
      Case& back = list.add("float_irfft", {list.uniform(with_parts(half), dtype), n, 0.5, ends},
                            of_sums(2 * n));
      back.elementwise = false;
      back.expandable = true;
    }
  }
}

void add_distances(CaseList& list, DType dtype) {
  const std::pair<Shape, Shape> forms[] = {
      {{1, 1}, {1, 1}}, {{4, 3}, {5, 3}}, {{2, 4, 3}, {2, 70, 3}}, {{3, 0, 2}, {3, 4, 2}},
      {{3, 2}, {0, 2}}, {{3, 0}, {4, 0}}, {{6, 130}, {9, 130}}};
  const auto add = [&](const Operand& x, const Operand& y, double norm, bool by_product,
                       Tolerance tolerance) {
    Case& c = list.add("float_cdist", {x, y, norm, by_product}, tolerance);
    c.elementwise = false;
    c.expandable = true;
  };
  for (const auto& [x, y] : forms) {
    for (const double norm : {0.0, 0.5, 1.0, 2.0, 3.0, kInf}) {
      if (norm == 0.5 && x.back() > 100) continue;  // its values leave what f16 holds
      add(list.uniform(x, dtype), list.uniform(y, dtype), norm, false, {64, 64});
    }
    // Far from each other, where nothing cancels.
    add(list.uniform(x, dtype, 1.0, 2.0), list.uniform(y, dtype, -2.0, -1.0), 2.0, true, {64, 64});
  }
  add(values({0, kNan, 1, kInf, 2, 2}, {3, 2}, dtype), values({0, 0, 1, 1}, {2, 2}, dtype), 1.0,
      false, {8, 8});
}

}  // namespace

void add_transform_cases(CaseList& list) {
  for (const DType dtype : list.floats) {
    add_distances(list, dtype);
    if (dtype != f32 && dtype != f64) continue;
    add_complex_fft(list, dtype);
    add_real_fft(list, dtype);
    add_half_spectra(list, dtype);
  }
}

}  // namespace kiln::conformance
