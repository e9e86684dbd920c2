#include "kiln/nn/backward_hooks.h"

#include <algorithm>
#include <atomic>

#include "kiln/core/error.h"
#include "kiln/core/warning.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"

namespace kiln::nn::detail {
namespace {

std::atomic<ModuleKeeper> module_keeper{nullptr};

std::shared_ptr<void> keep(Module& module) {
  const ModuleKeeper keeper = module_keeper.load(std::memory_order_acquire);
  return keeper == nullptr ? nullptr : keeper(module);
}

bool wants_gradient(const Tensor* x) { return x != nullptr && x->defined() && x->requires_grad(); }

// Passes the tensors through a node that shows their gradients to `see`, and puts the views in
// their place. False, and nothing changes, when none requires a gradient.
bool pass_all(const std::vector<Tensor*>& places, std::function<void(Gradient&)> see) {
  if (!is_grad_enabled() || std::none_of(places.begin(), places.end(), wants_gradient))
    return false;
  std::vector<Tensor> tensors;
  for (const Tensor* place : places) tensors.push_back(place != nullptr ? *place : Tensor());
  const std::vector<Tensor> views = kiln::detail::pass_through(tensors, std::move(see));
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] != nullptr) *places[i] = views[i];
  }
  return true;
}

void check_count(const char* hook, const char* what, size_t got, size_t expected) {
  if (got == expected) return;
  throw_error<RuntimeError>(hook, " returned an invalid number of ", what, ", got ", got,
                            ", but expected ", expected);
}

}  // namespace

void set_module_keeper(ModuleKeeper keeper) {
  module_keeper.store(keeper, std::memory_order_release);
}

std::shared_ptr<BackwardCall> BackwardCall::begin(Module& module, BackwardHooks hooks,
                                                  HookArgs& args) {
  auto call = std::make_shared<BackwardCall>();
  call->table_ = Handle<HookTable>::share(&HookTable::ensure(module));
  call->kept_ = keep(module);
  call->hooks_ = std::move(hooks);
  std::vector<Tensor*> places;
  for (const HookValue& value : args.args) places.push_back(value.tensor_if());
  call->like_.resize(places.size());
  for (size_t i = 0; i < places.size(); ++i) {
    const Tensor* x = places[i];
    if (x == nullptr || !x->defined() || !x->is_floating_point()) continue;
    call->like_[i] = Like{x->shape(), x->dtype(), x->device()};
  }
  call->has_inputs_ = pass_all(places, [call](Gradient& grads) { call->see_inputs(grads); });
  return call;
}

void BackwardCall::end(const std::shared_ptr<BackwardCall>& call, HookValue& output) {
  const std::vector<Tensor*> places = output.elements();
  if (std::all_of(places.begin(), places.end(), [](const Tensor* x) { return x == nullptr; })) {
    warn("For backward hooks to be called, module output should be a Tensor or a tuple of Tensors");
    return;
  }
  pass_all(places, [call](Gradient& grads) { call->see_outputs(grads); });
}

void BackwardCall::see_outputs(Gradient& grads) {
  Module* const owner = module();
  if (owner == nullptr) return;
  for (const BackwardPreHook& hook : hooks_.pre) {
    if (std::optional<Gradient> replaced = hook(*owner, grads)) {
      check_count("Backward pre hook", "grad_output", replaced->size(), grads.size());
      grads = std::move(*replaced);
    }
  }
  if (has_inputs_) {
    std::lock_guard lock(mutex_);
    grad_outputs_[std::this_thread::get_id()] = grads;
    return;
  }
  if (hooks_.full.empty()) return;
  const Gradient none(like_.size());
  for (const BackwardHook& hook : hooks_.full) {
    const std::optional<Gradient> replaced = hook(*owner, none, grads);
    if (replaced && std::any_of(replaced->begin(), replaced->end(),
                                [](const Tensor& x) { return x.defined(); })) {
      throw_error<RuntimeError>(
          "Backward hook for Modules where no input requires gradient should always return None or "
          "None for all gradients.");
    }
  }
}

void BackwardCall::see_inputs(Gradient& grads) {
  // PyTorch: the gradient that the module did not produce is zero.
  for (size_t i = 0; i < grads.size(); ++i) {
    if (grads[i].defined() || !like_[i]) continue;
    grads[i] = zeros(like_[i]->shape, {.dtype = like_[i]->dtype, .device = like_[i]->device});
  }
  Gradient grad_output;
  {
    std::lock_guard lock(mutex_);
    const auto found = grad_outputs_.find(std::this_thread::get_id());
    // Gradients that did not come through the output, as in a derivative of a derivative.
    if (found == grad_outputs_.end()) return;
    grad_output = std::move(found->second);
    grad_outputs_.erase(found);
  }
  Module* const owner = module();
  if (owner == nullptr) return;
  for (const BackwardHook& hook : hooks_.full) {
    if (std::optional<Gradient> replaced = hook(*owner, grads, grad_output)) {
      check_count("Backward hook", "grad_input", replaced->size(), grads.size());
      grads = std::move(*replaced);
    }
  }
}

void register_deprecated(Module& module, const std::vector<BackwardHook>& hooks,
                         const HookValue& output) {
  for (const Tensor* result : output.elements()) {
    if (result == nullptr || !result->defined()) continue;
    auto table = Handle<HookTable>::share(&HookTable::ensure(module));
    const auto see = [hooks, table, kept = keep(module)](Gradient& given, const Gradient& grads) {
      Module* const owner = table->owner.load(std::memory_order_acquire);
      if (owner == nullptr) return;
      for (const BackwardHook& hook : hooks) {
        if (std::optional<Gradient> replaced = hook(*owner, given, grads)) {
          check_count("Backward hook", "grad_input", replaced->size(), given.size());
          given = std::move(*replaced);
        }
      }
    };
    kiln::detail::after_node(*result, see);
    return;
  }
}

}  // namespace kiln::nn::detail
