#include "kiln/tensor/elementwise/scalar_fit.h"

#include <cmath>
#include <limits>
#include <string>

#include "kiln/core/error.h"

namespace kiln::detail {

namespace {

struct Range {
  double low;
  double high;
};

template <class T>
constexpr Range range_of() {
  return {static_cast<double>(std::numeric_limits<T>::lowest()),
          static_cast<double>(std::numeric_limits<T>::max())};
}

Range range_of(DType dtype) {
  switch (dtype) {
    case f32:
    case DType::c64:
      return range_of<float>();
    case f16:
      return {-65504.0, 65504.0};
    case bf16:
      return {-0x1.fep127, 0x1.fep127};
    case i64:
      return range_of<int64_t>();
    case i32:
      return range_of<int32_t>();
    case i16:
      return range_of<int16_t>();
    case i8:
      return range_of<int8_t>();
    case u8:
      return range_of<uint8_t>();
    default:
      return range_of<double>();
  }
}

}  // namespace

void check_fits(const char* op, Scalar value, DType dtype) {
  if (value.is_bool() || dtype == bool_) return;
  const double number = value.to_double();
  if (!is_integral(dtype) && !std::isfinite(number)) return;
  Range range = range_of(dtype);
  if (dtype == u8 && value.is_integral()) range.low = -range.high;
  // The largest int64 is 2^63 as a double.
  const bool above = dtype == i64 && value.is_floating_point() && number >= 0x1p63;
  if (number >= range.low && number <= range.high && !above) return;
  throw_error<ValueError>(
      op, ": the value does not fit ", dtype, "; got ",
      value.is_integral() ? std::to_string(value.to_int()) : std::to_string(number));
}

}  // namespace kiln::detail
