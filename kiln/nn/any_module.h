// AnyModule: a module of any class, called with one tensor.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "kiln/nn/functional_module.h"
#include "kiln/nn/module.h"

namespace kiln::nn {

namespace detail {
[[noreturn]] void throw_no_module();
}

// Shares its module when copied. Made from a module (which it takes or copies), a shared pointer to
// one, or a function of a tensor (see Functional).
class AnyModule {
 public:
  template <class M>
    requires std::is_base_of_v<Module, std::decay_t<M>>
  AnyModule(M&& module) : AnyModule(std::make_shared<std::decay_t<M>>(std::forward<M>(module))) {}

  template <detail::TensorFunction F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, AnyModule>)
  AnyModule(F&& function) : AnyModule(std::make_shared<Functional>(std::forward<F>(function))) {}

  // A pointer to Module itself is taken too, and asked when it is called.
  template <class M>
    requires std::is_base_of_v<Module, M>
  AnyModule(std::shared_ptr<M> module) : AnyModule(Erased{std::move(module)}) {
    static_assert(
        std::is_same_v<M, Module> || requires(M& m, Tensor x) {
          { m.forward(std::move(x)) } -> std::convertible_to<Tensor>;
        }, "AnyModule: the module has no forward that takes one Tensor and returns one");
  }

  // Throws TypeError when the module was moved away.
  Tensor operator()(Tensor x) const {
    if (module_ == nullptr) [[unlikely]]
      detail::throw_no_module();
    return module_->call_with_tensor(std::move(x));
  }
  const std::shared_ptr<Module>& module() const { return module_; }

  // Throws TypeError for null.
  void set_module(std::shared_ptr<Module> module);

 private:
  struct Erased {
    std::shared_ptr<Module> module;
  };
  explicit AnyModule(Erased erased) { set_module(std::move(erased.module)); }

  std::shared_ptr<Module> module_;
};

namespace detail {

[[noreturn]] void throw_wrong_class(const char* op, int64_t index, const Module& module,
                                    const char* expected);

}  // namespace detail
}  // namespace kiln::nn
