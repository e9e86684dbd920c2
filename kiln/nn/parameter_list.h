// ParameterList and ParameterDict: parameters in a list, and by name.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/nn/module.h"

namespace kiln::nn {

namespace detail {

// Named parameters in order. They stay where they are in memory as others come and go.
class ParameterEntries {
 public:
  using Item = std::pair<std::string, std::unique_ptr<Param<Tensor>>>;

  ParameterEntries() = default;
  ParameterEntries(const ParameterEntries& other);
  ParameterEntries(ParameterEntries&&) noexcept = default;
  ParameterEntries& operator=(const ParameterEntries&) = delete;
  ParameterEntries& operator=(ParameterEntries&&) noexcept = default;

  std::vector<Item> items;

  void visit(MemberVisitor& visitor);
  Param<Tensor>* find(std::string_view name) const;
  // Replaces or adds.
  Param<Tensor>& set(const std::string& name, Param<Tensor> param);
  std::string describe() const;  // the lines that PyTorch prints
};

}  // namespace detail

// A tensor becomes a parameter as Param<Tensor>::from_tensor makes one.
class ParameterList : public Module {
 public:
  ParameterList() = default;
  ParameterList(std::initializer_list<Tensor> values);
  ParameterList(const ParameterList& other);
  ParameterList(ParameterList&&) noexcept = default;
  ParameterList& operator=(const ParameterList& other);
  ParameterList& operator=(ParameterList&&) noexcept = default;
  void visit_members(MemberVisitor& visitor) override { entries_.visit(visitor); }
  std::string extra_repr() const override { return entries_.describe(); }

  ParameterList& append(Param<Tensor> param);
  ParameterList& append(const Tensor& value) { return append(Param<Tensor>::from_tensor(value)); }
  // Copies of the parameters of the other one.
  ParameterList& extend(const ParameterList& other);
  ParameterList& set(int64_t index, Param<Tensor> param);

  size_t size() const { return entries_.items.size(); }
  bool empty() const { return size() == 0; }
  // Negative indices count from the end; IndexError out of range.
  Param<Tensor>& operator[](int64_t index) const;

 private:
  detail::ParameterEntries entries_;
  KILN_MODULE_DECLARED_WITHOUT_OPTIONS(ParameterList)
};

class ParameterDict : public Module {
 public:
  ParameterDict() = default;
  ParameterDict(std::initializer_list<std::pair<std::string, Tensor>> items);
  ParameterDict(const ParameterDict& other);
  ParameterDict(ParameterDict&&) noexcept = default;
  ParameterDict& operator=(const ParameterDict& other);
  ParameterDict& operator=(ParameterDict&&) noexcept = default;
  void visit_members(MemberVisitor& visitor) override { entries_.visit(visitor); }
  std::string extra_repr() const override { return entries_.describe(); }

  // Adds a parameter, or puts it in the place of the one of that name. Throws KeyError for a name
  // that is empty or contains a dot.
  Param<Tensor>& set(const std::string& name, Param<Tensor> param);
  Param<Tensor>& set(const std::string& name, const Tensor& value) {
    return set(name, Param<Tensor>::from_tensor(value));
  }
  // The one of that name, or, when there is none, this one from now on.
  Param<Tensor>& setdefault(const std::string& name, Param<Tensor> param);
  // Copies of all parameters of the other one, by name.
  ParameterDict& update(const ParameterDict& other);
  // Each throws KeyError when there is no parameter of that name.
  Param<Tensor>& operator[](std::string_view name) const;
  Param<Tensor> pop(std::string_view name);
  void erase(std::string_view name) { pop(name); }
  // The last one. KeyError when there is none.
  std::pair<std::string, Param<Tensor>> popitem();
  // Null when there is none.
  Param<Tensor>* get(std::string_view name) const { return entries_.find(name); }

  bool contains(std::string_view name) const { return get(name) != nullptr; }
  size_t size() const { return entries_.items.size(); }
  bool empty() const { return size() == 0; }
  void clear() { entries_.items.clear(); }
  std::vector<std::string> keys() const;

 private:
  detail::ParameterEntries entries_;
  KILN_MODULE_DECLARED_WITHOUT_OPTIONS(ParameterDict)
};

}  // namespace kiln::nn
