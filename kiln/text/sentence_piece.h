// SentencePiece: texts to token ids and back, by the `.model` files of Kudo and Richardson (2018),
// as Llama 2, Gemma, T5 and others have them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kiln/text/normalizer.h"

namespace kiln::text {

// The ids equal those of the package sentencepiece: the likeliest pieces of a unigram model
// (Viterbi's algorithm) or the merges of a BPE model, with its rules of normalization, bytes in the
// place of unknown letters, and pieces that users have defined.
class SentencePiece {
 public:
  enum class Kind : uint8_t { normal = 1, unknown, control, user_defined, unused, byte };
  struct Piece {
    std::string text;
    float score = 0;
    Kind kind = Kind::normal;
  };

  // Throws IoError for a file that is missing, malformed or larger than 256 MiB,
  // NotImplementedError for models of words or letters.
  static SentencePiece from_file(const std::string& path);
  // `subject` begins messages.
  static SentencePiece from_bytes(std::string_view bytes,
                                  const std::string& subject = "SentencePiece");

  // Its tables point into it.
  SentencePiece(const SentencePiece&) = delete;
  SentencePiece& operator=(const SentencePiece&) = delete;
  SentencePiece(SentencePiece&&) = default;
  SentencePiece& operator=(SentencePiece&&) = default;

  // Bytes that are no UTF-8 count as the letter U+FFFD.
  std::vector<int64_t> encode(std::string_view text, bool add_bos = false,
                              bool add_eos = false) const;
  // Control pieces have no text; unknown ones are " \u2047 ". Throws IndexError for an id that is
  // none.
  std::string decode(std::span<const int64_t> ids) const;

  int64_t size() const { return static_cast<int64_t>(pieces_.size()); }
  // Throws IndexError.
  const Piece& piece(int64_t id) const;
  std::optional<int64_t> find(std::string_view text) const;
  int64_t unk_id() const { return unknown_; }
  // -1 where the model has none.
  int64_t bos_id() const { return bos_; }
  int64_t eos_id() const { return eos_; }
  int64_t pad_id() const { return pad_; }

 private:
  struct Word {
    std::string_view text;
    int64_t id;
  };
  struct Spec;

  SentencePiece() = default;
  void index(const std::string& subject, const Spec& spec);
  std::vector<Word> unigram(std::string_view text) const;
  std::vector<Word> merged(std::string_view text) const;
  int64_t id_of(std::string_view text) const;
  int64_t control(std::string_view text) const;

  std::vector<Piece> pieces_;
  std::unordered_map<std::string_view, int64_t> words_;     // what a text can be cut into
  std::unordered_map<std::string_view, int64_t> reserved_;  // the others
  std::vector<int64_t> bytes_;                              // the pieces of bytes, or empty
  Normalizer normalizer_;
  size_t longest_ = 0;  // bytes of the longest word
  float least_ = 0, most_ = 0;
  bool is_bpe_ = false;
  int64_t unknown_ = 0, bos_ = -1, eos_ = -1, pad_ = -1;
  std::string unknown_text_;
};

}  // namespace kiln::text
