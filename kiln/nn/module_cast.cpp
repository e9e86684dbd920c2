// Module::to: moving and casting.
#include "kiln/core/error.h"
#include "kiln/nn/module.h"
#include "kiln/nn/module_tree.h"
#include "kiln/tensor/grad_mode.h"

namespace kiln::nn {
namespace {

struct Target {
  std::optional<Device> device;
  std::optional<DType> dtype;  // of floating point tensors

  Tensor operator()(const Tensor& x) const {
    const Device to_device = device.value_or(x.device());
    const DType to_dtype = x.is_floating_point() ? dtype.value_or(x.dtype()) : x.dtype();
    if (to_device == x.device() && to_dtype == x.dtype()) return x;
    return x.detach().to(to_device, to_dtype);
  }
};

void convert(Param<Tensor>& param, const Target& target) {
  if (!param.defined()) return;
  if (!param.is_initialized()) {
    if (target.device) param.set_lazy_device(*target.device);
    const std::optional<DType> made_as = param.lazy_dtype();
    const bool floating = !made_as || is_floating_point(*made_as);
    if (target.dtype && floating && made_as != target.dtype) {
      const DType dtype = *target.dtype;
      param.set_lazy_dtype(dtype, [dtype](Tensor x) {
        if (x.dtype() == dtype || !x.is_floating_point()) return x;
        NoGradGuard no_grad;
        Tensor out = x.detach().to(dtype);
        if (x.requires_grad()) out.requires_grad_();
        return out;
      });
    }
    return;
  }
  const Tensor& before = param.get();
  Tensor after = target(before);
  if (after.is_same(before)) return;
  if (before.requires_grad()) after.requires_grad_();
  if (const Tensor grad = before.grad(); grad.defined()) after.set_grad(target(grad));
  param.replace(std::move(after));
}

void convert(Module& module, const Target& target) {
  if (target.dtype && !is_floating_point(*target.dtype)) {
    throw_error<DTypeError>("Module::to: only floating point dtypes are accepted; got ",
                            *target.dtype);
  }
  NoGradGuard no_grad;
  // A tensor that two parameters share is converted once, so that they stay tied.
  const auto params = detail::all_params(module);
  std::vector<Tensor> before(params.size());
  for (size_t i = 0; i < params.size(); ++i) {
    if (!params[i]->is_initialized()) {
      convert(*params[i], target);
      continue;
    }
    before[i] = params[i]->val();
    size_t tied = 0;
    while (!before[tied].is_same(before[i])) ++tied;
    if (tied == i) {
      convert(*params[i], target);
    } else if (params[tied] != params[i]) {
      params[i]->replace(params[tied]->val());
    }
  }
  detail::tree_of(module).for_each("", [&](const std::string&, const detail::ModuleTree& node) {
    for (const auto& [name, buffer] : node.buffers) {
      if (buffer->defined()) *buffer = target(buffer->get());
    }
  });
}

}  // namespace

Module& Module::to(DType dtype) {
  convert(*this, {.device = {}, .dtype = dtype});
  return *this;
}

Module& Module::to(Device device) {
  convert(*this, {.device = device, .dtype = {}});
  return *this;
}

Module& Module::to(Device device, DType dtype) {
  convert(*this, {.device = device, .dtype = dtype});
  return *this;
}

}  // namespace kiln::nn
