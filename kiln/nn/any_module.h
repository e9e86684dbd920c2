// AnyModule: a module of any class, called with one tensor.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "kiln/nn/module.h"

namespace kiln::nn {

// Shares its module when copied. Made from a module (which it takes or copies) or a shared pointer
// to one.
class AnyModule {
 public:
  template <class M>
    requires std::is_base_of_v<Module, std::decay_t<M>>
  AnyModule(M&& module) : AnyModule(std::make_shared<std::decay_t<M>>(std::forward<M>(module))) {}

  template <class M>
    requires std::is_base_of_v<Module, M>
  AnyModule(std::shared_ptr<M> module) {
    static_assert(
        requires(M& m, Tensor x) {
          { m.forward(std::move(x)) } -> std::convertible_to<Tensor>;
        }, "AnyModule: the module has no forward that takes one Tensor and returns one");
    if (module == nullptr) throw_null();
    call_ = [](Module& m, Tensor&& x) -> Tensor { return static_cast<M&>(m)(std::move(x)); };
    module_ = std::move(module);
  }

  Tensor operator()(Tensor x) const { return call_(*module_, std::move(x)); }
  const std::shared_ptr<Module>& module() const { return module_; }

  // The same with another module of the same class. Throws ValueError when it is of another.
  void set_module(std::shared_ptr<Module> module);

 private:
  [[noreturn]] static void throw_null();

  std::shared_ptr<Module> module_;
  Tensor (*call_)(Module&, Tensor&&) = nullptr;
};

namespace detail {

// An element of a list of modules, by a possibly negative index. Throws IndexError naming `op`.
size_t element_index(const char* op, int64_t index, size_t size);
[[noreturn]] void throw_wrong_class(const char* op, int64_t index, const Module& module);

}  // namespace detail
}  // namespace kiln::nn
