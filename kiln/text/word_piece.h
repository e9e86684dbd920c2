// WordPiece: texts to token ids and back, by the tokenizer.json of BERT and models like it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/text/vocabulary.h"

namespace kiln::text {

// The ids equal those of the package tokenizers: added tokens are cut out, the rest is cleaned and
// split at spaces and marks; a word becomes the longest token that begins it, then the longest that
// goes on, and so forth (Schuster and Nakajima, 2012). Kinds of letters are Unicode 14's.
class WordPiece {
 public:
  // A file, or a folder that holds tokenizer.json. Throws IoError for a file that is missing,
  // malformed or larger than 256 MiB, NotImplementedError that names what it asks for and is not
  // there: normalizers but BertNormalizer and Lowercase, pre-tokenizers but BertPreTokenizer.
  static WordPiece from_file(const std::string& path);
  // `subject` begins messages.
  static WordPiece from_json(std::string_view json, const std::string& subject = "WordPiece");

  // Throws ValueError for a text that is not UTF-8.
  std::vector<int64_t> encode(std::string_view text, bool add_special_tokens = true) const;
  // Words with spaces between them; what was cleaned away does not come back. Throws IndexError for
  // an id that is none.
  std::string decode(std::span<const int64_t> ids, bool skip_special_tokens = true) const;

  int64_t size() const { return vocabulary_.size(); }
  std::optional<int64_t> find(std::string_view token) const { return vocabulary_.find(token); }
  // Throws IndexError.
  const std::string& token(int64_t id) const;

 private:
  WordPiece() = default;
  void read_model(const Json& model, const std::string& subject);
  void read_normalizer(const Json* values, const std::string& subject);
  void read_decoder(const Json* values, const std::string& subject);
  std::u32string normalized(std::string_view text) const;
  void encode_word(std::u32string_view word, std::vector<int64_t>& out) const;

  Vocabulary vocabulary_;
  int64_t unknown_ = 0;
  std::string prefix_ = "##";  // of a token that goes on
  int64_t longest_ = 100;      // letters of a word
  bool clean_ = false;         // no controls, and every space the same
  bool split_chinese_ = false;
  bool strip_accents_ = false;
  bool small_letters_ = false;
  bool split_words_ = false;
  // Tokens with this prefix are joined to the one before; without a value none are.
  std::optional<std::string> joined_prefix_;
  bool cleans_up_ = true;  // no space before some marks
};

}  // namespace kiln::text
