// Numbers and tables as text for a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::train {

// "98.50 %" of 0.985; "-" when not finite.
std::string percent(double fraction);
// "24,000".
std::string grouped(int64_t number);
// "0.0312" with this many digits after the point; "-" when not finite.
std::string fixed(double value, int digits);
// "7.3 s", "2:05", "1:02:05"; "-" when not finite.
std::string duration(double seconds);

// Columns as wide as their widest cell, two spaces apart: the first aligned left, the others right.
// Each line ends in a newline. Cells hold one character per column of the terminal.
std::string text_table(const std::vector<std::vector<std::string>>& rows);

// How many columns of a terminal this UTF-8 text takes, when none of its characters is wide.
size_t text_width(std::string_view utf8);

// `fraction` of `width` columns as a bar: eighths of a block, or '#' without Unicode.
std::string text_bar(double fraction, int width, bool unicode);

}  // namespace kiln::train
