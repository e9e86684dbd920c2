// Normalizer: what SentencePiece does to a text before it cuts it. Internal to kiln/text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::text {

// U+2581, which stands for a space.
inline constexpr std::string_view kSpace = "\xe2\x96\x81";
// U+FFFD, which stands for what is no UTF-8.
inline constexpr std::string_view kBroken = "\xef\xbf\xbd";

// How many bytes the letter at the start of `text` has; 0 where there is no UTF-8. `text` is not
// empty.
size_t letter_length(std::string_view text);

// How many bytes at the start of `text`, which is no letter, one U+FFFD stands for: those that
// begin a letter and go no further (Unicode's "maximal subparts").
size_t broken_length(std::string_view text);

class Normalizer {
 public:
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  bool suffix = false;                    // the space goes behind a word, not before it
  std::vector<std::string> user_defined;  // stay as they are

  // The map of a model file: the size of a trie, the trie (Aoe's double array, in the form of
  // Darts), and the texts that replace what it finds. False when it is cut off.
  bool set_map(std::string_view map);
  // To be called when all is set.
  void prepare();

  std::string normalized(std::string_view text) const;

 private:
  struct Prefix {
    std::string_view text;  // what stands for it
    size_t length;          // of it
  };
  Prefix prefix(std::string_view text) const;

  std::vector<uint32_t> trie_;
  std::string texts_;
};

}  // namespace kiln::text
