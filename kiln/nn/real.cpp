#include "kiln/nn/real.h"

#include <cmath>
#include <limits>

namespace kiln::nn {

Json to_config_json(const Real& value) {
  if (value.is_whole()) return Json(static_cast<int64_t>(value));
  return Json(static_cast<double>(value));
}

bool from_config_json(const Json& json, Real& value) {
  if (const double* number = json.as<double>()) {
    value = *number;
  } else if (const int64_t* whole = json.as<int64_t>()) {
    value = *whole;
  } else if (const std::string* word = json.as<std::string>()) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    if (*word != "inf" && *word != "-inf" && *word != "nan") return false;
    value = *word == "inf" ? kInf : *word == "-inf" ? -kInf : std::nan("");
  } else {
    return false;
  }
  return true;
}

}  // namespace kiln::nn
