#include "kiln/nn/module_registry.h"

#include <algorithm>

#include "kiln/nn/module_tree.h"

namespace kiln::nn::detail {
namespace {

template <class T>
std::shared_ptr<T> set(std::vector<std::pair<std::string, std::shared_ptr<T>>>& parts,
                       const std::string& name, T value) {
  for (auto& [known, part] : parts) {
    if (known == name) {
      *part = std::move(value);
      return part;
    }
  }
  parts.emplace_back(name, std::make_shared<T>(std::move(value)));
  return parts.back().second;
}

}  // namespace

ModuleRegistry::ModuleRegistry(const ModuleRegistry& other) {
  for (const auto& [name, part] : other.params_) {
    params_.emplace_back(name, std::make_shared<Param<Tensor>>(*part));
  }
  for (const auto& [name, part] : other.buffers_) {
    buffers_.emplace_back(name, std::make_shared<Buffer>(*part));
  }
  CloneMemo memo;
  for (const auto& [name, part] : other.modules_) {
    modules_.emplace_back(name, part == nullptr ? nullptr : memo.clone(part));
  }
}

void ModuleRegistry::visit(MemberVisitor& visitor) {
  for (auto& [name, part] : params_) visit_member(visitor, name, *part);
  for (auto& [name, part] : buffers_) visitor.buffer(name, *part);
  for (auto& [name, part] : modules_) visit_member(visitor, name, part);
}

std::shared_ptr<Param<Tensor>> ModuleRegistry::set_param(const std::string& name,
                                                         Param<Tensor> value) {
  return set(params_, name, std::move(value));
}

std::shared_ptr<Buffer> ModuleRegistry::set_buffer(const std::string& name, Buffer value) {
  return set(buffers_, name, std::move(value));
}

void ModuleRegistry::set_module(const std::string& name, std::shared_ptr<Module> value) {
  for (auto& [known, part] : modules_) {
    if (known == name) {
      part = std::move(value);
      return;
    }
  }
  modules_.emplace_back(name, std::move(value));
}

bool ModuleRegistry::has_module(std::string_view name) const {
  return std::any_of(modules_.begin(), modules_.end(),
                     [name](const auto& known) { return known.first == name; });
}

}  // namespace kiln::nn::detail
