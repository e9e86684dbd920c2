#include <algorithm>

#include "kiln/core/error.h"
#include "kiln/core/utf8.h"
#include "kiln/metrics/text.h"

namespace kiln::metrics {

namespace {

// The bytes of the character that begins with this byte.
size_t length_of(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

// What Unicode calls white space, and the separators 1c to 1f, as Python's split() has it.
bool is_space(std::string_view c) {
  if (c.size() == 1) return (c[0] >= 9 && c[0] <= 13) || (c[0] >= 0x1c && c[0] <= 0x20);
  if (c == "\xc2\x85" || c == "\xc2\xa0" || c == "\xe1\x9a\x80" || c == "\xe3\x80\x80") return true;
  if (c == "\xe2\x80\xa8" || c == "\xe2\x80\xa9" || c == "\xe2\x80\xaf" || c == "\xe2\x81\x9f") {
    return true;
  }
  return c.size() == 3 && c.starts_with("\xe2\x80") && static_cast<unsigned char>(c[2]) <= 0x8a;
}

Texts split(std::string_view text, bool characters) {
  Texts out;
  bool within = false;
  for (size_t i = 0; i < text.size();) {
    const std::string_view c = text.substr(i, length_of(text[i]));
    i += c.size();
    if (is_space(c)) {
      within = false;
    } else if (within && !characters) {
      out.back() += c;
    } else {
      out.emplace_back(c);
      within = true;
    }
  }
  return out;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_mark(char c) { return c == '.' || c == ','; }

// Each pair of neighbours for which `splits` holds is set apart, from left to right.
template <class F>
std::string apart(const std::string& text, F splits, bool space_first, bool space_last) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !splits(text[i], text[i + 1])) {
      out += text[i];
      continue;
    }
    if (space_first) out += ' ';
    out += text[i];
    out += ' ';
    out += text[++i];
    if (space_last) out += ' ';
  }
  return out;
}

std::string split_13a(std::string text) {
  text = replaced(std::move(text), "<skipped>", "");
  text = replaced(std::move(text), "-\n", "");
  text = replaced(std::move(text), "\n", " ");
  if (text.find('&') != std::string::npos) {
    text = replaced(std::move(text), "&quot;", "\"");
    text = replaced(std::move(text), "&amp;", "&");
    text = replaced(std::move(text), "&lt;", "<");
    text = replaced(std::move(text), "&gt;", ">");
  }
  // ASCII's punctuation but for . , - '
  std::string spaced = " ";
  for (const char c : text) {
    const bool sets_apart = (c >= '{' && c <= '~') || (c >= '[' && c <= '`') ||
                            (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') ||
                            (c >= ':' && c <= '@') || c == '/';
    if (sets_apart) spaced += ' ';
    spaced += c;
    if (sets_apart) spaced += ' ';
  }
  spaced += ' ';
  // Marks that do not stand between digits, and a hyphen after a digit.
  spaced = apart(
      spaced, [](char a, char b) { return !is_digit(a) && is_mark(b); }, false, true);
  spaced = apart(
      spaced, [](char a, char b) { return is_mark(a) && !is_digit(b); }, true, false);
  return apart(
      spaced, [](char a, char b) { return is_digit(a) && b == '-'; }, false, true);
}

}  // namespace

Texts tokenize(std::string_view text, const std::string& tokenizer) {
  if (!is_utf8(text)) {
    throw_error<ValueError>("tokenize: the text is no UTF-8; got '", printable(text), "'");
  }
  if (tokenizer == "none") return split(text, false);
  if (tokenizer == "char") return split(text, true);
  if (tokenizer == "13a") {
    while (!text.empty() && is_space(text.substr(text.size() - 1))) text.remove_suffix(1);
    return split(split_13a(std::string(text)), false);
  }
  throw_error<ValueError>("tokenize: unknown tokenizer; got '", tokenizer,
                          "'; expected none, 13a or char");
}

}  // namespace kiln::metrics
