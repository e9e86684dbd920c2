// The names of a module's state.
#pragma once

#include <string>
#include <vector>

#include "kiln/nn/module.h"

namespace kiln::test {

inline std::vector<std::string> state_keys(nn::Module& module) {
  std::vector<std::string> out;
  for (const auto& [name, value] : module.state_dict()) out.push_back(name);
  return out;
}

}  // namespace kiln::test
