#include "kiln/nn/key_remapper.h"

#include "kiln/nn/regex.h"

namespace kiln::nn {

struct KeyRemapper::Rule {
  detail::Regex pattern;
  std::string replacement;
};

KeyRemapper::KeyRemapper(std::initializer_list<std::pair<std::string, std::string>> rules) {
  for (const auto& [pattern, replacement] : rules) add(pattern, replacement);
}

KeyRemapper& KeyRemapper::add(const std::string& pattern, const std::string& replacement) {
  rules_.push_back(
      std::make_shared<const Rule>(Rule{detail::Regex("KeyRemapper", pattern), replacement}));
  return *this;
}

std::string KeyRemapper::operator()(std::string name) const {
  for (const auto& rule : rules_) name = rule->pattern.replaced(name, rule->replacement);
  return name;
}

}  // namespace kiln::nn
