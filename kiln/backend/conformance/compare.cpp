// Comparing what a backend gave with what it should have given.
#include <cmath>
#include <cstdio>
#include <cstring>

#include "kiln/backend/conformance/runner.h"

namespace kiln::conformance {
namespace {

// The distance from 1 to the next number.
double rounding_unit(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 0x1p-52;
    case DType::f32:
      return 0x1p-23;
    case DType::f16:
      return 0x1p-10;
    case DType::bf16:
      return 0x1p-7;
    default:
      return 0.0;
  }
}

// Quantized values may leave a backend as int8.
DType plain(DType dtype) { return dtype == DType::q8 ? DType::i8 : dtype; }

std::string compare_form(const TensorData& want, const TensorData& got) {
  if (want.shape() != got.shape()) {
    return concat("shape is ", got.shape(), "; expected ", want.shape());
  }
  if (plain(want.dtype()) != plain(got.dtype())) {
    return concat("dtype is ", got.dtype(), "; expected ", want.dtype());
  }
  return "";
}

std::string digits(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", x);
  return text;
}

std::string describe_element(size_t i, double got, double want) {
  return concat("element ", i, " is ", digits(got), "; expected ", digits(want));
}

}  // namespace

std::string compare(const TensorData& want, const TensorData& got, const Tolerance& tolerance) {
  if (std::string what = compare_form(want, got); !what.empty()) return what;
  if (want.dtype() == DType::i64) return compare_identical(want, got);  // doubles hold 53 bits
  const double unit = rounding_unit(want.dtype());
  const std::vector<double> wanted = want.to_doubles();
  const std::vector<double> given = got.to_doubles();
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double w = wanted[i];
    const double g = given[i];
    if (std::isnan(w) && std::isnan(g)) continue;
    if (w == g) continue;
    const double allowed = unit * (tolerance.absolute + tolerance.relative * std::abs(w));
    if (std::isfinite(w) && std::isfinite(g) && std::abs(g - w) <= allowed) continue;
    return concat(describe_element(i, g, w), " within ", digits(allowed));
  }
  return "";
}

std::string compare_identical(const TensorData& want, const TensorData& got) {
  if (std::string what = compare_form(want, got); !what.empty()) return what;
  if (want.bytes() == 0 || std::memcmp(want.data(), got.data(), want.bytes()) == 0) return "";
  const std::vector<double> wanted = want.to_doubles();
  const std::vector<double> given = got.to_doubles();
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (std::isnan(wanted[i]) && std::isnan(given[i])) continue;
    if (wanted[i] == given[i] && std::signbit(wanted[i]) == std::signbit(given[i])) continue;
    return concat(describe_element(i, given[i], wanted[i]), " to the last bit");
  }
  // 64-bit ints that differ beyond a double's precision.
  return kind_of(want.dtype()) == Kind::floating ? "" : "elements differ in their low bits";
}

}  // namespace kiln::conformance
