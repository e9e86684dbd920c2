// ModuleDict: modules of any class by name, in the order of insertion.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/nn/module_entries.h"

namespace kiln::nn {

// ModuleDict({{"encoder", Linear(2, 3)}, {"decoder", Linear(3, 2)}})
class ModuleDict : public Module {
 public:
  ModuleDict() = default;
  // What stands for a module: one that is moved or copied, or a shared pointer.
  struct Entry {
    template <detail::ModuleLike M>
    Entry(M&& given) : module(detail::as_shared_module(std::forward<M>(given))) {}
    std::shared_ptr<Module> module;
  };
  explicit ModuleDict(std::initializer_list<std::pair<std::string, Entry>> modules);
  ModuleDict(const ModuleDict& other);
  ModuleDict(ModuleDict&&) noexcept = default;
  ModuleDict& operator=(const ModuleDict& other);
  ModuleDict& operator=(ModuleDict&&) noexcept = default;
  void visit_members(MemberVisitor& visitor) override { entries_.visit(visitor); }

  // Adds a module, or puts it in the place of the one of that name. Throws KeyError for a name that
  // is empty or contains a dot, TypeError for a null pointer.
  template <detail::ModuleLike M>
  ModuleDict& set(const std::string& name, M&& module) {
    entries_.set("ModuleDict", name,
                 detail::checked_part("ModuleDict", *this,
                                      detail::as_shared_module(std::forward<M>(module))));
    return *this;
  }
  // Sets all that the other one has; the modules are shared with it.
  ModuleDict& update(const ModuleDict& other);
  // Each throws KeyError when there is no module of that name.
  std::shared_ptr<Module> pop(std::string_view name) { return entries_.take("ModuleDict", name); }
  void erase(std::string_view name) { pop(name); }
  Module& operator[](std::string_view name) const { return *entries_.at("ModuleDict", name); }
  // Throws TypeError when the module there is no M.
  template <class M>
  M& at(std::string_view name) const {
    M* module = (*this)[name].template as<M>();
    if (module == nullptr) {
      detail::throw_wrong_class("ModuleDict", std::string(name), (*this)[name],
                                M::kiln_class().name);
    }
    return *module;
  }

  bool contains(std::string_view name) const { return entries_.find(name) != nullptr; }
  size_t size() const { return entries_.size(); }
  bool empty() const { return size() == 0; }
  void clear() { entries_.clear(); }
  std::vector<std::string> keys() const;
  // for (auto& [name, module] : dict.items())
  const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& items() const {
    return entries_.items();
  }
  // for (Module& module : dict)
  detail::ModuleIterator begin() const { return detail::ModuleIterator(entries_.items().data()); }
  detail::ModuleIterator end() const {
    return detail::ModuleIterator(entries_.items().data() + size());
  }

 private:
  detail::ModuleEntries entries_;
  KILN_MODULE_DECLARED_WITHOUT_OPTIONS(ModuleDict)
};

}  // namespace kiln::nn
