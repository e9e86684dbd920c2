// Byte-level BPE: texts to token ids and back, by the tokenizer.json of GPT-2, Llama 3 and models
// like them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kiln/text/vocabulary.h"
#include "kiln/text/word_splitter.h"

namespace kiln::text {

// The ids equal those of the package tokenizers: added tokens are cut out, the rest is split into
// words, and within a word the pair of neighbours learned first is joined, again and again
// (Sennrich et al., 2016).
class ByteLevelBpe {
 public:
  // A file, or a folder that holds tokenizer.json. Throws IoError for a file that is missing,
  // malformed or larger than 256 MiB, NotImplementedError that names what it asks for and is not
  // there: normalizers, and ways to split a text that GPT-2, Llama 3 and Qwen 2 do not have.
  static ByteLevelBpe from_file(const std::string& path);
  // `subject` begins messages.
  static ByteLevelBpe from_json(std::string_view json, const std::string& subject = "ByteLevelBpe");

  // Throws ValueError for a text that is not UTF-8.
  std::vector<int64_t> encode(std::string_view text, bool add_special_tokens = true) const;
  // What is no UTF-8 becomes U+FFFD. Throws IndexError for an id that is none.
  std::string decode(std::span<const int64_t> ids, bool skip_special_tokens = true) const;

  int64_t size() const { return vocabulary_.size(); }
  std::optional<int64_t> find(std::string_view token) const { return vocabulary_.find(token); }
  // Throws IndexError.
  const std::string& token(int64_t id) const;

 private:
  struct Merge {
    int64_t rank, id;
  };
  ByteLevelBpe() = default;
  void read_model(const Json& model, const std::string& subject);
  void read_splits(const Json* values, const std::string& subject);
  void encode_part(std::string_view text, std::vector<int64_t>& out) const;
  void encode_word(std::string_view word, std::vector<int64_t>& out) const;

  Vocabulary vocabulary_;
  std::unordered_map<uint64_t, Merge> merges_;  // by both ids
  std::optional<int64_t> unknown_;
  bool whole_words_ = false;   // a word that is a token is not split
  bool prefix_space_ = false;  // before the text
  std::optional<WordRule> rule_;
};

}  // namespace kiln::text
