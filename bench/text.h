// Numbers and text as the table and the page show them.
#pragma once

#include <string>

namespace kiln::bench {

[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...);

// Three significant digits: "1.23", "12.3", "123".
std::string three_digits(double value);

// Three digits and a unit: "1.23 us", "45.6 ms".
std::string format_time(double seconds);

std::string escape_html(const std::string& text);

}  // namespace kiln::bench
