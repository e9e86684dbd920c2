#include "kiln/nn/functional_module.h"

#include "kiln/core/error.h"

namespace kiln::nn {

Functional::Functional(std::function<Tensor(Tensor)> function) : function_(std::move(function)) {
  if (!function_) throw_error<TypeError>("Functional: expected a function; got an empty one");
}

KILN_MODULE_DEFINED(Functional)

}  // namespace kiln::nn
