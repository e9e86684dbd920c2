#include "kiln/compile/guards.h"

#include "kiln/autodiff/anomaly.h"
#include "kiln/autodiff/saved_hooks.h"
#include "kiln/backend/batched/batched_tensor.h"
#include "kiln/backend/dispatch/views.h"
#include "kiln/graph/capture.h"
#include "kiln/nn/module.h"
#include "kiln/tensor/autograd/checkpoint.h"
#include "kiln/tensor/autograd/grad_mode.h"

namespace kiln::compiling {

using kiln::detail::parts_or_value;
using kiln::detail::state_of;

namespace {

InputGuard guard_of(const TensorList& inputs, size_t i) {
  InputGuard out;
  const Tensor& x = inputs[i];
  out.defined = x.defined();
  if (!out.defined) return out;
  const Value& value = parts_or_value("compile", x);
  out.is_complex = state_of(x).is_complex();
  out.requires_grad = static_cast<bool>(value.node);
  out.shape = value.inner->shape();
  out.dtype = value.inner->dtype();
  out.device = value.inner->device();
  const Layout layout = layout_of(value.inner);
  if (layout) out.strides = *layout.strides;
  for (size_t k = 0; k < i && out.same_tensor < 0; ++k) {
    if (!inputs[k].defined()) continue;
    const ErasedTensor& earlier = parts_or_value("compile", inputs[k]).inner;
    if (earlier == value.inner) out.same_tensor = static_cast<int>(k);
    const Layout other = layout_of(earlier);
    if (layout && other && layout.storage == other.storage && out.same_memory < 0)
      out.same_memory = static_cast<int>(k);
  }
  return out;
}

}  // namespace

bool HeldTensor::holds() const {
  const TensorImpl& state = state_of(tensor);
  return state.value.inner.address() == inner && state.value.node.address() == node;
}

std::vector<InputGuard> guards_of(const TensorList& inputs) {
  std::vector<InputGuard> out;
  for (size_t i = 0; i < inputs.size(); ++i) out.push_back(guard_of(inputs, i));
  return out;
}

bool fits(const std::vector<InputGuard>& guards, const TensorList& inputs) {
  if (guards.size() != inputs.size()) return false;
  const auto inner_of = [&](size_t i) -> const ErasedTensor& {
    return parts_or_value("compile", inputs[i]).inner;
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const InputGuard& g = guards[i];
    if (g.defined != inputs[i].defined()) return false;
    if (!g.defined) continue;
    const Value& value = parts_or_value("compile", inputs[i]);
    if (g.requires_grad != static_cast<bool>(value.node) || g.dtype != value.inner->dtype() ||
        g.device != value.inner->device() || !(g.shape == value.inner->shape()) ||
        g.is_complex != state_of(inputs[i]).is_complex()) {
      return false;
    }
    const Layout layout = layout_of(value.inner);
    if (layout && !(g.strides == *layout.strides)) return false;
    if (i == 0) continue;
    int tensor = -1, memory = -1;
    for (size_t k = 0; k < i && tensor < 0; ++k) {
      if (!inputs[k].defined()) continue;
      if (inner_of(k) == value.inner) tensor = static_cast<int>(k);
      const Layout other = layout_of(inner_of(k));
      if (memory < 0 && layout && other && layout.storage == other.storage) {
        memory = static_cast<int>(k);
      }
    }
    if (tensor != g.same_tensor || memory != g.same_memory) return false;
  }
  return true;
}

ModeGuard mode_now(const std::vector<nn::Module*>& modules) {
  ModeGuard out;
  out.grad = is_grad_enabled();
  const amp::AutocastState autocast = amp::autocast_state();
  out.autocast = autocast.enabled;
  out.autocast_dtype = autocast.dtype;
  out.balanced = autograd::is_balanced_checkpointing();
  out.default_dtype = default_dtype();
  for (const nn::Module* module : modules) out.training.push_back(module->is_training());
  return out;
}

bool fits(const ModeGuard& guard, const std::vector<nn::Module*>& modules) {
  const amp::AutocastState autocast = amp::autocast_state();
  if (guard.grad != is_grad_enabled() || guard.autocast != autocast.enabled ||
      guard.autocast_dtype != autocast.dtype || guard.default_dtype != default_dtype() ||
      guard.balanced != autograd::is_balanced_checkpointing()) {
    return false;
  }
  for (size_t i = 0; i < modules.size(); ++i) {
    if (modules[i]->is_training() != guard.training[i]) return false;
  }
  return true;
}

const char* eager_reason(const TensorList& inputs) {
  if (graph::is_capturing()) return "it is called within another compiled function";
  if (autodiff::anomaly_mode() != autodiff::AnomalyMode::off) return "anomaly detection is on";
  if (autodiff::packs_saved<Dispatch>()) return "saved tensors have hooks";
  if (!batched::regions().empty()) return "it is called within vmap";
  for (const Tensor& x : inputs) {
    if (x.defined() && batched::as_batched(parts_or_value("compile", x).inner) != nullptr) {
      return "it is called within vmap";
    }
  }
  return nullptr;
}

std::string to_string(const std::vector<InputGuard>& guards) {
  std::string out;
  for (const InputGuard& g : guards) {
    out += concat(out.empty() ? "" : ", ", g.defined ? concat(g.dtype, " ", g.shape) : "none",
                  g.requires_grad ? " grad" : "");
  }
  return "(" + out + ")";
}

}  // namespace kiln::compiling
