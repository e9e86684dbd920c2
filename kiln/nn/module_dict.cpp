#include "kiln/nn/module_dict.h"

namespace kiln::nn {

ModuleDict::ModuleDict(std::initializer_list<std::pair<std::string, Entry>> modules) {
  for (const auto& [name, entry] : modules) set(name, entry.module);
}

ModuleDict::ModuleDict(const ModuleDict& other) : Module(other), entries_(other.entries_) {}

ModuleDict& ModuleDict::operator=(const ModuleDict& other) {
  if (this != &other) *this = ModuleDict(other);
  return *this;
}

ModuleDict& ModuleDict::update(const ModuleDict& other) {
  if (this == &other) return *this;
  for (const auto& [name, module] : other.items()) entries_.set("ModuleDict", name, module);
  return *this;
}

std::vector<std::string> ModuleDict::keys() const {
  std::vector<std::string> out;
  for (const auto& [name, module] : items()) out.push_back(name);
  return out;
}

KILN_MODULE_DEFINED_WITHOUT_VISIT(ModuleDict)

}  // namespace kiln::nn
