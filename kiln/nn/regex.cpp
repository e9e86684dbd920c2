#include "kiln/nn/regex.h"

#include <algorithm>

#include "kiln/core/error.h"
#include "kiln/core/utf8.h"

namespace kiln::nn::detail {

namespace {

constexpr size_t kLongestName = 1024;
constexpr size_t kLongestPattern = 2000;
// Characters times how often the matcher recurses for one: about 2 MiB of stack, four times that in
// the sanitizers' build.
constexpr size_t kMostSteps = 8 * kLongestName;

// How often the matcher recurses for a character, at most. Inside a group that repeats, it may pass
// every bracket, alternative and quantifier of the expression for each character of the name; else
// it passes each of them once.
size_t steps_of(std::string_view pattern) {
  size_t steps = 1;
  bool repeats = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\') {
      ++i;
    } else if (std::string_view("(|?*+{").find(c) != std::string_view::npos) {
      ++steps;
      if (c != '(' && c != '|' && c != '?' && i > 0 && pattern[i - 1] == ')') repeats = true;
    }
  }
  return repeats ? steps : 1;
}

std::regex compiled(const char* op, const std::string& pattern) {
  if (pattern.size() > kLongestPattern) {
    throw_error<ValueError>(op, ": the regular expression is too long; got ", pattern.size(),
                            " characters; expected at most ", kLongestPattern);
  }
  try {
    return std::regex(pattern, std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error& error) {
    throw_error<ValueError>(op, ": no regular expression; got '", printable(pattern, 200), "' (",
                            error.what(), "); expected one in ECMAScript's syntax");
  }
}

}  // namespace

Regex::Regex(const char* op, const std::string& pattern)
    : op_(op),
      compiled_(compiled(op, pattern)),
      longest_(std::min(kLongestName, kMostSteps / steps_of(pattern))) {}

void Regex::check(std::string_view name) const {
  if (name.size() > longest_) {
    throw_error<ValueError>(op_, ": a name is too long for a regular expression; got ", name.size(),
                            " characters; expected at most ", longest_);
  }
}

bool Regex::found_in(std::string_view name) const {
  check(name);
  return std::regex_search(name.begin(), name.end(), compiled_);
}

std::string Regex::replaced(const std::string& name, const std::string& replacement) const {
  check(name);
  return std::regex_replace(name, compiled_, replacement);
}

}  // namespace kiln::nn::detail
