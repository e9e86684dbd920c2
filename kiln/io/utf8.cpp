#include "kiln/io/utf8.h"

#include <cstddef>
#include <cstdint>

namespace kiln::io {

bool is_utf8(std::string_view text) {
  size_t i = 0;
  const auto follows = [&](size_t n) {
    for (size_t k = 1; k <= n; ++k) {
      if (i + k >= text.size() || (static_cast<uint8_t>(text[i + k]) & 0xc0) != 0x80) return false;
    }
    i += n + 1;
    return true;
  };
  while (i < text.size()) {
    const auto c = static_cast<uint8_t>(text[i]);
    const bool good = c < 0x80                  ? follows(0)
                      : (c >= 0xc2 && c < 0xe0) ? follows(1)
                      : (c & 0xf0) == 0xe0      ? follows(2)
                      : (c >= 0xf0 && c < 0xf5) ? follows(3)
                                                : false;
    if (!good) return false;
  }
  return true;
}

}  // namespace kiln::io
