// Vocabulary: what the tokenizer.json files of all models have.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kiln {
class Json;
}

namespace kiln::text {

// Tokens and their ids: those that a model learned, and those that were added, which are cut out of
// a text before it is looked at. Besides, the ids that a model wants around a text.
class Vocabulary {
 public:
  // Reads model.vocab, added_tokens and post_processor of a whole file. Throws IoError that begins
  // with `subject`, and NotImplementedError for a post_processor that is not there.
  void read(const Json& file, const std::string& subject);

  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  std::optional<int64_t> find(std::string_view token) const;
  // Null for an id that is none.
  const std::string* token(int64_t id) const;
  // Among those that the model learned.
  const std::unordered_map<std::string, int64_t>& learned() const { return learned_; }
  bool is_added(const std::string& token) const { return added_.contains(token); }
  // Left out of texts unless asked for: the end of a text, padding.
  bool is_special(int64_t id) const { return special_.contains(id); }

  // Calls encode_part(part, ids) for what lies between added tokens, the longest of which is taken
  // where several begin. Throws ValueError that begins with `who` for a text that is not UTF-8.
  using EncodePart = std::function<void(std::string_view, std::vector<int64_t>&)>;
  std::vector<int64_t> encode(const char* who, std::string_view text, bool add_special_tokens,
                              const EncodePart& encode_part) const;

 private:
  struct Added {
    size_t length;  // 0: none begins here
    int64_t id;
  };
  void read_added(const Json* added, const std::string& subject);
  void read_wrapping(const Json* values, const std::string& subject);
  Added added_at(std::string_view text) const;

  std::unordered_map<std::string, int64_t> learned_;
  std::map<int64_t, std::string> tokens_;
  std::map<std::string, int64_t, std::less<>> added_;
  std::array<bool, 256> begins_added_{};  // by a token's first byte
  std::set<int64_t> special_;
  std::vector<int64_t> before_, after_;
};

}  // namespace kiln::text
