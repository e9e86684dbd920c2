#include "kiln/nn/regex.h"

#include <algorithm>

#include "kiln/core/error.h"
#include "kiln/core/utf8.h"

namespace kiln::nn::detail {

namespace {

constexpr size_t kLongestName = 4096;
constexpr size_t kLongestPattern = 2000;
// Characters times levels of brackets: about 4 MiB of stack.
constexpr size_t kMostSteps = 4 * kLongestName;

// How deeply round brackets nest.
size_t depth_of(std::string_view pattern) {
  size_t depth = 0;
  size_t deepest = 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\') ++i;
    if (i >= pattern.size()) break;
    if (pattern[i] == '(') deepest = std::max(deepest, ++depth);
    if (pattern[i] == ')' && depth > 0) --depth;
  }
  return deepest;
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
      longest_(std::min(kLongestName, kMostSteps / (1 + depth_of(pattern)))) {}

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
