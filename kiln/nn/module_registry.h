// ModuleRegistry: the parts of a module that are registered at run time.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kiln/nn/module.h"

namespace kiln::nn::detail {

// Parts stay where they are in memory as others come.
class ModuleRegistry {
 public:
  ModuleRegistry() = default;
  // Copies are independent; modules registered twice stay one module.
  ModuleRegistry(const ModuleRegistry& other);
  ModuleRegistry& operator=(const ModuleRegistry&) = delete;

  void visit(MemberVisitor& visitor);

  std::shared_ptr<Param<Tensor>> set_param(const std::string& name, Param<Tensor> value);
  std::shared_ptr<Buffer> set_buffer(const std::string& name, Buffer value);
  void set_module(const std::string& name, std::shared_ptr<Module> value);
  // Also a name without a module.
  bool has_module(std::string_view name) const;

 private:
  template <class T>
  using Named = std::vector<std::pair<std::string, std::shared_ptr<T>>>;

  Named<Param<Tensor>> params_;
  Named<Buffer> buffers_;
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> modules_;
};

}  // namespace kiln::nn::detail
