// Conversion of one element between the C++ types of the dtypes, defined for every value.
#pragma once

#include <limits>
#include <type_traits>

#include "kiln/core/half.h"

namespace kiln {

// Floating point to integer truncates, saturates outside the range and gives 0 for NaN. Integer to
// integer wraps. Anything to bool: whether it is nonzero (NaN is). double to float16 rounds through
// float, as PyTorch does.
template <class To, class From>
constexpr To convert_element(From value) {
  if constexpr (std::is_same_v<From, To>) {
    return value;
  } else if constexpr (std::is_same_v<From, float16> || std::is_same_v<From, bfloat16>) {
    return convert_element<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, float16> || std::is_same_v<To, bfloat16>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // The upper bound as a power of two: max() itself may not be representable.
    constexpr From above = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * From(2);
    constexpr From lowest = static_cast<From>(std::numeric_limits<To>::min());
    if (value != value) return To(0);
    if (value >= above) return std::numeric_limits<To>::max();
    if (value <= lowest) return std::numeric_limits<To>::min();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace kiln
