// Functional: a function of a tensor as a module.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include "kiln/nn/module.h"

namespace kiln::nn {

// Functional([](const Tensor& x) { return x.flatten(1); }). A Sequential makes one of each function
// that it is given. It has no parameters; copies share what the function holds by reference.
class Functional : public Module {
 public:
  // Throws TypeError for an empty function.
  explicit Functional(std::function<Tensor(Tensor)> function);
  KILN_MODULE_DECLARED(Functional)

  Tensor forward(Tensor x) const { return function_(std::move(x)); }

 private:
  std::function<Tensor(Tensor)> function_;
};

namespace detail {

// What AnyModule and Sequential take in place of a module.
template <class F>
concept TensorFunction = !std::is_base_of_v<Module, std::remove_cvref_t<F>> &&
                         std::is_invocable_r_v<Tensor, std::decay_t<F>&, Tensor>;

}  // namespace detail
}  // namespace kiln::nn
