#include "kiln/text/word_splitter.h"

#include <string>

#include "kiln/text/unicode.h"

namespace kiln::text {

namespace {

enum class Kind : uint8_t { space, newline, letter, number, other };

Kind kind_of(uint32_t code) {
  if (code == '\n' || code == '\r') return Kind::newline;
  if (is_space(code)) return Kind::space;
  if (is_letter(code)) return Kind::letter;
  return is_number(code) ? Kind::number : Kind::other;
}

struct Letter {
  uint32_t code;
  Kind kind;
  size_t at;  // its first byte
};

std::vector<Letter> letters_of(std::string_view text) {
  std::vector<Letter> out;
  size_t at = 0;
  for (const char32_t code : code_points(text)) {
    out.push_back({code, kind_of(code), at});
    at += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  }
  return out;
}

// Finds where the word ends that starts at a letter. Each function tries one of the expression's
// alternatives, in its order, and gives its start where that does not fit.
class Splitter {
 public:
  Splitter(const std::vector<Letter>& letters, WordRule rule) : letters_(letters), rule_(rule) {}

  size_t end_of_word(size_t start) const {
    for (const auto attempt : {&Splitter::contraction, &Splitter::word, &Splitter::number,
                               &Splitter::marks, &Splitter::lines, &Splitter::spaces}) {
      const size_t end = (this->*attempt)(start);
      if (end > start) return end;
    }
    return start + 1;
  }

 private:
  bool is(size_t i, Kind kind) const { return i < letters_.size() && letters_[i].kind == kind; }
  bool is_space(size_t i) const { return is(i, Kind::space) || is(i, Kind::newline); }
  bool is_char(size_t i, uint32_t code) const {
    return i < letters_.size() && letters_[i].code == code;
  }
  size_t skip(size_t i, Kind kind, size_t most = SIZE_MAX) const {
    for (; most > 0 && is(i, kind); --most) ++i;
    return i;
  }

  // 's 't 're 've 'm 'll 'd; of llama3 in capitals, too.
  size_t contraction(size_t i) const {
    if (!is_char(i, '\'')) return i;
    const auto same = [&](size_t at, char expected) {
      if (at >= letters_.size()) return false;
      uint32_t code = letters_[at].code;
      if (rule_ != WordRule::gpt2) {
        if (code >= 'A' && code <= 'Z') code += 'a' - 'A';
        if (code == 0x17f) code = 's';  // the long s
      }
      return code == static_cast<uint32_t>(expected);
    };
    for (const std::string_view end : {"s", "t", "re", "ve", "m", "ll", "d"}) {
      bool fits = true;
      for (size_t k = 0; k < end.size(); ++k) fits = fits && same(i + 1 + k, end[k]);
      if (fits) return i + 1 + end.size();
    }
    return i;
  }

  size_t word(size_t i) const {
    const bool may_lead =
        rule_ == WordRule::gpt2 ? is_char(i, ' ') : is(i, Kind::space) || is(i, Kind::other);
    const size_t first = i + (may_lead ? 1 : 0);
    const size_t end = skip(first, Kind::letter);
    return end > first ? end : i;
  }

  size_t number(size_t i) const {
    if (rule_ != WordRule::gpt2) return skip(i, Kind::number, rule_ == WordRule::llama3 ? 3 : 1);
    const size_t first = i + (is_char(i, ' ') ? 1 : 0);
    const size_t end = skip(first, Kind::number);
    return end > first ? end : i;
  }

  size_t marks(size_t i) const {
    const size_t first = i + (is_char(i, ' ') ? 1 : 0);
    const size_t end = skip(first, Kind::other);
    if (end == first) return i;
    return rule_ == WordRule::gpt2 ? end : skip(end, Kind::newline);
  }

  // Spaces up to the last end of a line among them.
  size_t lines(size_t i) const {
    if (rule_ == WordRule::gpt2) return i;
    size_t end = i;
    for (size_t k = i; is_space(k); ++k) {
      if (is(k, Kind::newline)) end = k + 1;
    }
    return end;
  }

  // All spaces; but the last belongs to the word behind them.
  size_t spaces(size_t i) const {
    size_t end = i;
    while (is_space(end)) ++end;
    return end < letters_.size() && end > i + 1 ? end - 1 : end;
  }

  const std::vector<Letter>& letters_;
  WordRule rule_;
};

}  // namespace

const WordRule* word_rule_of(std::string_view expression) {
  static constexpr std::string_view kHead =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})";
  static constexpr std::string_view kTail =
      R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  static constexpr WordRule kRules[] = {WordRule::gpt2, WordRule::llama3, WordRule::qwen2};
  if (expression == kGpt2Expression) return &kRules[0];
  if (!expression.starts_with(kHead) || !expression.ends_with(kTail)) return nullptr;
  const std::string_view digits =
      expression.substr(kHead.size(), expression.size() - kHead.size() - kTail.size());
  return digits == "{1,3}" ? &kRules[1] : digits.empty() ? &kRules[2] : nullptr;
}

std::vector<std::string_view> split_words(std::string_view text, WordRule rule) {
  const std::vector<Letter> letters = letters_of(text);
  const Splitter splitter(letters, rule);
  std::vector<std::string_view> out;
  for (size_t i = 0; i < letters.size();) {
    const size_t end = splitter.end_of_word(i);
    const size_t last = end < letters.size() ? letters[end].at : text.size();
    out.push_back(text.substr(letters[i].at, last - letters[i].at));
    i = end;
  }
  return out;
}

}  // namespace kiln::text
