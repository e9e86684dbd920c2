// Module hooks: functions that see, and may change, what goes into and comes out of a module, in
// the forward pass and in the backward pass.
//
// Note [One mechanism for hooks]
// Every call of a module that has hooks goes through one function, call_module: the calls that
// KILN_MODULE writes for typed forwards, and those of callers that know no static types (modules
// written in Python). Its order is PyTorch's: pre-hooks, forward, forward hooks, each with the
// global ones first. Around that, full backward hooks put one identity node before the module and
// one behind it: the gradients that pass through them are what the hooks see.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "kiln/core/handle.h"
#include "kiln/nn/buffer.h"
#include "kiln/nn/hook_value.h"
#include "kiln/nn/param.h"
#include "kiln/nn/state_dict.h"
#include "kiln/tensor/tensor.h"

namespace kiln::nn {

class Module;

// Before forward. What it assigns to the arguments is what forward gets: a tensor argument is the
// hook's to replace (args[0].tensor() = ...); any other is the caller's own object.
using ForwardPreHook = std::function<void(Module&, HookArgs& args)>;
// After forward. What it assigns to the output is what the caller gets; changing the arguments has
// no effect any more. With always_call, and when forward threw, the output has no value.
using ForwardHook = std::function<void(Module&, HookArgs& args, HookValue& output)>;

struct ForwardHookOptions {
  bool prepend = false;      // before the hooks that the module has already
  bool always_call = false;  // forward hooks only: also when forward, or a hook before it, throws
};

// One gradient for each argument, or for each element of the output; undefined where that is no
// tensor or needs none.
using Gradient = std::vector<Tensor>;

namespace detail {

// A function of gradients that returns other ones, or nothing: from anything that can be called so.
template <class... Args>
class GradientFunction {
 public:
  template <class F>
    requires(std::is_invocable_v<F&, Args...> && !std::is_same_v<std::decay_t<F>, GradientFunction>)
  GradientFunction(F f) {
    if constexpr (std::is_void_v<std::invoke_result_t<F&, Args...>>) {
      call_ = [f = std::move(f)](Args... args) mutable -> std::optional<Gradient> {
        f(args...);
        return std::nullopt;
      };
    } else {
      call_ = std::move(f);
    }
  }
  std::optional<Gradient> operator()(Args... args) const { return call_(args...); }

 private:
  std::function<std::optional<Gradient>(Args...)> call_;
};

}  // namespace detail

// With the gradients of the module's arguments and of its output. What it returns, if anything,
// takes the place of the first and must have as many entries.
using BackwardHook =
    detail::GradientFunction<Module&, const Gradient& /*grad_input*/, const Gradient&>;
// With the gradients of the output, before those of the arguments are computed; may replace them.
using BackwardPreHook = detail::GradientFunction<Module&, const Gradient& /*grad_output*/>;

using StateDictPreHook = std::function<void(Module&, const std::string& prefix, bool keep_vars)>;
// May change the state dict, which holds the module's entries and perhaps others.
using StateDictHook = std::function<void(Module&, StateDict&, const std::string& prefix,
                                         StateMetadata& local_metadata)>;

// What a load_state_dict in progress has found.
struct LoadProgress {
  bool strict;
  std::vector<std::string>& missing_keys;
  std::vector<std::string>& unexpected_keys;
  std::vector<std::string>& error_msgs;  // not empty at the end: RuntimeError
};
// Before a module takes its entries; may change the state dict (a copy of the caller's).
using LoadStateDictPreHook =
    std::function<void(Module&, StateDict&, const std::string& prefix,
                       const StateMetadata& local_metadata, LoadProgress&)>;
// After; may change the lists: clearing both avoids the error of a strict load.
using LoadStateDictPostHook = std::function<void(Module&, IncompatibleKeys&)>;

// ---- Hooks of every module: they come before the module's own

HookHandle register_module_forward_pre_hook(ForwardPreHook hook);
HookHandle register_module_forward_hook(ForwardHook hook, bool always_call = false);
HookHandle register_module_full_backward_pre_hook(BackwardPreHook hook);
HookHandle register_module_full_backward_hook(BackwardHook hook);
// Deprecated: see Module::register_backward_hook.
HookHandle register_module_backward_hook(BackwardHook hook);

namespace detail {

// How many hooks there are that a call must run: a module's own, and those of all modules.
struct HookCount : RefCounted {
  std::atomic<uint32_t> value{0};
};
extern std::atomic<uint32_t> global_hook_count;

// A forward of tensors that gives tensors, for what keeps it beyond one call: as a function of
// lists, and the result that a list stands for, which the value owns.
struct TensorForward {
  size_t args;
  std::vector<Tensor> (*forward)(Module& module, const std::vector<Tensor>& args);
  HookValue (*result)(std::vector<Tensor> list);
};

// What takes the place of forward in each call of a module (Module::compile).
class ForwardReplacement {
 public:
  virtual ~ForwardReplacement() = default;
  // The result of the call; no value when forward is to be called as it is. `tensors` is null for
  // a forward whose arguments or result are not tensors alone.
  virtual HookValue call(Module& module, const HookArgs& args, const TensorForward* tensors) = 0;
};

// Calls forward() between the hooks of the module and the global ones. `args` refers to what
// forward will use; forward returns its result, by reference or owned, or no value for void.
HookValue call_module(Module& module, HookArgs& args, const std::function<HookValue()>& forward,
                      const TensorForward* tensors = nullptr);

[[noreturn]] void throw_argument_count(const Module& module, size_t got, size_t expected);
[[noreturn]] void throw_replaced(const Module& module, const char* what);

// How an argument waits while hooks look at it: tensors by handle, all else by reference.
template <class A, class D = std::decay_t<A>>
using HeldArgument =
    std::conditional_t<std::is_same_v<D, Tensor> || std::is_same_v<D, Arg<Tensor>> ||
                           std::is_same_v<D, Param<Tensor>> || std::is_same_v<D, Buffer>,
                       Tensor, A&&>;

template <class T>
inline constexpr bool is_of_tensors = std::is_same_v<T, Tensor>;
template <>
inline constexpr bool is_of_tensors<std::vector<Tensor>> = true;
template <size_t N>
inline constexpr bool is_of_tensors<std::array<Tensor, N>> = true;
template <class A, class B>
inline constexpr bool is_of_tensors<std::pair<A, B>> =
    std::is_same_v<A, Tensor> && std::is_same_v<B, Tensor>;
template <class... T>
inline constexpr bool is_of_tensors<std::tuple<T...>> = (std::is_same_v<T, Tensor> && ...);

template <class M, class Result, class... Args>
const TensorForward* tensor_forward() {
  if constexpr (is_of_tensors<Result> && (std::is_same_v<HeldArgument<Args>, Tensor> && ...)) {
    static constexpr TensorForward kForward{
        sizeof...(Args),
        [](Module& module, const std::vector<Tensor>& args) {
          std::vector<Tensor> held = args;
          auto result = [&]<size_t... i>(std::index_sequence<i...>) {
            return static_cast<M&>(module).forward(held[i]...);
          }(std::index_sequence_for<Args...>{});
          std::vector<Tensor> list;
          for (Tensor* x : HookValue(result).elements()) list.push_back(std::move(*x));
          return list;
        },
        [](std::vector<Tensor> list) {
          Result result;
          if constexpr (std::is_same_v<Result, std::vector<Tensor>>) {
            result = std::move(list);
          } else {
            size_t i = 0;
            for (Tensor* x : HookValue(result).elements()) *x = std::move(list[i++]);
          }
          return HookValue::own(std::move(result));
        }};
    return &kForward;
  } else {
    return nullptr;
  }
}

// Takes over what a hook put in the place of a value.
template <class T>
void take_back(const Module& module, const HookValue& from, T& to, const char* what) {
  if (from.address() == &to) return;
  if constexpr (!std::is_const_v<T> && std::is_move_assignable_v<T>) {
    if (T* value = from.get_if<T>()) {
      to = std::move(*value);
      return;
    }
  }
  throw_replaced(module, what);
}

// The call that KILN_MODULE writes. Out of line, so that a call without hooks stays small.
template <class Forward, class... Args>
[[gnu::noinline, gnu::cold]] decltype(auto) call_with_hooks(Module& module, Forward forward,
                                                            const TensorForward* tensors,
                                                            Args&&... args) {
  std::tuple<HeldArgument<Args>...> held(static_cast<HeldArgument<Args>>(args)...);
  HookArgs values;
  std::apply([&values](auto&... each) { (values.args.emplace_back(each), ...); }, held);
  const auto call = [&]() -> decltype(auto) {
    if (values.size() != sizeof...(Args)) {
      throw_argument_count(module, values.size(), sizeof...(Args));
    }
    return std::apply(
        [&](auto&... each) -> decltype(auto) {
          size_t i = 0;
          (take_back(module, values[i++], each, "an argument"), ...);
          static_cast<void>(i);
          return forward(static_cast<std::conditional_t<std::is_same_v<HeldArgument<Args>, Tensor>,
                                                        Tensor&, Args&&>>(each)...);
        },
        held);
  };
  using Result = decltype(call());
  if constexpr (std::is_void_v<Result>) {
    call_module(module, values, [&] {
      call();
      return HookValue();
    });
  } else if constexpr (std::is_reference_v<Result>) {
    std::remove_reference_t<Result>* result = nullptr;
    const HookValue output = call_module(module, values, [&] {
      auto&& made = call();
      result = &made;
      return HookValue(made);
    });
    take_back(module, output, *result, "the result");
    return static_cast<Result>(*result);
  } else {
    std::optional<Result> result;
    const HookValue output = call_module(
        module, values,
        [&] {
          result.emplace(call());
          return HookValue(*result);
        },
        tensors);
    if constexpr (is_of_tensors<Result>) {
      if (!result) result.emplace();  // forward was not called: the output is another's
    }
    take_back(module, output, *result, "the result");
    return Result(std::move(*result));
  }
}

}  // namespace detail
}  // namespace kiln::nn
