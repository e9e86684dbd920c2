// ModuleEntries: named modules in order, what Sequential, ModuleList and ModuleDict hold.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/nn/module.h"

namespace kiln::nn::detail {

// Copies are deep: a module that occurs twice is copied once. Errors name `op`.
class ModuleEntries {
 public:
  using Item = std::pair<std::string, std::shared_ptr<Module>>;

  ModuleEntries() = default;
  ModuleEntries(const ModuleEntries& other);
  ModuleEntries(ModuleEntries&&) noexcept = default;
  ModuleEntries& operator=(const ModuleEntries& other) { return *this = ModuleEntries(other); }
  ModuleEntries& operator=(ModuleEntries&&) noexcept = default;

  const std::vector<Item>& items() const { return items_; }
  size_t size() const { return items_.size(); }
  void visit(MemberVisitor& visitor);

  // By position; negative ones count from the end. IndexError out of range.
  const std::shared_ptr<Module>& at(const char* op, int64_t index) const;
  void set(const char* op, int64_t index, std::shared_ptr<Module> module);
  // Before `index`, which may be the size. Elements that are named by their position are renamed.
  void insert(const char* op, int64_t index, std::shared_ptr<Module> module);
  std::shared_ptr<Module> take(const char* op, int64_t index);
  // The modules of Python's [start:stop:step], shared.
  ModuleEntries slice(const char* op, std::optional<int64_t> start, std::optional<int64_t> stop,
                      int64_t step) const;
  void push_back(const char* op, std::shared_ptr<Module> module);

  // By name. KeyError when there is none, or the name is empty or has a dot.
  const std::shared_ptr<Module>* find(std::string_view name) const;
  const std::shared_ptr<Module>& at(const char* op, std::string_view name) const;
  void set(const char* op, const std::string& name, std::shared_ptr<Module> module);
  void add(const char* op, const std::string& name, std::shared_ptr<Module> module);  // a new name
  std::shared_ptr<Module> take(const char* op, std::string_view name);
  void clear() { items_.clear(); }

 private:
  size_t position(const char* op, int64_t index, size_t end) const;
  void rename_numbers();

  std::vector<Item> items_;
};

// Throws TypeError for null.
std::shared_ptr<Module> checked_module(const char* op, std::shared_ptr<Module> module);
// The module, unless it is `owner` or contains it: those throw ValueError. One that nobody else
// holds is neither, and is not looked into.
std::shared_ptr<Module> checked_part(const char* op, const Module& owner,
                                     const std::shared_ptr<Module>& module);
[[noreturn]] void throw_wrong_class(const char* op, const std::string& which, const Module& module,
                                    const char* expected);

// A module from whatever stands for one: a module, moved or copied, or a shared pointer.
template <class M>
std::shared_ptr<Module> as_shared_module(M&& module) {
  if constexpr (std::is_base_of_v<Module, std::decay_t<M>>) {
    return std::make_shared<std::decay_t<M>>(std::forward<M>(module));
  } else {
    return std::forward<M>(module);
  }
}
template <class M>
concept ModuleLike =
    std::is_base_of_v<Module, std::decay_t<M>> || std::is_convertible_v<M, std::shared_ptr<Module>>;

// Iterates over items as modules.
class ModuleIterator {
 public:
  using value_type = Module;
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::forward_iterator_tag;
  using pointer = Module*;
  using reference = Module&;

  explicit ModuleIterator(const ModuleEntries::Item* item = nullptr) : item_(item) {}
  Module& operator*() const { return *item_->second; }
  Module* operator->() const { return item_->second.get(); }
  ModuleIterator& operator++() {
    ++item_;
    return *this;
  }
  ModuleIterator operator++(int) { return ModuleIterator(item_++); }
  friend bool operator==(const ModuleIterator&, const ModuleIterator&) = default;

 private:
  const ModuleEntries::Item* item_;
};

}  // namespace kiln::nn::detail
