#include "kiln/nn/key_remapper.h"

#include "kiln/nn/regex.h"

namespace kiln::nn {

struct KeyRemapper::Rule {
  std::regex pattern;
  std::string replacement;
};

KeyRemapper::KeyRemapper(std::initializer_list<std::pair<std::string, std::string>> rules) {
  for (const auto& [pattern, replacement] : rules) add(pattern, replacement);
}

KeyRemapper& KeyRemapper::add(const std::string& pattern, const std::string& replacement) {
  rules_.push_back(
      std::make_shared<const Rule>(Rule{detail::make_regex("KeyRemapper", pattern), replacement}));
  return *this;
}

std::string KeyRemapper::operator()(std::string name) const {
  for (const auto& rule : rules_) {
    detail::check_regex_path("KeyRemapper", name);
    name = std::regex_replace(name, rule->pattern, rule->replacement);
  }
  return name;
}

}  // namespace kiln::nn
