#include "kiln/nn/repr.h"

#include <charconv>
#include <cmath>

#include "kiln/core/error.h"

namespace kiln::nn::detail {

std::string repr(bool value) { return value ? "True" : "False"; }

std::string repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  // Python leaves the positional form below 1e-4 and from 1e16 on.
  const double size = std::abs(value);
  const bool scientific = size != 0.0 && (size < 1e-4 || size >= 1e16);
  char text[400];
  const auto [end, error] =
      std::to_chars(text, text + sizeof text, value,
                    scientific ? std::chars_format::scientific : std::chars_format::fixed);
  static_cast<void>(error);  // 400 characters hold every double
  std::string out(text, end);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

std::string repr(const Real& value) {
  if (value.is_whole()) return std::to_string(static_cast<int64_t>(value));
  return repr(static_cast<double>(value));
}

std::string repr(const Scalar& value) {
  if (value.is_bool()) return repr(value.to_bool());
  if (value.is_integral()) return std::to_string(value.to_int());
  return repr(value.to_double());
}

std::string repr(const Shape& value) {
  std::string out = "(";
  for (int i = 0; i < value.rank(); ++i) out += concat(i > 0 ? ", " : "", value[i]);
  return out + (value.rank() == 1 ? ",)" : ")");
}

std::string repr(const Size2d& value) {
  return value.is_single() ? std::to_string(value.height()) : repr_pair(value);
}

std::string repr(const SizeNd& value) {
  const Shape& values = value.values();
  if (value.is_single()) return std::to_string(values[0]);
  std::string out = "(";
  for (int i = 0; i < values.rank(); ++i) {
    out += i > 0 ? ", " : "";
    out += values[i] == SizeNd::kNone ? "None" : std::to_string(values[i]);
  }
  return out + (values.rank() == 1 ? ",)" : ")");
}

std::string repr_pair(const Size2d& value) {
  return concat("(", value.height(), ", ", value.width(), ")");
}

}  // namespace kiln::nn::detail
