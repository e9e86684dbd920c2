#include "kiln/nn/parameter_list.h"

#include <algorithm>

#include "kiln/core/error.h"
#include "kiln/nn/module_print.h"
#include "kiln/nn/module_tree.h"

namespace kiln::nn {
namespace detail {

ParameterEntries::ParameterEntries(const ParameterEntries& other) {
  for (const auto& [name, param] : other.items) {
    items.emplace_back(name, std::make_unique<Param<Tensor>>(*param));
  }
}

void ParameterEntries::visit(MemberVisitor& visitor) {
  for (auto& [name, param] : items) visit_member(visitor, name, *param);
}

Param<Tensor>* ParameterEntries::find(std::string_view name) const {
  for (const auto& [known, param] : items) {
    if (known == name) return param.get();
  }
  return nullptr;
}

Param<Tensor>& ParameterEntries::set(const std::string& name, Param<Tensor> param) {
  if (Param<Tensor>* known = find(name)) return *known = std::move(param);
  items.emplace_back(name, std::make_unique<Param<Tensor>>(std::move(param)));
  return *items.back().second;
}

std::string ParameterEntries::describe() const {
  std::string out;
  for (const auto& [name, param] : items) {
    if (!out.empty()) out += "\n";
    out += describe_parameter(name, *param);
  }
  return out;
}

}  // namespace detail

// ---- ParameterList

ParameterList::ParameterList(std::initializer_list<Tensor> values) {
  for (const Tensor& value : values) append(value);
}

ParameterList::ParameterList(const ParameterList& other)
    : Module(other), entries_(other.entries_) {}

ParameterList& ParameterList::operator=(const ParameterList& other) {
  if (this != &other) *this = ParameterList(other);
  return *this;
}

ParameterList& ParameterList::append(Param<Tensor> param) {
  entries_.set(std::to_string(size()), std::move(param));
  return *this;
}

ParameterList& ParameterList::extend(const ParameterList& other) {
  const size_t count = other.size();  // it may be this one
  for (size_t i = 0; i < count; ++i) append(Param<Tensor>(*other.entries_.items[i].second));
  return *this;
}

Param<Tensor>& ParameterList::operator[](int64_t index) const {
  const auto n = static_cast<int64_t>(size());
  if (index < -n || index >= n) {
    throw_error<IndexError>("ParameterList: index out of range; got ", index, " for ", n,
                            " parameters");
  }
  return *entries_.items[static_cast<size_t>(index < 0 ? index + n : index)].second;
}

ParameterList& ParameterList::set(int64_t index, Param<Tensor> param) {
  (*this)[index] = std::move(param);
  return *this;
}

// ---- ParameterDict

ParameterDict::ParameterDict(std::initializer_list<std::pair<std::string, Tensor>> items) {
  for (const auto& [name, value] : items) set(name, value);
}

ParameterDict::ParameterDict(const ParameterDict& other)
    : Module(other), entries_(other.entries_) {}

ParameterDict& ParameterDict::operator=(const ParameterDict& other) {
  if (this != &other) *this = ParameterDict(other);
  return *this;
}

Param<Tensor>& ParameterDict::set(const std::string& name, Param<Tensor> param) {
  if (name.empty() || name.find('.') != std::string::npos) {
    throw_error<KeyError>("ParameterDict: a name must not be empty and not contain '.'; got '",
                          name, "'");
  }
  return entries_.set(name, std::move(param));
}

Param<Tensor>& ParameterDict::setdefault(const std::string& name, Param<Tensor> param) {
  if (Param<Tensor>* known = get(name)) return *known;
  return set(name, std::move(param));
}

ParameterDict& ParameterDict::update(const ParameterDict& other) {
  if (this == &other) return *this;
  for (const auto& [name, param] : other.entries_.items) set(name, Param<Tensor>(*param));
  return *this;
}

Param<Tensor>& ParameterDict::operator[](std::string_view name) const {
  Param<Tensor>* known = get(name);
  if (known == nullptr) throw_error<KeyError>("ParameterDict: no parameter is named '", name, "'");
  return *known;
}

Param<Tensor> ParameterDict::pop(std::string_view name) {
  Param<Tensor> out = std::move((*this)[name]);
  std::erase_if(entries_.items, [name](const auto& item) { return item.first == name; });
  return out;
}

std::pair<std::string, Param<Tensor>> ParameterDict::popitem() {
  if (empty()) throw_error<KeyError>("ParameterDict: popitem of an empty dict");
  const std::string name = entries_.items.back().first;
  return {name, pop(name)};
}

std::vector<std::string> ParameterDict::keys() const {
  std::vector<std::string> out;
  for (const auto& [name, param] : entries_.items) out.push_back(name);
  return out;
}

KILN_MODULE_DEFINED_WITHOUT_VISIT(ParameterList)

KILN_MODULE_DEFINED_WITHOUT_VISIT(ParameterDict)

}  // namespace kiln::nn
