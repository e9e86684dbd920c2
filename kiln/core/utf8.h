// Whether text is UTF-8, and text that is fit for a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kiln {

// As RFC 3629 defines it: no surrogates, nothing longer than it needs to be.
bool is_utf8(std::string_view text);

// `text` fit for a message: UTF-8 of at most `longest` bytes and "...". What is unprintable, or no
// UTF-8, becomes '?'.
std::string printable(std::string_view text, size_t longest = 80);

}  // namespace kiln
