#include "kiln/text/byte_level_bpe.h"

#include <algorithm>
#include <array>
#include <queue>

#include "kiln/core/utf8.h"
#include "kiln/text/normalizer.h"
#include "kiln/text/tokenizer_json.h"

namespace kiln::text {

namespace {

// A printable letter for each byte: itself where it is one, otherwise one from 256 on.
std::array<std::string, 256> letters_of_bytes() {
  std::array<std::string, 256> out;
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool plain = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    const uint32_t code = plain ? byte : next++;
    if (code < 0x80) {
      out[byte] = static_cast<char>(code);
    } else {
      out[byte] = {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
    }
  }
  return out;
}

const std::array<std::string, 256>& letters() {
  static const std::array<std::string, 256> all = letters_of_bytes();
  return all;
}

uint64_t both(int64_t left, int64_t right) {
  return static_cast<uint64_t>(left) << 32 | static_cast<uint64_t>(right);
}

}  // namespace

ByteLevelBpe ByteLevelBpe::from_file(const std::string& path) {
  return from_json(read_tokenizer_file("ByteLevelBpe", path), concat("ByteLevelBpe: '", path, "'"));
}

ByteLevelBpe ByteLevelBpe::from_json(std::string_view json, const std::string& subject) {
  const Json values = decode_tokenizer_file(json, subject);
  if (is_there(values.find("normalizer"))) {
    throw_error<NotImplementedError>(subject, ": asks for a normalizer, which is not there");
  }
  ByteLevelBpe out;
  const Json* model = values.find("model");
  if (is_there(model->find("type")) && text_member(model, "type", subject) != "BPE") {
    throw_error<NotImplementedError>(subject, ": model.type must be BPE; got '",
                                     printable(text_member(model, "type", subject)), "'");
  }
  out.vocabulary_.read(values, subject);
  out.read_model(*model, subject);
  out.read_splits(values.find("pre_tokenizer"), subject);
  return out;
}

void ByteLevelBpe::read_model(const Json& model, const std::string& subject) {
  const auto& ids = vocabulary_.learned();
  int64_t rank = 0;
  for (const Json& merge : member<Json::Array>(&model, "merges", "a list", subject)) {
    std::string left, right;
    if (const auto* text = merge.as<std::string>()) {
      const size_t space = text->find(' ');
      if (space != std::string::npos) {
        left = text->substr(0, space);
        right = text->substr(space + 1);
      }
    } else if (const auto* pair = merge.as<Json::Array>(); pair != nullptr && pair->size() == 2) {
      if ((*pair)[0].as<std::string>() != nullptr && (*pair)[1].as<std::string>() != nullptr) {
        left = *(*pair)[0].as<std::string>();
        right = *(*pair)[1].as<std::string>();
      }
    }
    const auto a = ids.find(left), b = ids.find(right), joined = ids.find(left + right);
    if (left.empty() || right.empty() || a == ids.end() || b == ids.end() || joined == ids.end()) {
      throw_error<IoError>(subject, ": merge ", rank, " is no pair of tokens that make a token");
    }
    merges_.emplace(both(a->second, b->second), Merge{rank++, joined->second});
  }
  if (is_there(model.find("unk_token"))) {
    const auto found = ids.find(text_member(&model, "unk_token", subject));
    if (found != ids.end()) unknown_ = found->second;
  }
  whole_words_ = flag(model, "ignore_merges", false);
}

void ByteLevelBpe::read_splits(const Json* values, const std::string& subject) {
  if (!is_there(values)) return;
  const std::string& type = text_member(values, "type", subject);
  if (type == "Sequence") {
    for (const Json& step : member<Json::Array>(values, "pretokenizers", "a list", subject)) {
      read_splits(&step, subject);
    }
  } else if (type == "ByteLevel") {
    prefix_space_ = flag(*values, "add_prefix_space", true);
    if (flag(*values, "use_regex", true)) rule_ = WordRule::gpt2;
  } else if (type == "Split") {
    const Json* pattern = values->find("pattern");
    const std::string& expression = text_member(pattern, "Regex", subject);
    const WordRule* rule = word_rule_of(expression);
    if (rule == nullptr || text_member(values, "behavior", subject) != "Isolated" ||
        flag(*values, "invert", false)) {
      throw_error<NotImplementedError>(
          subject, ": splits a text in a way that is not there: ", printable(expression));
    }
    rule_ = *rule;
  } else {
    throw_error<NotImplementedError>(subject,
                                     ": pre_tokenizer must be Sequence, ByteLevel or Split; got '",
                                     printable(type), "'");
  }
}

const std::string& ByteLevelBpe::token(int64_t id) const {
  const std::string* found = vocabulary_.token(id);
  if (found == nullptr) throw_error<IndexError>("ByteLevelBpe: there is no token ", id);
  return *found;
}

void ByteLevelBpe::encode_word(std::string_view word, std::vector<int64_t>& out) const {
  struct Symbol {
    int64_t id, before, after;
  };
  struct Pair {
    int64_t rank, left, right, left_id, right_id, joined;
    bool operator<(const Pair& other) const {
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };
  const auto& ids = vocabulary_.learned();
  std::string spelled;
  for (const char c : word) spelled += letters()[static_cast<unsigned char>(c)];
  if (whole_words_) {
    if (const auto found = ids.find(spelled); found != ids.end()) {
      out.push_back(found->second);
      return;
    }
  }
  std::vector<Symbol> symbols;
  for (const char c : word) {
    const auto found = ids.find(letters()[static_cast<unsigned char>(c)]);
    if (found == ids.end() && !unknown_) continue;
    const auto i = static_cast<int64_t>(symbols.size());
    symbols.push_back({found == ids.end() ? *unknown_ : found->second, i - 1, i + 1});
  }
  if (symbols.empty()) return;
  symbols.back().after = -1;
  const auto symbol = [&](int64_t i) -> Symbol& { return symbols[static_cast<size_t>(i)]; };
  std::priority_queue<Pair> pairs;
  const auto consider = [&](int64_t left, int64_t right) {
    if (left < 0 || right < 0) return;
    const auto found = merges_.find(both(symbol(left).id, symbol(right).id));
    if (found == merges_.end()) return;
    pairs.push(
        {found->second.rank, left, right, symbol(left).id, symbol(right).id, found->second.id});
  };
  for (size_t i = 1; i < symbols.size(); ++i) {
    consider(static_cast<int64_t>(i) - 1, static_cast<int64_t>(i));
  }
  while (!pairs.empty()) {
    const Pair top = pairs.top();
    pairs.pop();
    Symbol& left = symbol(top.left);
    Symbol& right = symbol(top.right);
    // One of them has been joined with another meanwhile.
    if (left.id != top.left_id || right.id != top.right_id || left.after != top.right) continue;
    left.id = top.joined;
    left.after = right.after;
    if (right.after >= 0) symbol(right.after).before = top.left;
    right = {-1, -1, -1};
    consider(left.before, top.left);
    consider(top.left, left.after);
  }
  for (int64_t i = 0; i >= 0; i = symbol(i).after) out.push_back(symbol(i).id);
}

void ByteLevelBpe::encode_part(std::string_view text, std::vector<int64_t>& out) const {
  std::string prefixed;
  if (prefix_space_ && !text.starts_with(' ')) {
    prefixed = concat(" ", text);
    text = prefixed;
  }
  if (!rule_) {
    encode_word(text, out);
    return;
  }
  for (const std::string_view word : split_words(text, *rule_)) encode_word(word, out);
}

std::vector<int64_t> ByteLevelBpe::encode(std::string_view text, bool add_special_tokens) const {
  return vocabulary_.encode(
      "ByteLevelBpe", text, add_special_tokens,
      [&](std::string_view part, std::vector<int64_t>& out) { encode_part(part, out); });
}

std::string ByteLevelBpe::decode(std::span<const int64_t> ids, bool skip_special_tokens) const {
  static const std::unordered_map<std::string_view, char> bytes = [] {
    std::unordered_map<std::string_view, char> out;
    for (size_t i = 0; i < 256; ++i) out.emplace(letters()[i], static_cast<char>(i));
    return out;
  }();
  std::string out, raw;
  const auto flush = [&] {
    for (std::string_view rest = raw; !rest.empty();) {
      const size_t letter = letter_length(rest);
      out += letter > 0 ? rest.substr(0, letter) : kBroken;
      rest.remove_prefix(letter > 0 ? letter : broken_length(rest));
    }
    raw.clear();
  };
  for (const int64_t id : ids) {
    const std::string& piece = token(id);
    if (skip_special_tokens && vocabulary_.is_special(id)) continue;
    if (vocabulary_.is_added(piece) && !vocabulary_.learned().contains(piece)) {
      flush();
      out += piece;
      continue;
    }
    for (std::string_view rest = piece; !rest.empty();) {
      const size_t length = std::max<size_t>(letter_length(rest), 1);
      const auto found = bytes.find(rest.substr(0, length));
      if (found != bytes.end()) {
        raw += found->second;
      } else {
        raw += rest.substr(0, length);
      }
      rest.remove_prefix(length);
    }
  }
  flush();
  return out;
}

}  // namespace kiln::text
