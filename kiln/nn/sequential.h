// Sequential: modules that feed one another.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "kiln/nn/any_module.h"
#include "kiln/nn/module_entries.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

// Sequential net{Linear{784, 256}, ReLU{}, Linear{256, 10}}; each takes one tensor and returns one.
// Functions may stand among them: [](const Tensor& x) { return x.flatten(1); }.
// State dicts name the modules by position ("0.weight") or by the name they were added under. A
// module given as std::shared_ptr twice is one module in two places; copies of the Sequential keep
// that, and own modules of their own.
class Sequential : public Module {
 public:
  Sequential() = default;
  // A single Sequential is copied or moved; push_back nests one.
  template <class... M>
    requires(sizeof...(M) > 0 && (std::is_constructible_v<AnyModule, M&&> && ...) &&
             !(sizeof...(M) == 1 && (std::is_same_v<std::decay_t<M>, Sequential> && ...)))
  explicit Sequential(M&&... modules) {
    (push_back(AnyModule(std::forward<M>(modules))), ...);
  }
  // Sequential({{"conv", Conv2d(3, 8, 5)}, {"relu", ReLU()}})
  explicit Sequential(std::initializer_list<std::pair<std::string, AnyModule>> modules);
  Sequential(const Sequential& other);
  Sequential(Sequential&&) noexcept = default;
  Sequential& operator=(const Sequential& other);
  Sequential& operator=(Sequential&&) noexcept = default;
  void visit_members(MemberVisitor& visitor) override { entries_.visit(visitor); }

  Tensor forward(TensorArg x) const;

  // At the end, by position or by a name. Throws KeyError for a name that is empty, contains a dot
  // or is taken.
  Sequential& push_back(AnyModule module);
  Sequential& push_back(const std::string& name, AnyModule module);
  Sequential& append(AnyModule module) { return push_back(std::move(module)); }
  // The modules of the other one, shared with it.
  Sequential& extend(const Sequential& other);
  // Before `index`. This, pop and erase rename the modules that are named by position.
  Sequential& insert(int64_t index, AnyModule module);
  Sequential& set(int64_t index, AnyModule module);
  std::shared_ptr<Module> pop(int64_t index = -1) { return entries_.take("Sequential", index); }
  void erase(int64_t index) { pop(index); }
  // Python's [start:stop:step]; the modules are shared. `a + b` is a.slice().extend(b).
  Sequential slice(std::optional<int64_t> start = {}, std::optional<int64_t> stop = {},
                   int64_t step = 1) const;

  size_t size() const { return entries_.size(); }
  bool empty() const { return size() == 0; }
  // Negative indices count from the end; IndexError out of range.
  Module& operator[](int64_t index) const { return *entries_.at("Sequential", index); }
  // KeyError when there is none of that name.
  Module& operator[](std::string_view name) const { return *entries_.at("Sequential", name); }
  // Throws TypeError when the module there is no M.
  template <class M>
  M& at(int64_t index) const {
    M* module = (*this)[index].template as<M>();
    if (module == nullptr) {
      detail::throw_wrong_class("Sequential", index, (*this)[index], M::kiln_class().name);
    }
    return *module;
  }
  // for (Module& module : net)
  detail::ModuleIterator begin() const { return detail::ModuleIterator(entries_.items().data()); }
  detail::ModuleIterator end() const {
    return detail::ModuleIterator(entries_.items().data() + size());
  }

 private:
  detail::ModuleEntries entries_;
  KILN_MODULE_DECLARED_WITHOUT_OPTIONS(Sequential)
};

}  // namespace kiln::nn
