// Regular expressions over names, with Kiln's errors. Internal.
#pragma once

#include <cstddef>
#include <regex>
#include <string>
#include <string_view>

namespace kiln::nn::detail {

// Note [Long names]. The library's matcher recurses for each character, and for each bracket around
// it: a long name from a file would overflow the stack. So names are measured first.
class Regex {
 public:
  // ECMAScript's syntax. `op` names the caller in messages and must outlive the expression. Throws
  // ValueError for what is no regular expression, and for a very long one.
  Regex(const char* op, const std::string& pattern);

  // Whether some part of the name matches. Throws ValueError for a name that is too long: more than
  // 1024 characters, fewer where a long group repeats.
  bool found_in(std::string_view name) const;
  // The name with each match replaced; $1 is the first group. Throws as above.
  std::string replaced(const std::string& name, const std::string& replacement) const;

 private:
  void check(std::string_view name) const;

  const char* op_;
  std::regex compiled_;
  size_t longest_;
};

}  // namespace kiln::nn::detail
