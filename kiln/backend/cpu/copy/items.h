// Elements that are moved as they are, by their size alone. Internal to the Cpu backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kiln/backend/cpu/copy/copy_kernels.h"

namespace kiln::cpu {

// Calls f<U>() with the unsigned type of `item` bytes.
template <class F>
decltype(auto) visit_item(size_t item, F&& f) {
  switch (item) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    default:
      return f.template operator()<uint64_t>();
  }
}

// The 8 bytes that repeat one of `item` bytes.
inline uint64_t repeated(const void* value, int64_t item) {
  uint64_t bits = 0;
  std::memcpy(&bits, value, static_cast<size_t>(item));
  for (int64_t width = item; width < 8; width *= 2) bits |= bits << (8 * width);
  return bits;
}

// Copies a row, without a call where it is short.
inline void copy_bytes(char* to, const char* from, int64_t bytes) {
  if (bytes > 256) return copy_kernels().copy(from, to, bytes);
  // The last piece may lie over the one before.
  const auto ends = [=](auto width) {
    std::memcpy(to, from, width);
    std::memcpy(to + bytes - width, from + bytes - width, width);
  };
  if (bytes < 4) {
    for (int64_t i = 0; i < bytes; ++i) to[i] = from[i];
    return;
  }
  if (bytes < 8) return ends(std::integral_constant<int, 4>());
  if (bytes < 16) return ends(std::integral_constant<int, 8>());
  for (int64_t i = 0; i + 16 <= bytes; i += 16) std::memcpy(to + i, from + i, 16);
  std::memcpy(to + bytes - 16, from + bytes - 16, 16);
}

}  // namespace kiln::cpu
