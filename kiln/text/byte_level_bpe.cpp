#include "kiln/text/byte_level_bpe.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <queue>

#include "kiln/core/error.h"
#include "kiln/core/json.h"
#include "kiln/core/utf8.h"
#include "kiln/io/input_file.h"
#include "kiln/text/normalizer.h"

namespace kiln::text {

namespace {

constexpr uint64_t kMostBytes = uint64_t{256} << 20;
constexpr int64_t kMostIds = int64_t{1} << 31;

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

[[noreturn]] void wrong(const std::string& subject, std::string_view what, const Json* got) {
  throw_error<IoError>(subject, ": ", what, "; got ",
                       got == nullptr ? std::string("nothing") : got->describe());
}

template <class T>
const T& member(const Json* values, const char* name, const char* expected,
                const std::string& subject) {
  const Json* value = values == nullptr ? nullptr : values->find(name);
  if (value == nullptr || value->as<T>() == nullptr) {
    wrong(subject, concat("'", name, "' must be ", expected), value);
  }
  return *value->as<T>();
}

const std::string& text_member(const Json* values, const char* name, const std::string& subject) {
  return member<std::string>(values, name, "a string", subject);
}

bool flag(const Json& values, const char* name, bool otherwise) {
  const Json* value = values.find(name);
  const bool* found = value == nullptr ? nullptr : value->as<bool>();
  return found == nullptr ? otherwise : *found;
}

bool is_there(const Json* values) { return values != nullptr && !values->is_null(); }

int64_t id_of(const Json* value, const std::string& subject) {
  const auto* id = value == nullptr ? nullptr : value->as<int64_t>();
  if (id == nullptr || *id < 0 || *id >= kMostIds) {
    wrong(subject, "an id must be an integer from 0 to 2^31", value);
  }
  return *id;
}

uint64_t both(int64_t left, int64_t right) {
  return static_cast<uint64_t>(left) << 32 | static_cast<uint64_t>(right);
}

}  // namespace

ByteLevelBpe ByteLevelBpe::from_file(const std::string& path) {
  const std::string name = std::filesystem::is_directory(path) ? path + "/tokenizer.json" : path;
  const std::string json = io::InputFile("ByteLevelBpe", name).read_whole(kMostBytes);
  return from_json(json, concat("ByteLevelBpe: '", name, "'"));
}

ByteLevelBpe ByteLevelBpe::from_json(std::string_view json, const std::string& subject) {
  Json values;
  try {
    values = decode_json(json);
  } catch (const ValueError& error) {
    throw_error<IoError>(subject, ": ", error.what());
  }
  ByteLevelBpe out;
  const Json* model = values.find("model");
  if (model == nullptr || model->as<Json::Object>() == nullptr) {
    wrong(subject, "'model' must be an object", model);
  }
  if (is_there(values.find("normalizer"))) {
    throw_error<NotImplementedError>(subject, ": asks for a normalizer, which is not there");
  }
  out.read_model(*model, subject);
  out.read_added(values.find("added_tokens"), subject);
  for (const auto& [token, id] : out.ids_) out.tokens_[id] = token;
  for (const auto& [token, id] : out.added_) out.tokens_[id] = token;
  out.read_splits(values.find("pre_tokenizer"), subject);
  out.read_wrapping(values.find("post_processor"), subject);
  return out;
}

void ByteLevelBpe::read_model(const Json& model, const std::string& subject) {
  if (is_there(model.find("type")) && text_member(&model, "type", subject) != "BPE") {
    throw_error<NotImplementedError>(subject, ": model.type must be BPE; got '",
                                     printable(text_member(&model, "type", subject)), "'");
  }
  for (const auto& [token, id] : member<Json::Object>(&model, "vocab", "an object", subject)) {
    ids_.emplace(token, id_of(&id, subject));
  }
  if (ids_.empty()) throw_error<IoError>(subject, ": the vocabulary is empty");
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
    const auto a = ids_.find(left), b = ids_.find(right), joined = ids_.find(left + right);
    if (left.empty() || right.empty() || a == ids_.end() || b == ids_.end() ||
        joined == ids_.end()) {
      throw_error<IoError>(subject, ": merge ", rank, " is no pair of tokens that make a token");
    }
    merges_.emplace(both(a->second, b->second), Merge{rank++, joined->second});
  }
  if (is_there(model.find("unk_token"))) {
    const auto found = ids_.find(text_member(&model, "unk_token", subject));
    if (found != ids_.end()) unknown_ = found->second;
  }
  whole_words_ = flag(model, "ignore_merges", false);
}

void ByteLevelBpe::read_added(const Json* added, const std::string& subject) {
  if (!is_there(added)) return;
  const auto* list = added->as<Json::Array>();
  if (list == nullptr) wrong(subject, "'added_tokens' must be a list", added);
  for (const Json& token : *list) {
    const std::string& content = text_member(&token, "content", subject);
    if (content.empty()) throw_error<IoError>(subject, ": an added token is empty");
    const int64_t id = id_of(token.find("id"), subject);
    added_[content] = id;
    begins_added_[static_cast<unsigned char>(content[0])] = true;
    if (flag(token, "special", false)) special_.insert(id);
  }
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

void ByteLevelBpe::read_wrapping(const Json* values, const std::string& subject) {
  if (!is_there(values)) return;
  const std::string& type = text_member(values, "type", subject);
  if (type == "ByteLevel") return;
  if (type == "Sequence") {
    for (const Json& step : member<Json::Array>(values, "processors", "a list", subject)) {
      read_wrapping(&step, subject);
    }
    return;
  }
  if (type != "TemplateProcessing") {
    throw_error<NotImplementedError>(
        subject, ": post_processor must be Sequence, ByteLevel or TemplateProcessing; got '",
        printable(type), "'");
  }
  const Json* special = values->find("special_tokens");
  bool behind = false;
  for (const Json& part : member<Json::Array>(values, "single", "a list", subject)) {
    const Json* token = part.find("SpecialToken");
    if (token == nullptr) {
      behind = true;
      continue;
    }
    const Json* known =
        special == nullptr ? nullptr : special->find(text_member(token, "id", subject));
    for (const Json& id : member<Json::Array>(known, "ids", "a list", subject)) {
      (behind ? after_ : before_).push_back(id_of(&id, subject));
    }
  }
}

std::optional<int64_t> ByteLevelBpe::find(std::string_view token) const {
  if (const auto found = added_.find(token); found != added_.end()) return found->second;
  if (const auto found = ids_.find(std::string(token)); found != ids_.end()) return found->second;
  return std::nullopt;
}

const std::string& ByteLevelBpe::token(int64_t id) const {
  const auto found = tokens_.find(id);
  if (found == tokens_.end()) throw_error<IndexError>("ByteLevelBpe: there is no token ", id);
  return found->second;
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
  std::string spelled;
  for (const char c : word) spelled += letters()[static_cast<unsigned char>(c)];
  if (whole_words_) {
    if (const auto found = ids_.find(spelled); found != ids_.end()) {
      out.push_back(found->second);
      return;
    }
  }
  std::vector<Symbol> symbols;
  for (const char c : word) {
    const auto found = ids_.find(letters()[static_cast<unsigned char>(c)]);
    if (found == ids_.end() && !unknown_) continue;
    const auto i = static_cast<int64_t>(symbols.size());
    symbols.push_back({found == ids_.end() ? *unknown_ : found->second, i - 1, i + 1});
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
  if (!is_utf8(text)) throw_error<ValueError>("ByteLevelBpe: the text is not UTF-8");
  std::vector<int64_t> out;
  if (add_special_tokens) out = before_;
  size_t start = 0;
  for (size_t at = 0; at < text.size() && !added_.empty();) {
    if (!begins_added_[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    // The longest added token that begins here.
    size_t length = 0;
    int64_t id = 0;
    for (const auto& [token, number] : added_) {
      if (token.size() > length && text.substr(at).starts_with(token)) {
        length = token.size();
        id = number;
      }
    }
    if (length == 0) {
      ++at;
      continue;
    }
    if (at > start) encode_part(text.substr(start, at - start), out);
    out.push_back(id);
    start = at += length;
  }
  if (start < text.size()) encode_part(text.substr(start), out);
  if (add_special_tokens) out.insert(out.end(), after_.begin(), after_.end());
  return out;
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
    if (skip_special_tokens && special_.contains(id)) continue;
    if (added_.contains(piece) && !ids_.contains(piece)) {
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
