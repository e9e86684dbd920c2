#include "cli/train/tokens.h"

#include <algorithm>

#include "kiln/core/error.h"
#include "kiln/core/utf8.h"

namespace kiln::cli {

namespace {

constexpr int64_t kFirst = 2;  // behind padding and the unknown

bool is_letter(unsigned char c) {
  return c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

size_t character_bytes(unsigned char first) {
  return first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

}  // namespace

Tokens Tokens::read(Fields& fields, const std::string& folder, const char* preset) {
  Tokens out;
  out.kind_ = fields.word("tokens", preset, {"word", "character", "byte", "bpe", "wordpiece"});
  if (out.kind_ == "bpe" || out.kind_ == "wordpiece") {
    out.open(fields.path("tokenizer", folder));
  } else if (out.kind_ != "byte") {
    out.most_ = fields.whole("vocabulary", 20000, 1, 10'000'000);
    out.least_ = fields.whole("least", 1, 1);
  }
  return out;
}

void Tokens::open(const std::string& file) {
  using Tokenizer = std::variant<text::ByteLevelBpe, text::WordPiece>;
  file_ = file;
  tokenizer_ = std::make_shared<const Tokenizer>(
      kind_ == "bpe" ? Tokenizer(text::ByteLevelBpe::from_file(file))
                     : Tokenizer(text::WordPiece::from_file(file)));
}

Tokens Tokens::from_facts(const Json& facts, const std::string& tokenizer) {
  const auto text = [&](const char* name) {
    const Json* found = facts.find(name);
    const auto* value = found == nullptr ? nullptr : found->as<std::string>();
    return value == nullptr ? std::string() : *value;
  };
  Tokens out;
  out.kind_ = text("tokens");
  if (out.kind_ == "bpe" || out.kind_ == "wordpiece") {
    out.open(tokenizer.empty() ? text("tokenizer") : tokenizer);
    return out;
  }
  if (out.kind_ == "byte") return out;
  const Json* words = facts.find("words");
  const auto* list = words == nullptr ? nullptr : words->as<Json::Array>();
  if (list == nullptr || (out.kind_ != "word" && out.kind_ != "character")) {
    throw ValueError("the model's file says nothing of its tokens");
  }
  for (const Json& word : *list) {
    if (word.as<std::string>() == nullptr) throw ValueError("the model's words are malformed");
    out.words_.push_back(*word.as<std::string>());
  }
  out.number_words();
  return out;
}

// Words are runs of letters and digits, in lower case where they are ASCII; what stands between
// them, but for white space, is a word of one character each.
std::vector<std::string> Tokens::pieces(std::string_view text) const {
  std::vector<std::string> out;
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (kind_ == "character") {
      const size_t bytes = std::min(character_bytes(c), text.size() - i);
      out.emplace_back(text.substr(i, bytes));
      i += bytes;
    } else if (is_letter(c)) {
      std::string word;
      for (; i < text.size() && is_letter(static_cast<unsigned char>(text[i])); ++i) {
        word += lower(text[i]);
      }
      out.push_back(std::move(word));
    } else {
      if (c > ' ') out.emplace_back(1, text[i]);
      ++i;
    }
  }
  return out;
}

void Tokens::learn(const std::vector<std::string_view>& texts) {
  if (tokenizer_ || kind_ == "byte") return;
  std::unordered_map<std::string, int64_t> counts;
  for (const std::string_view text : texts) {
    for (std::string& piece : pieces(text)) ++counts[std::move(piece)];
  }
  std::vector<std::pair<int64_t, std::string>> order;
  for (const auto& [word, count] : counts) {
    if (count >= least_) order.emplace_back(-count, word);
  }
  std::sort(order.begin(), order.end());
  order.resize(std::min(order.size(), static_cast<size_t>(most_)));
  for (auto& [count, word] : order) words_.push_back(std::move(word));
  std::sort(words_.begin(), words_.end());
  number_words();
}

void Tokens::number_words() {
  for (size_t i = 0; i < words_.size(); ++i) ids_[words_[i]] = kFirst + static_cast<int64_t>(i);
}

std::vector<int64_t> Tokens::padded(std::string_view text, int64_t length) const {
  std::vector<int64_t> ids = encode(text);
  ids.resize(static_cast<size_t>(length), 0);
  if (ids[0] == 0) ids[0] = 1;
  return ids;
}

std::vector<int64_t> Tokens::encode(std::string_view text) const {
  std::vector<int64_t> out;
  if (tokenizer_) {
    const auto ids =
        std::visit([&](const auto& from) { return from.encode(text, false); }, *tokenizer_);
    for (const int64_t id : ids) out.push_back(id + kFirst);
  } else if (kind_ == "byte") {
    for (const char c : text) out.push_back(kFirst + static_cast<unsigned char>(c));
  } else {
    for (const std::string& piece : pieces(text)) {
      const auto found = ids_.find(piece);
      out.push_back(found == ids_.end() ? 1 : found->second);
    }
  }
  return out;
}

std::string Tokens::decode(const std::vector<int64_t>& ids) const {
  std::vector<int64_t> own;
  for (const int64_t id : ids) {
    if (id >= kFirst && id < size()) own.push_back(id - kFirst);
  }
  if (tokenizer_) {
    return std::visit([&](const auto& from) { return from.decode(own); }, *tokenizer_);
  }
  std::string out;
  for (const int64_t id : own) {
    if (kind_ == "byte") {
      out += static_cast<char>(id);
    } else {
      if (kind_ == "word" && !out.empty()) out += ' ';
      out += words_[static_cast<size_t>(id)];
    }
  }
  return out;
}

int64_t Tokens::size() const {
  if (tokenizer_)
    return kFirst + std::visit([](const auto& from) { return from.size(); }, *tokenizer_);
  return kFirst + (kind_ == "byte" ? 256 : static_cast<int64_t>(words_.size()));
}

Json Tokens::facts() const {
  Json out = Json::Object();
  out.add("tokens", kind_);
  if (tokenizer_) out.add("tokenizer", file_);
  if (!tokenizer_ && kind_ != "byte") {
    Json words = Json::Array();
    for (const std::string& word : words_) words.add(Json(word));
    out.add("words", std::move(words));
  }
  return out;
}

}  // namespace kiln::cli
