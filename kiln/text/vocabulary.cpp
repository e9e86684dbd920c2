#include "kiln/text/vocabulary.h"

#include "kiln/core/utf8.h"
#include "kiln/text/tokenizer_json.h"

namespace kiln::text {

void Vocabulary::read(const Json& file, const std::string& subject) {
  for (const auto& [token, id] :
       member<Json::Object>(file.find("model"), "vocab", "an object", subject)) {
    learned_.emplace(token, id_of(&id, subject));
  }
  if (learned_.empty()) throw_error<IoError>(subject, ": the vocabulary is empty");
  read_added(file.find("added_tokens"), subject);
  for (const auto& [token, id] : learned_) tokens_[id] = token;
  for (const auto& [token, id] : added_) tokens_[id] = token;
  read_wrapping(file.find("post_processor"), subject);
}

void Vocabulary::read_added(const Json* added, const std::string& subject) {
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

void Vocabulary::read_wrapping(const Json* values, const std::string& subject) {
  if (!is_there(values)) return;
  const std::string& type = text_member(values, "type", subject);
  if (type == "ByteLevel") return;
  if (type == "Sequence") {
    for (const Json& step : member<Json::Array>(values, "processors", "a list", subject)) {
      read_wrapping(&step, subject);
    }
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    for (const auto& [name, ids] : {std::pair("cls", &before_), std::pair("sep", &after_)}) {
      const auto& pair = member<Json::Array>(values, name, "a token and its id", subject);
      ids->push_back(id_of(pair.size() == 2 ? &pair[1] : nullptr, subject));
    }
  } else if (type == "TemplateProcessing") {
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
  } else {
    throw_error<NotImplementedError>(
        subject,
        ": post_processor must be Sequence, ByteLevel, BertProcessing, RobertaProcessing or "
        "TemplateProcessing; got '",
        printable(type), "'");
  }
}

std::optional<int64_t> Vocabulary::find(std::string_view token) const {
  if (const auto found = added_.find(token); found != added_.end()) return found->second;
  const auto found = learned_.find(std::string(token));
  return found == learned_.end() ? std::nullopt : std::optional(found->second);
}

const std::string* Vocabulary::token(int64_t id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : &found->second;
}

Vocabulary::Added Vocabulary::added_at(std::string_view text) const {
  Added best{0, 0};
  if (!begins_added_[static_cast<unsigned char>(text[0])]) return best;
  for (const auto& [token, id] : added_) {
    if (token.size() > best.length && text.starts_with(token)) best = {token.size(), id};
  }
  return best;
}

std::vector<int64_t> Vocabulary::encode(const char* who, std::string_view text,
                                        bool add_special_tokens,
                                        const EncodePart& encode_part) const {
  if (!is_utf8(text)) throw_error<ValueError>(who, ": the text is not UTF-8");
  std::vector<int64_t> out;
  if (add_special_tokens) out = before_;
  size_t start = 0;
  for (size_t at = 0; at < text.size() && !added_.empty();) {
    const Added added = added_at(text.substr(at));
    if (added.length == 0) {
      ++at;
      continue;
    }
    if (at > start) encode_part(text.substr(start, at - start), out);
    out.push_back(added.id);
    start = at += added.length;
  }
  if (start < text.size()) encode_part(text.substr(start), out);
  if (add_special_tokens) out.insert(out.end(), after_.begin(), after_.end());
  return out;
}

}  // namespace kiln::text
