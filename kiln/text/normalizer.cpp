#include "kiln/text/normalizer.h"

#include <algorithm>
#include <cstring>

#include "kiln/core/utf8.h"

namespace kiln::text {

size_t letter_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  return length <= text.size() && is_utf8(text.substr(0, length)) ? length : 0;
}

size_t broken_length(std::string_view text) {
  const auto at = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const auto first = at(0);
  const size_t whole = first >= 0xc2 && first < 0xe0   ? 2
                       : first >= 0xe0 && first < 0xf0 ? 3
                       : first >= 0xf0 && first < 0xf5 ? 4
                                                       : 1;
  size_t length = 1;
  for (; length < whole; ++length) {
    const int least = length > 1 ? 0x80 : first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const int most = length > 1 ? 0xbf : first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (at(length) < least || at(length) > most) break;
  }
  return length;
}

bool Normalizer::set_map(std::string_view map) {
  if (map.empty()) return true;
  uint32_t bytes = 0;
  if (map.size() < sizeof bytes) return false;
  std::memcpy(&bytes, map.data(), sizeof bytes);
  map.remove_prefix(sizeof bytes);
  if (bytes > map.size() || bytes % 4 != 0 || bytes == 0) return false;
  trie_.resize(bytes / 4);
  std::memcpy(trie_.data(), map.data(), bytes);
  texts_ = map.substr(bytes);
  return true;
}

void Normalizer::prepare() {
  // The longest that fits is taken.
  std::sort(user_defined.begin(), user_defined.end(),
            [](const std::string& a, const std::string& b) {
              return a.size() != b.size() ? a.size() > b.size() : a < b;
            });
}

Normalizer::Prefix Normalizer::prefix(std::string_view text) const {
  for (const std::string& word : user_defined) {
    if (text.starts_with(word)) return {text.substr(0, word.size()), word.size()};
  }
  // A unit of the trie: bits 10 on and bit 9 say how far its children are, bit 8 that a word ends
  // here, bits 0 to 7 the byte that leads to it; a value has bit 31.
  size_t length = 0;
  uint32_t found = 0;
  const auto offset = [](uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); };
  if (!trie_.empty()) {
    size_t place = offset(trie_[0]);
    for (size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      place ^= byte;
      if (place >= trie_.size()) break;
      const uint32_t unit = trie_[place];
      if ((unit & 0x800000ff) != byte) break;
      place ^= offset(unit);
      if (place >= trie_.size()) break;
      if (((unit >> 8) & 1) != 0) {
        length = i + 1;
        found = trie_[place] & 0x7fffffff;
      }
    }
  }
  if (length > 0 && found < texts_.size()) {
    const size_t end = std::min(texts_.find('\0', found), texts_.size());
    return {std::string_view(texts_).substr(found, end - found), length};
  }
  const size_t letter = letter_length(text);
  if (letter == 0) return {kBroken, 1};
  return {text.substr(0, letter), letter};
}

std::string Normalizer::normalized(std::string_view text) const {
  if (remove_extra_whitespaces) {
    while (!text.empty()) {
      const Prefix first = prefix(text);
      if (first.text != " ") break;
      text.remove_prefix(first.length);
    }
  }
  if (text.empty()) return "";
  const std::string_view space = escape_whitespaces ? kSpace : std::string_view(" ");
  std::string out;
  if (!suffix && add_dummy_prefix) out += space;
  bool after_space = remove_extra_whitespaces;
  while (!text.empty()) {
    auto [part, length] = prefix(text);
    while (after_space && part.starts_with(' ')) part.remove_prefix(1);
    for (const char c : part) {
      if (c == ' ') {
        out += space;
      } else {
        out += c;
      }
    }
    if (!part.empty()) after_space = part.ends_with(' ');
    text.remove_prefix(length);
    if (!remove_extra_whitespaces) after_space = false;
  }
  if (remove_extra_whitespaces) {
    while (out.ends_with(space)) out.resize(out.size() - space.size());
  }
  if (suffix && add_dummy_prefix) out += space;
  return out;
}

}  // namespace kiln::text
