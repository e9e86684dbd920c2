// ModuleList: modules of any class in a list, for a forward that is written by hand.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "kiln/nn/any_module.h"
#include "kiln/nn/module_entries.h"

namespace kiln::nn {

// For modules of one class, a std::vector of them among the fields of KILN_MODULE does the same
// with their type known.
class ModuleList : public Module {
 public:
  ModuleList() = default;
  // ModuleList(Linear(2, 3), ReLU()). A single ModuleList is copied or moved.
  template <detail::ModuleLike... M>
    requires(sizeof...(M) > 0 &&
             !(sizeof...(M) == 1 && (std::is_same_v<std::decay_t<M>, ModuleList> && ...)))
  explicit ModuleList(M&&... modules) {
    (push_back(std::forward<M>(modules)), ...);
  }
  ModuleList(const ModuleList& other);
  ModuleList(ModuleList&&) noexcept = default;
  ModuleList& operator=(const ModuleList& other);
  ModuleList& operator=(ModuleList&&) noexcept = default;
  void visit_members(MemberVisitor& visitor) override { entries_.visit(visitor); }
  bool folds_equal_children() const override { return true; }

  template <detail::ModuleLike M>
  ModuleList& push_back(M&& module) {
    entries_.push_back("ModuleList",
                       detail::checked_part("ModuleList", *this,
                                            detail::as_shared_module(std::forward<M>(module))));
    return *this;
  }
  template <detail::ModuleLike M>
  ModuleList& append(M&& module) {
    return push_back(std::forward<M>(module));
  }
  // The modules of the other one, shared with it.
  ModuleList& extend(const ModuleList& other);
  template <detail::ModuleLike M>
  ModuleList& insert(int64_t index, M&& module) {
    entries_.insert("ModuleList", index,
                    detail::checked_part("ModuleList", *this,
                                         detail::as_shared_module(std::forward<M>(module))));
    return *this;
  }
  template <detail::ModuleLike M>
  ModuleList& set(int64_t index, M&& module) {
    entries_.set("ModuleList", index,
                 detail::checked_part("ModuleList", *this,
                                      detail::as_shared_module(std::forward<M>(module))));
    return *this;
  }
  std::shared_ptr<Module> pop(int64_t index = -1) { return entries_.take("ModuleList", index); }
  void erase(int64_t index) { pop(index); }
  // Python's [start:stop:step]; the modules are shared.
  ModuleList slice(std::optional<int64_t> start = {}, std::optional<int64_t> stop = {},
                   int64_t step = 1) const;

  size_t size() const { return entries_.size(); }
  bool empty() const { return size() == 0; }
  // Negative indices count from the end; IndexError out of range.
  Module& operator[](int64_t index) const { return *entries_.at("ModuleList", index); }
  // Throws TypeError when the module there is no M.
  template <class M>
  M& at(int64_t index) const {
    M* module = (*this)[index].template as<M>();
    if (module == nullptr) {
      detail::throw_wrong_class("ModuleList", index, (*this)[index], M::kiln_class().name);
    }
    return *module;
  }
  detail::ModuleIterator begin() const { return detail::ModuleIterator(entries_.items().data()); }
  detail::ModuleIterator end() const {
    return detail::ModuleIterator(entries_.items().data() + size());
  }

 private:
  detail::ModuleEntries entries_;
  KILN_MODULE_DECLARED_WITHOUT_OPTIONS(ModuleList)
};

}  // namespace kiln::nn
