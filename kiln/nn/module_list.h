// ModuleList: modules of any class in a list, for a forward that is written by hand.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kiln/nn/any_module.h"

namespace kiln::nn {

// For modules of one class, a std::vector of them among the fields of KILN_MODULE does the same
// with their type known.
class ModuleList : public Module {
 public:
  ModuleList() = default;
  ModuleList(const ModuleList& other);
  ModuleList(ModuleList&&) noexcept = default;
  ModuleList& operator=(const ModuleList& other);
  ModuleList& operator=(ModuleList&&) noexcept = default;
  KILN_MODULE_WITHOUT_VISIT(ModuleList)
  void visit_members(MemberVisitor& visitor) override;
  bool folds_equal_children() const override { return true; }

  template <class M>
    requires std::is_base_of_v<Module, std::decay_t<M>>
  ModuleList& push_back(M&& module) {
    return push_back(std::make_shared<std::decay_t<M>>(std::forward<M>(module)));
  }
  ModuleList& push_back(std::shared_ptr<Module> module);

  size_t size() const { return modules_.size(); }
  // Negative indices count from the end; IndexError out of range.
  Module& operator[](int64_t index) const;
  // Throws TypeError when the module there is no M.
  template <class M>
  M& at(int64_t index) const {
    M* module = (*this)[index].template as<M>();
    if (module == nullptr) detail::throw_wrong_class("ModuleList", index, (*this)[index]);
    return *module;
  }

 private:
  std::vector<std::shared_ptr<Module>> modules_;
};

}  // namespace kiln::nn
