// What tokenizers know of Unicode: kinds of code points, small forms, what accented letters consist
// of. Internal to kiln/text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kiln::text {

bool is_letter(uint32_t code);       // categories L*
bool is_number(uint32_t code);       // N*
bool is_accent(uint32_t code);       // Mn
bool is_punctuation(uint32_t code);  // P*
bool is_control(uint32_t code);      // Cc, Cf, Co
// What separates words: Z*, and the controls 9 to 13, 0x85.
bool is_space(uint32_t code);

// Appends the small form of a letter, or the letter itself.
void append_small(uint32_t code, std::u32string& out);
// Letters without their accents: Unicode's normalization form D, of which accents (Mn) are left
// out.
std::u32string without_accents(std::u32string_view text);

// `text` must be UTF-8.
std::u32string code_points(std::string_view text);
void append_utf8(uint32_t code, std::string& out);
std::string utf8(std::u32string_view text);

}  // namespace kiln::text
