#include "kiln/text/unicode.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace kiln::text {

namespace {

struct Range {
  uint32_t first, last;
};
struct Small {
  uint32_t code, small;
};
struct Parts {
  uint32_t code, first, second;
};
struct CombiningClass {
  uint32_t code, number;
};

constexpr auto kLetters = std::to_array<Range>({
#define KILN_LETTERS(first, last) {first, last},
#include "kiln/text/unicode_ranges.def"
});
constexpr auto kNumbers = std::to_array<Range>({
#define KILN_NUMBERS(first, last) {first, last},
#include "kiln/text/unicode_ranges.def"
});
constexpr auto kAccents = std::to_array<Range>({
#define KILN_ACCENTS(first, last) {first, last},
#include "kiln/text/unicode_ranges.def"
});
constexpr auto kPunctuation = std::to_array<Range>({
#define KILN_PUNCTUATION(first, last) {first, last},
#include "kiln/text/unicode_ranges.def"
});
constexpr auto kControls = std::to_array<Range>({
#define KILN_CONTROLS(first, last) {first, last},
#include "kiln/text/unicode_ranges.def"
});
constexpr auto kSmall = std::to_array<Small>({
#define KILN_SMALL(code, small) {code, small},
#include "kiln/text/unicode_maps.def"
});
constexpr auto kParts = std::to_array<Parts>({
#define KILN_CONSISTS(code, first, second) {code, first, second},
#include "kiln/text/unicode_maps.def"
});
constexpr auto kClasses = std::to_array<CombiningClass>({
#define KILN_CLASS(code, number) {code, number},
#include "kiln/text/unicode_maps.def"
});

template <size_t N>
bool within(const std::array<Range, N>& ranges, uint32_t code) {
  const auto above =
      std::upper_bound(ranges.begin(), ranges.end(), code,
                       [](uint32_t value, const Range& range) { return value < range.first; });
  return above != ranges.begin() && code <= std::prev(above)->last;
}

template <class Row, size_t N>
const Row* row_of(const std::array<Row, N>& rows, uint32_t code) {
  const auto found =
      std::lower_bound(rows.begin(), rows.end(), code,
                       [](const Row& row, uint32_t value) { return row.code < value; });
  return found != rows.end() && found->code == code ? &*found : nullptr;
}

// 0 for what is no mark, and for accents, which the table lacks.
uint32_t combining_class(uint32_t code) {
  const CombiningClass* row = row_of(kClasses, code);
  return row == nullptr ? 0 : row->number;
}

// A syllable of Hangul consists of two or three letters, which its place in the block tells.
bool append_hangul(uint32_t code, std::u32string& out) {
  if (code < 0xac00 || code > 0xd7a3) return false;
  const uint32_t place = code - 0xac00;
  out += static_cast<char32_t>(0x1100 + place / 588);
  out += static_cast<char32_t>(0x1161 + place % 588 / 28);
  if (place % 28 != 0) out += static_cast<char32_t>(0x11a7 + place % 28);
  return true;
}

void append_parts(uint32_t code, std::u32string& out) {
  if (append_hangul(code, out)) return;
  // A part may consist of parts itself; the first alone does, at most three deep.
  const Parts* parts = row_of(kParts, code);
  if (parts == nullptr) {
    out += static_cast<char32_t>(code);
    return;
  }
  append_parts(parts->first, out);
  if (parts->second != 0) append_parts(parts->second, out);
}

}  // namespace

bool is_letter(uint32_t code) { return within(kLetters, code); }
bool is_number(uint32_t code) { return within(kNumbers, code); }
bool is_accent(uint32_t code) { return within(kAccents, code); }
bool is_punctuation(uint32_t code) { return within(kPunctuation, code); }
bool is_control(uint32_t code) { return within(kControls, code); }

bool is_space(uint32_t code) {
  return (code >= 9 && code <= 13) || code == ' ' || code == 0x85 || code == 0xa0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 ||
         code == 0x202f || code == 0x205f || code == 0x3000;
}

void append_small(uint32_t code, std::u32string& out) {
  if (code == 0x130) {  // I with a dot: an i, and the dot as an accent
    out += U"i\u0307";
    return;
  }
  const Small* row = row_of(kSmall, code);
  out += static_cast<char32_t>(row == nullptr ? code : row->small);
}

std::u32string without_accents(std::u32string_view text) {
  std::u32string parts, out;
  for (const char32_t code : text) append_parts(code, parts);
  for (const char32_t code : parts) {
    if (is_accent(code)) continue;
    // Marks of one letter stand in the order of their classes.
    const uint32_t own = combining_class(code);
    auto place = out.end();
    while (own != 0 && place != out.begin() && combining_class(*std::prev(place)) > own) --place;
    out.insert(place, code);
  }
  return out;
}

std::u32string code_points(std::string_view text) {
  std::u32string out;
  for (size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at]);
    const size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    uint32_t code = length == 1 ? first : first & (0x7fU >> length);
    for (size_t i = 1; i < length && at + i < text.size(); ++i) {
      code = code << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3f);
    }
    out += static_cast<char32_t>(code);
    at += length;
  }
  return out;
}

void append_utf8(uint32_t code, std::string& out) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

std::string utf8(std::u32string_view text) {
  std::string out;
  for (const char32_t code : text) append_utf8(code, out);
  return out;
}

}  // namespace kiln::text
