// Small numbers as constants of the compiler's, so that what is short is unrolled and stays in
// registers. Internal to the Cpu backend.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

namespace kiln::cpu {

// Calls f(std::integral_constant<int, n>()) for n from 1 to kMost. Returns whether n is one of
// them.
template <int kMost, class F>
bool with_few(int64_t n, F&& f) {
  return [&]<int... kBefore>(std::integer_sequence<int, kBefore...>) {
    return ((n == kBefore + 1 && (f(std::integral_constant<int, kBefore + 1>()), true)) || ...);
  }(std::make_integer_sequence<int, kMost>());
}

}  // namespace kiln::cpu
