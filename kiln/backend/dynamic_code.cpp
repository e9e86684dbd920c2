#include "kiln/backend/dynamic_code.h"

#include <algorithm>
#include <cmath>

namespace kiln {
namespace {

DynamicCode make_code(bool with_signs) {
  constexpr int kExponents = 7;
  DynamicCode code{};
  size_t count = 0;
  code.numbers[count++] = 0.0F;
  code.numbers[count++] = 1.0F;
  for (int e = 0; e < kExponents; ++e) {
    const double scale = std::pow(10.0, e - (kExponents - 1));
    const int fractions = 1 << (with_signs ? e : e + 1);
    // The middles of equal parts of [0.1, 1].
    for (int k = 0; k < fractions; ++k) {
      const double middle = 0.1 + 0.9 * (k + 0.5) / fractions;
      code.numbers[count++] = static_cast<float>(scale * middle);
      if (with_signs) code.numbers[count++] = static_cast<float>(-scale * middle);
    }
  }
  std::sort(code.numbers.begin(), code.numbers.end());
  for (size_t i = 0; i < code.middles.size(); ++i) {
    code.middles[i] = (code.numbers[i] + code.numbers[i + 1]) / 2.0F;
  }
  return code;
}

}  // namespace

uint8_t DynamicCode::code_of(float x) const {
  return static_cast<uint8_t>(std::upper_bound(middles.begin(), middles.end(), x) -
                              middles.begin());
}

const DynamicCode& dynamic_code(bool with_signs) {
  static const DynamicCode codes[] = {make_code(false), make_code(true)};
  return codes[with_signs ? 1 : 0];
}

}  // namespace kiln
