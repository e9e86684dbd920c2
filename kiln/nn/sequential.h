// Sequential: modules that feed one another.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kiln/nn/any_module.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

// Sequential net{Linear{784, 256}, ReLU{}, Linear{256, 10}}; each takes one tensor and returns one.
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
  Sequential(const Sequential& other);
  Sequential(Sequential&&) noexcept = default;
  Sequential& operator=(const Sequential& other);
  Sequential& operator=(Sequential&&) noexcept = default;
  KILN_MODULE_WITHOUT_VISIT(Sequential)
  void visit_members(MemberVisitor& visitor) override;

  Tensor forward(TensorArg x) const;

  Sequential& push_back(AnyModule module);
  // Throws KeyError for a name that is empty, contains a dot or is taken.
  Sequential& push_back(const std::string& name, AnyModule module);

  size_t size() const { return modules_.size(); }
  // Negative indices count from the end; IndexError out of range.
  Module& operator[](int64_t index) const;
  // Throws TypeError when the module there is no M.
  template <class M>
  M& at(int64_t index) const {
    M* module = (*this)[index].template as<M>();
    if (module == nullptr) detail::throw_wrong_class("Sequential", index, (*this)[index]);
    return *module;
  }

 private:
  std::vector<std::pair<std::string, AnyModule>> modules_;
};

}  // namespace kiln::nn
