// KeyRemapper: renames tensors on their way into a module, by regular expressions.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kiln::nn {

// Each pair replaces what its expression matches, everywhere in the name; later pairs see what
// earlier ones made. $1 is the first group.
//   KeyRemapper remap = {{"^module\\.", ""}, {"layer(\\d+)", "layers.$1"}};
class KeyRemapper {
 public:
  KeyRemapper() = default;
  // Throws ValueError for what is no regular expression (ECMAScript).
  KeyRemapper(std::initializer_list<std::pair<std::string, std::string>> rules);
  KeyRemapper& add(const std::string& pattern, const std::string& replacement);

  std::string operator()(std::string name) const;
  bool empty() const { return rules_.empty(); }

 private:
  struct Rule;
  std::vector<std::shared_ptr<const Rule>> rules_;
};

}  // namespace kiln::nn
