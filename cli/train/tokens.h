// Tokens: how texts become the numbers that a model takes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "cli/train/fields.h"
#include "kiln/text/byte_level_bpe.h"
#include "kiln/text/word_piece.h"

namespace kiln::cli {

// 0 is padding and 1 what is not in the vocabulary, before the tokens themselves.
class Tokens {
 public:
  // Reads "tokens" (word, character, byte, bpe or wordpiece), "tokenizer" (for the last two:
  // tokenizer.json), "vocabulary" (most tokens) and "least" (how often a word must occur).
  static Tokens read(Fields& fields, const std::string& folder, const char* preset);

  // What facts() gave. `tokenizer`: its file, for bpe and wordpiece, where it is not where it was;
  // may be empty. Throws ValueError where that is malformed, IoError where there is no such file.
  static Tokens from_facts(const Json& facts, const std::string& tokenizer = "");

  // Of a vocabulary of its own, what these texts have: the most frequent.
  void learn(const std::vector<std::string_view>& texts);
  std::vector<int64_t> encode(std::string_view text) const;
  std::string decode(const std::vector<int64_t>& ids) const;
  // With padding and the unknown.
  int64_t size() const;
  const std::string& kind() const { return kind_; }
  Json facts() const;

  // The ids of the first `length` tokens, padding behind them; a text without tokens has one that
  // is unknown.
  std::vector<int64_t> padded(std::string_view text, int64_t length) const;

 private:
  void open(const std::string& file);
  void number_words();
  std::vector<std::string> pieces(std::string_view text) const;

  std::string kind_;
  int64_t most_ = 0;
  int64_t least_ = 1;
  std::string file_;
  std::shared_ptr<const std::variant<text::ByteLevelBpe, text::WordPiece>> tokenizer_;
  std::vector<std::string> words_;
  std::unordered_map<std::string, int64_t> ids_;
};

}  // namespace kiln::cli
