// Regular expressions over paths, with Kiln's errors. For path_filter.cpp and key_remapper.cpp.
#pragma once

#include <regex>
#include <string>
#include <string_view>

namespace kiln::nn::detail {

inline constexpr size_t kMaxRegexPath = 4096;

// Throws ValueError for what is no regular expression.
std::regex make_regex(const char* op, const std::string& pattern);
// Throws ValueError for a path that is too long to be matched safely.
void check_regex_path(const char* op, std::string_view path);

}  // namespace kiln::nn::detail
