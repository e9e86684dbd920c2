// Functions with a derivative of your own: what autodiff cannot see through (a solver, a table, a
// library), or can only with more memory or less accuracy than a formula needs.
//
//   struct Cube : kiln::Function<Cube> {
//     static Tensor forward(FunctionContext& ctx, const Tensor& x) {
//       ctx.save_for_backward({x});
//       return x * x * x;
//     }
//     static TensorList backward(FunctionContext& ctx, const TensorList& grads) {
//       return {grads[0] * 3 * ctx.saved_tensors()[0].pow(2)};
//     }
//   };
//   Tensor y = Cube::apply(x);
//
// The backward is written with ordinary ops, so a pass with create_graph differentiates through it
// to any order.
#pragma once

#include <any>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <typeinfo>
#include <utility>
#include <vector>

#include "kiln/tensor/tensor.h"

namespace kiln {

using TensorList = std::vector<Tensor>;

namespace detail {
struct FunctionState;
class FunctionNode;
}  // namespace detail

// What a call of a function hands from its forward to its backward.
class FunctionContext {
 public:
  explicit FunctionContext(std::shared_ptr<detail::FunctionState> state)
      : state_(std::move(state)) {}

  // Called at most once, in forward: inputs, outputs and tensors in between; undefined ones are
  // kept as such. What is kept this way is freed by the backward pass, is watched for writes in
  // place, and makes no cycle when it is an output.
  void save_for_backward(TensorList tensors);
  // The same tensors, for backward. Throws AutodiffError when one was modified in place since, or
  // when an earlier pass freed them.
  TensorList saved_tensors() const;

  // Whether the gradient of input i (counted as in apply()) is wanted: in forward, whether the
  // input requires one; in backward, whether this pass asks for it.
  bool needs_input_grad(size_t i) const;

  // In forward: these outputs have no gradient. (Integers and bools never have.)
  void mark_non_differentiable(const TensorList& outputs);
  // In forward: these inputs were written to in place, and are outputs.
  void mark_dirty(const TensorList& inputs);
  // Whether backward sees zeros (the default) or an undefined tensor as the gradient of an output
  // that nothing depends on.
  void set_materialize_grads(bool on);

  // Anything else that backward needs: ctx.saved_data()["p"] = 2.0, std::any_cast<double>(..).
  std::map<std::string, std::any>& saved_data();

 private:
  friend class detail::FunctionNode;
  std::shared_ptr<detail::FunctionState> state_;
  const std::vector<bool>* wanted_ = nullptr;
};

// inputs -> outputs; runs without recording. Undefined tensors are legal in both.
using FunctionForward = std::function<TensorList(FunctionContext&, const TensorList& inputs)>;
// The gradients of the outputs -> those of the inputs, undefined for an input that has none.
using FunctionBackward = std::function<TensorList(FunctionContext&, const TensorList& grads)>;

// The outputs of `forward`, with `backward` as their derivative. A gradient must have the shape of
// its input, or one that broadcasting the input gives (it is summed then); backward throws
// AutodiffError when there are fewer gradients than inputs or one is given where the input is no
// tensor, ShapeError when a shape does not fit. `name` is what grad_fn() and errors say.
TensorList call_function(const std::string& name, const TensorList& inputs,
                         const FunctionForward& forward, FunctionBackward backward);

namespace detail {

// "Cube" from the type Cube.
std::string function_name(const std::type_info& type);

template <class T>
void flatten_argument(TensorList& inputs, const T& argument) {
  if constexpr (std::is_same_v<T, Tensor>) {
    inputs.push_back(argument);
  } else if constexpr (std::is_same_v<T, TensorList>) {
    inputs.insert(inputs.end(), argument.begin(), argument.end());
  } else {
    inputs.emplace_back();
  }
}

template <class R>
TensorList list_of_result(R result) {
  if constexpr (std::is_same_v<R, Tensor>) {
    return {std::move(result)};
  } else if constexpr (std::is_same_v<R, TensorList>) {
    return result;
  } else {
    return std::apply([](auto&... x) { return TensorList{std::move(x)...}; }, result);
  }
}

template <class R>
R result_of_list(TensorList list) {
  if constexpr (std::is_same_v<R, Tensor>) {
    return std::move(list[0]);
  } else if constexpr (std::is_same_v<R, TensorList>) {
    return list;
  } else {
    R result;
    size_t i = 0;
    std::apply([&](auto&... x) { ((x = std::move(list[i++])), ...); }, result);
    return result;
  }
}

}  // namespace detail

// Derive from it, and give static functions forward(FunctionContext&, arguments...) and
// backward(FunctionContext&, const TensorList& grads). Arguments of type Tensor are differentiated,
// those of type TensorList one by one; others reach forward as they are. forward returns a Tensor,
// a pair, tuple, array or TensorList of them; backward returns one gradient for each argument (for
// each tensor of a list), undefined where there is none.
template <class Derived>
class Function {
 public:
  template <class... Args>
  static auto apply(const Args&... arguments) {
    using Result = decltype(Derived::forward(std::declval<FunctionContext&>(), arguments...));
    static const std::string name = detail::function_name(typeid(Derived));
    TensorList inputs;
    (detail::flatten_argument(inputs, arguments), ...);
    return detail::result_of_list<Result>(call_function(
        name, inputs,
        [&](FunctionContext& ctx, const TensorList&) {
          return detail::list_of_result<Result>(Derived::forward(ctx, arguments...));
        },
        [](FunctionContext& ctx, const TensorList& grads) {
          return Derived::backward(ctx, grads);
        }));
  }
};

}  // namespace kiln
