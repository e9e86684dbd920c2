#include "kiln/nn/hook_table.h"

#include "kiln/core/error.h"

namespace kiln::nn {
namespace detail {

std::atomic<uint32_t> global_hook_count{0};

// Never destroyed: modules may be called while the process exits.
CallHooks& global_hooks() {
  static CallHooks& instance = *new CallHooks;
  return instance;
}

void CallHooks::decide(int wanted, const char* where) {
  if (backward.size() == 0) kind = wanted;
  if (kind == wanted) return;
  throw_error<RuntimeError>("Cannot use both regular backward hooks and full backward hooks ",
                            where, ". Please use only one of them.");
}

void HookTable::assign(const HookTable& other) {
  call.forward_pre.assign(other.call.forward_pre);
  call.forward.assign(other.call.forward);
  call.backward_pre.assign(other.call.backward_pre);
  call.backward.assign(other.call.backward);
  call.kind = other.call.kind.load();
  state_dict_pre.assign(other.state_dict_pre);
  state_dict_post.assign(other.state_dict_post);
  load_pre.assign(other.load_pre);
  load_post.assign(other.load_post);
  value = static_cast<uint32_t>(call.size() + (replacement() != nullptr ? 1 : 0));
}

void HookTable::clear() {
  replace_forward(nullptr);
  assign(HookTable());
}

namespace {

// Adds to a list whose hooks a call must run, and counts it.
template <class F>
HookHandle add(Handle<HookTable> table, HookList<F> CallHooks::*list, F hook, bool prepend,
               bool always_call = false) {
  const uint64_t id = (table->call.*list).add(std::move(hook), prepend, always_call);
  ++table->value;
  return HookHandle([table = std::move(table), list, id] {
    if ((table->call.*list).remove(id)) --table->value;
  });
}

template <class F>
HookHandle add_global(HookList<F> CallHooks::*list, F hook, bool always_call = false) {
  const uint64_t id = (global_hooks().*list).add(std::move(hook), false, always_call);
  ++global_hook_count;
  return HookHandle([list, id] {
    if ((global_hooks().*list).remove(id)) --global_hook_count;
  });
}

template <class F>
HookHandle add_state(Handle<HookTable> table, HookList<F> HookTable::*list, F hook) {
  const uint64_t id = ((*table).*list).add(std::move(hook), false, false);
  return HookHandle([table = std::move(table), list, id] { ((*table).*list).remove(id); });
}

Handle<HookTable> table_of(Module& module) {
  return Handle<HookTable>::share(&HookTable::ensure(module));
}

constexpr const char* kOnModule = "on a single Module";
constexpr const char* kGlobal = "as a global Module hook";

}  // namespace
}  // namespace detail

using detail::CallHooks;
using detail::HookTable;

HookHandle Module::register_forward_pre_hook(ForwardPreHook hook, bool prepend) {
  return detail::add(detail::table_of(*this), &CallHooks::forward_pre, std::move(hook), prepend);
}

HookHandle Module::register_forward_hook(ForwardHook hook, const ForwardHookOptions& options) {
  return detail::add(detail::table_of(*this), &CallHooks::forward, std::move(hook), options.prepend,
                     options.always_call);
}

HookHandle Module::register_full_backward_hook(BackwardHook hook, bool prepend) {
  hook_table().call.decide(CallHooks::kFull, detail::kOnModule);
  return detail::add(detail::table_of(*this), &CallHooks::backward, std::move(hook), prepend);
}

HookHandle Module::register_full_backward_pre_hook(BackwardPreHook hook, bool prepend) {
  return detail::add(detail::table_of(*this), &CallHooks::backward_pre, std::move(hook), prepend);
}

HookHandle Module::register_backward_hook(BackwardHook hook) {
  hook_table().call.decide(CallHooks::kDeprecated, detail::kOnModule);
  return detail::add(detail::table_of(*this), &CallHooks::backward, std::move(hook), false);
}

HookHandle Module::register_state_dict_pre_hook(StateDictPreHook hook) {
  return detail::add_state(detail::table_of(*this), &HookTable::state_dict_pre, std::move(hook));
}

HookHandle Module::register_state_dict_post_hook(StateDictHook hook) {
  return detail::add_state(detail::table_of(*this), &HookTable::state_dict_post, std::move(hook));
}

HookHandle Module::register_load_state_dict_pre_hook(LoadStateDictPreHook hook) {
  return detail::add_state(detail::table_of(*this), &HookTable::load_pre, std::move(hook));
}

HookHandle Module::register_load_state_dict_post_hook(LoadStateDictPostHook hook) {
  return detail::add_state(detail::table_of(*this), &HookTable::load_post, std::move(hook));
}

HookHandle register_module_forward_pre_hook(ForwardPreHook hook) {
  return detail::add_global(&CallHooks::forward_pre, std::move(hook));
}

HookHandle register_module_forward_hook(ForwardHook hook, bool always_call) {
  return detail::add_global(&CallHooks::forward, std::move(hook), always_call);
}

HookHandle register_module_full_backward_pre_hook(BackwardPreHook hook) {
  return detail::add_global(&CallHooks::backward_pre, std::move(hook));
}

HookHandle register_module_full_backward_hook(BackwardHook hook) {
  detail::global_hooks().decide(CallHooks::kFull, detail::kGlobal);
  return detail::add_global(&CallHooks::backward, std::move(hook));
}

HookHandle register_module_backward_hook(BackwardHook hook) {
  detail::global_hooks().decide(CallHooks::kDeprecated, detail::kGlobal);
  return detail::add_global(&CallHooks::backward, std::move(hook));
}

// Two threads may call a module at once under global hooks: one table wins.
HookTable& Module::hook_table() const {
  if (HookTable* table = HookTable::of(*this)) return *table;
  auto made = make_handle<HookTable>();
  made->owner = const_cast<Module*>(this);
  detail::HookCount* expected = nullptr;
  if (hooks_.compare_exchange_strong(expected, made.get(), std::memory_order_acq_rel)) {
    return *made.leak();
  }
  return static_cast<HookTable&>(*expected);
}

}  // namespace kiln::nn
