#include "kiln/core/utf8.h"

#include <cstdint>

namespace kiln {

namespace {

// The bytes of the character that `text` begins with; 0 when it begins with none.
size_t character(std::string_view text) {
  const auto at = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : 0u; };
  const unsigned first = at(0);
  if (first < 0x80) return text.empty() ? 0 : 1;
  const size_t bytes = first >= 0xc2 && first < 0xe0   ? 2
                       : (first & 0xf0) == 0xe0        ? 3
                       : first >= 0xf0 && first < 0xf5 ? 4
                                                       : 0;
  // The second byte tells what is too long, a surrogate, or beyond the last character.
  const unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (bytes == 0 || at(1) < low || at(1) > high) return 0;
  for (size_t i = 2; i < bytes; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  return bytes;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t bytes = character(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string printable(std::string_view text, size_t longest) {
  std::string out;
  while (!text.empty()) {
    const size_t bytes = character(text);
    const size_t taken = bytes == 0 ? 1 : bytes;
    if (out.size() + taken > longest) return out + "...";
    const auto c = static_cast<uint8_t>(text[0]);
    if (bytes == 0 || c < 0x20 || c == 0x7f) {
      out += '?';
    } else {
      out += text.substr(0, taken);
    }
    text.remove_prefix(taken);
  }
  return out;
}

}  // namespace kiln
