// Forward hooks: functions that see, and may change, what goes into and comes out of a module.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "kiln/nn/buffer.h"
#include "kiln/nn/param.h"
#include "kiln/tensor/tensor.h"

namespace kiln::nn {

class Module;

// One argument or result of a forward, by reference and without its static type.
class HookValue {
 public:
  HookValue() = default;
  template <class T>
    requires(!std::is_same_v<std::remove_cv_t<T>, HookValue>)
  explicit HookValue(T& value)
      : type_(&typeid(T)), value_(const_cast<std::remove_cv_t<T>*>(&value)) {}

  // False for the result of a forward that returns void.
  bool has_value() const { return value_ != nullptr; }
  // Null when it is no T.
  template <class T>
  T* get_if() const {
    return value_ != nullptr && *type_ == typeid(T) ? static_cast<T*>(value_) : nullptr;
  }
  bool is_tensor() const { return get_if<Tensor>() != nullptr; }
  // Assign to it to replace the value. Throws ValueError when it is no tensor.
  Tensor& tensor() const;

 private:
  const std::type_info* type_ = nullptr;
  void* value_ = nullptr;
};

// Before forward; what it assigns to the arguments is what forward gets. A tensor argument is the
// hook's to replace; any other is the caller's own object.
using ForwardPreHook = std::function<void(Module&, std::span<const HookValue> args)>;
// After forward; what it assigns to the output is what the caller gets.
using ForwardHook =
    std::function<void(Module&, std::span<const HookValue> args, const HookValue& output)>;

namespace detail {

struct ModuleHooks {
  template <class F>
  struct Entry {
    std::shared_ptr<bool> alive;
    F hook;
  };
  std::vector<Entry<ForwardPreHook>> forward_pre;
  std::vector<Entry<ForwardHook>> forward;

  void run_pre(Module& module, std::span<const HookValue> args) const;
  void run_post(Module& module, std::span<const HookValue> args, const HookValue& output) const;
};

// How an argument waits while hooks look at it: tensors by handle, all else by reference.
template <class A, class D = std::decay_t<A>>
using HeldArgument =
    std::conditional_t<std::is_same_v<D, Tensor> || std::is_same_v<D, Arg<Tensor>> ||
                           std::is_same_v<D, Param<Tensor>> || std::is_same_v<D, Buffer>,
                       Tensor, A&&>;

// forward(args...) between the hooks. Out of line, so that a call without hooks stays small.
template <class Forward, class... Args>
[[gnu::noinline, gnu::cold]] decltype(auto) call_with_hooks(
    Module& module, const std::shared_ptr<const ModuleHooks>& current, Forward forward,
    Args&&... args) {
  const std::shared_ptr<const ModuleHooks> hooks = current;  // a hook may register another
  std::tuple<HeldArgument<Args>...> held(static_cast<HeldArgument<Args>>(args)...);
  const auto values = std::apply(
      [](auto&... each) { return std::array<HookValue, sizeof...(Args)>{HookValue(each)...}; },
      held);
  hooks->run_pre(module, values);
  const auto call = [&]() -> decltype(auto) {
    return std::apply(
        [&](auto&... each) -> decltype(auto) {
          return forward(static_cast<std::conditional_t<std::is_same_v<HeldArgument<Args>, Tensor>,
                                                        Tensor&, Args&&>>(each)...);
        },
        held);
  };
  using Result = decltype(call());
  if constexpr (std::is_void_v<Result>) {
    call();
    hooks->run_post(module, values, HookValue());
  } else {
    Result result = call();
    hooks->run_post(module, values, HookValue(result));
    return static_cast<Result>(std::forward<Result>(result));
  }
}

}  // namespace detail
}  // namespace kiln::nn
