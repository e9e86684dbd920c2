#include "kiln/text/word_piece.h"

#include <algorithm>
#include <utility>

#include "kiln/core/utf8.h"
#include "kiln/text/tokenizer_json.h"
#include "kiln/text/unicode.h"

namespace kiln::text {

namespace {

bool is_chinese(uint32_t code) {
  static constexpr std::pair<uint32_t, uint32_t> kBlocks[] = {
      {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},   {0x20000, 0x2a6df},
      {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};
  return std::any_of(std::begin(kBlocks), std::end(kBlocks), [&](const auto& block) {
    return code >= block.first && code <= block.second;
  });
}

bool is_mark(uint32_t code) {
  const bool ascii = code > ' ' && code < 0x7f;
  const bool alphanumeric =
      (code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') || (code >= 'a' && code <= 'z');
  return (ascii && !alphanumeric) || is_punctuation(code);
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// What a model split off from the word before it goes back there.
void clean_up(std::string& token) {
  static constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) replace_all(token, from, to);
}

void require_type(const Json* values, const std::string& part, std::string_view known,
                  const std::string& subject) {
  const std::string& type = text_member(values, "type", subject);
  if (type == known) return;
  throw_error<NotImplementedError>(subject, ": ", part, " must be ", known, "; got '",
                                   printable(type), "'");
}

}  // namespace

WordPiece WordPiece::from_file(const std::string& path) {
  return from_json(read_tokenizer_file("WordPiece", path), concat("WordPiece: '", path, "'"));
}

WordPiece WordPiece::from_json(std::string_view json, const std::string& subject) {
  const Json values = decode_tokenizer_file(json, subject);
  WordPiece out;
  const Json* model = values.find("model");
  if (is_there(model->find("type"))) require_type(model, "model.type", "WordPiece", subject);
  out.vocabulary_.read(values, subject);
  out.read_model(*model, subject);
  out.read_normalizer(values.find("normalizer"), subject);
  if (const Json* split = values.find("pre_tokenizer"); is_there(split)) {
    require_type(split, "pre_tokenizer", "BertPreTokenizer", subject);
    out.split_words_ = true;
  }
  out.read_decoder(values.find("decoder"), subject);
  return out;
}

void WordPiece::read_model(const Json& model, const std::string& subject) {
  const std::string unknown =
      is_there(model.find("unk_token")) ? text_member(&model, "unk_token", subject) : "[UNK]";
  const auto found = vocabulary_.learned().find(unknown);
  if (found == vocabulary_.learned().end()) {
    throw_error<IoError>(subject, ": model.vocab lacks the unknown token '", printable(unknown),
                         "'");
  }
  unknown_ = found->second;
  if (is_there(model.find("continuing_subword_prefix"))) {
    prefix_ = text_member(&model, "continuing_subword_prefix", subject);
  }
  if (is_there(model.find("max_input_chars_per_word"))) {
    longest_ = member<int64_t>(&model, "max_input_chars_per_word", "an integer", subject);
  }
}

void WordPiece::read_normalizer(const Json* values, const std::string& subject) {
  if (!is_there(values)) return;
  if (text_member(values, "type", subject) == "Lowercase") {
    small_letters_ = true;
    return;
  }
  require_type(values, "normalizer", "BertNormalizer", subject);
  clean_ = flag(*values, "clean_text", true);
  split_chinese_ = flag(*values, "handle_chinese_chars", true);
  small_letters_ = flag(*values, "lowercase", true);
  strip_accents_ = flag(*values, "strip_accents", small_letters_);
}

void WordPiece::read_decoder(const Json* values, const std::string& subject) {
  if (!is_there(values)) return;
  require_type(values, "decoder", "WordPiece", subject);
  joined_prefix_ = is_there(values->find("prefix")) ? text_member(values, "prefix", subject) : "##";
  cleans_up_ = flag(*values, "cleanup", true);
}

const std::string& WordPiece::token(int64_t id) const {
  const std::string* found = vocabulary_.token(id);
  if (found == nullptr) throw_error<IndexError>("WordPiece: there is no token ", id);
  return *found;
}

std::u32string WordPiece::normalized(std::string_view text) const {
  std::u32string letters;
  for (const char32_t code : code_points(text)) {
    const bool end_of_line_or_tab = code == '\t' || code == '\n' || code == '\r';
    if (clean_ && is_control(code) && !end_of_line_or_tab) continue;
    if (clean_ && (code == 0 || code == 0xfffd)) continue;
    if (clean_ && is_space(code)) {
      letters += U' ';
    } else if (split_chinese_ && is_chinese(code)) {
      letters.append({U' ', code, U' '});
    } else {
      letters += code;
    }
  }
  if (strip_accents_) letters = without_accents(letters);
  if (!small_letters_) return letters;
  std::u32string small;
  for (const char32_t code : letters) append_small(code, small);
  return small;
}

void WordPiece::encode_word(std::u32string_view word, std::vector<int64_t>& out) const {
  const size_t before = out.size();
  const auto unknown = [&] {
    out.resize(before);
    out.push_back(unknown_);
  };
  if (static_cast<int64_t>(word.size()) > longest_) {
    unknown();
    return;
  }
  // Bytes of the word, and where its letters begin there.
  std::string bytes;
  std::vector<size_t> places;
  for (const char32_t code : word) {
    places.push_back(bytes.size());
    append_utf8(code, bytes);
  }
  places.push_back(bytes.size());
  for (size_t start = 0; start < word.size();) {
    const std::string prefix = start > 0 ? prefix_ : std::string();
    size_t end = word.size();
    for (; end > start; --end) {
      const auto found = vocabulary_.learned().find(
          prefix + bytes.substr(places[start], places[end] - places[start]));
      if (found == vocabulary_.learned().end()) continue;
      out.push_back(found->second);
      break;
    }
    if (end == start) {
      unknown();
      return;
    }
    start = end;
  }
}

std::vector<int64_t> WordPiece::encode(std::string_view text, bool add_special_tokens) const {
  const auto encode_part = [&](std::string_view part, std::vector<int64_t>& out) {
    const std::u32string letters = normalized(part);
    const std::u32string_view all = letters;
    size_t start = 0;
    const auto end_word = [&](size_t end) {
      if (end > start) encode_word(all.substr(start, end - start), out);
      start = end;
    };
    for (size_t i = 0; i < letters.size() && split_words_; ++i) {
      if (is_space(letters[i])) {
        end_word(i);
        start = i + 1;
      } else if (is_mark(letters[i])) {
        end_word(i);
        end_word(i + 1);
      }
    }
    end_word(letters.size());
  };
  return vocabulary_.encode("WordPiece", text, add_special_tokens, encode_part);
}

std::string WordPiece::decode(std::span<const int64_t> ids, bool skip_special_tokens) const {
  std::string out;
  bool first = true;
  for (const int64_t id : ids) {
    std::string piece = token(id);
    if (skip_special_tokens && vocabulary_.is_special(id)) continue;
    if (!first) {
      const bool goes_on = joined_prefix_ && piece.starts_with(*joined_prefix_);
      piece = goes_on ? piece.substr(joined_prefix_->size()) : " " + piece;
    }
    if (joined_prefix_ && cleans_up_) clean_up(piece);
    out += piece;
    first = false;
  }
  return out;
}

}  // namespace kiln::text
