// How GPT-2 and Llama 3 cut a text into words before they merge bytes. Internal to kiln/text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace kiln::text {

enum class WordRule : uint8_t {
  gpt2,    // words with the space before them; runs of digits
  llama3,  // the same, with any mark before a word; up to three digits; ends of lines by themselves
  qwen2,   // as llama3, but each digit by itself
};

// The regular expressions that tokenizer.json files have for these. Null for another.
const WordRule* word_rule_of(std::string_view expression);
inline constexpr std::string_view kGpt2Expression =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Parts of `text`, which must be UTF-8, that together are all of it.
std::vector<std::string_view> split_words(std::string_view text, WordRule rule);

}  // namespace kiln::text
