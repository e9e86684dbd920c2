#include "kiln/nn/module_hooks.h"

#include <set>

#include "kiln/core/error.h"
#include "kiln/core/warning.h"
#include "kiln/nn/backward_hooks.h"
#include "kiln/nn/hook_table.h"

namespace kiln::nn {

Tensor& HookValue::tensor() const {
  Tensor* tensor = tensor_if();
  if (tensor == nullptr) {
    throw_error<TypeError>(
        "HookValue: the value is no tensor; ask is_tensor() first, or use "
        "get_if with its type");
  }
  return *tensor;
}

namespace detail {

void throw_argument_count(const Module& module, size_t got, size_t expected) {
  throw_error<TypeError>("forward pre-hook: a hook changed the number of arguments of ",
                         module.type_name(), "; got ", got, "; expected ", expected);
}

void throw_replaced(const Module& module, const char* what) {
  throw_error<TypeError>("hook: ", what, " of ", module.type_name(),
                         " was replaced by a value of another type");
}

namespace {

// One call of a module between its hooks.
class HookedCall {
 public:
  HookedCall(Module& module, HookArgs& args) : module_(module), args_(args) {
    if (HookTable* own = HookTable::of(module)) own_ = Handle<HookTable>::share(own);
  }

  HookValue run(const std::function<HookValue()>& forward, const TensorForward* tensors) {
    try {
      run_inner(forward, tensors);
    } catch (...) {
      run_always_called();
      throw;
    }
    return std::move(output_);
  }

 private:
  // f(global entry or own entry) in the order that hooks run in.
  template <class F, class Call>
  void each(HookList<F> CallHooks::*list, Call&& call) const {
    const auto global = (global_hooks().*list).snapshot();
    const auto own = own_ ? (own_->call.*list).snapshot() : nullptr;
    for_each_hook(global, [&](const auto& entry) { call(entry, true); });
    for_each_hook(own, [&](const auto& entry) { call(entry, false); });
  }

  HookValue call(const std::function<HookValue()>& forward, const TensorForward* tensors) {
    if (const auto replacement = own_ ? own_->replacement() : nullptr) {
      HookValue output = replacement->call(module_, args_, tensors);
      if (output.has_value()) return output;
    }
    return forward();
  }

  void run_inner(const std::function<HookValue()>& forward, const TensorForward* tensors) {
    BackwardHooks hooks;
    each(&CallHooks::backward_pre,
         [&](const auto& entry, bool) { hooks.pre.push_back(entry.hook); });
    each(&CallHooks::backward, [&](const auto& entry, bool global) {
      const int kind = global ? global_hooks().kind : own_->call.kind;
      (kind == CallHooks::kFull ? hooks.full : hooks.deprecated).push_back(entry.hook);
    });
    each(&CallHooks::forward_pre, [&](const auto& entry, bool) { entry.hook(module_, args_); });

    const bool full = !hooks.full.empty() || !hooks.pre.empty();
    const std::vector<BackwardHook> deprecated = std::move(hooks.deprecated);
    std::shared_ptr<BackwardCall> backward;
    if (full) backward = BackwardCall::begin(module_, std::move(hooks), args_);
    output_ = call(forward, tensors);
    each(&CallHooks::forward, [&](const auto& entry, bool global) {
      if (entry.always_call) called_.insert({global, entry.id});
      entry.hook(module_, args_, output_);
    });
    if (full) BackwardCall::end(backward, output_);
    if (!deprecated.empty()) register_deprecated(module_, deprecated, output_);
  }

  // An error is on its way: hooks that want to hear of the call do, once, and cannot replace it.
  void run_always_called() {
    each(&CallHooks::forward, [&](const auto& entry, bool global) {
      if (!entry.always_call || called_.contains({global, entry.id})) return;
      const char* const kind = global ? "global module forward hook" : "module forward hook";
      try {
        entry.hook(module_, args_, output_);
      } catch (const std::exception& error) {
        warn(concat(kind,
                    " with ``always_call=True`` raised an exception that was silenced as "
                    "another error was raised in forward: ",
                    error.what()));
      } catch (...) {
        warn(concat(kind,
                    " with ``always_call=True`` raised an exception that was silenced as "
                    "another error was raised in forward"));
      }
    });
  }

  Module& module_;
  HookArgs& args_;
  HookValue output_;
  Handle<HookTable> own_;  // lives on when a hook removes the last one
  std::set<std::pair<bool, uint64_t>> called_;
};

}  // namespace

HookValue call_module(Module& module, HookArgs& args, const std::function<HookValue()>& forward,
                      const TensorForward* tensors) {
  return HookedCall(module, args).run(forward, tensors);
}

}  // namespace detail
}  // namespace kiln::nn
