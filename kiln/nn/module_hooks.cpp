#include "kiln/nn/module_hooks.h"

#include "kiln/core/error.h"
#include "kiln/nn/module.h"

namespace kiln::nn {

Tensor& HookValue::tensor() const {
  Tensor* tensor = get_if<Tensor>();
  if (tensor == nullptr) {
    throw_error<ValueError>(
        "HookValue: the value is no tensor; ask is_tensor() first, or use "
        "get_if with its type");
  }
  return *tensor;
}

namespace detail {

void ModuleHooks::run_pre(Module& module, std::span<const HookValue> args) const {
  for (const auto& entry : forward_pre) {
    if (*entry.alive) entry.hook(module, args);
  }
}

void ModuleHooks::run_post(Module& module, std::span<const HookValue> args,
                           const HookValue& output) const {
  for (const auto& entry : forward) {
    if (*entry.alive) entry.hook(module, args, output);
  }
}

}  // namespace detail
}  // namespace kiln::nn
