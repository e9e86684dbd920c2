// AutodiffBase: what the formulas are written with.
#pragma once

#include <cmath>
#include <numbers>

#include "kiln/autodiff/engine.h"

namespace kiln::autodiff {

// Formulas read: save what is needed, run the inner op, attach a node whose lambda gives each
// operand its gradient:
//
//   static T float_mul(F x, F y) {
//     if (!tracked(x, y)) return {B::float_mul(in(x), in(y))};
//     auto formula = [x_ = save(x), y_ = save(y)](P& p) { ... };
//     return attach("mul", B::float_mul(in(x), in(y)), {&x, &y}, std::move(formula));
//   }
//
// The gradients are computed with the ops of Autodiff<B> itself, on operands without history in a
// plain pass (so nothing is recorded) and with it under create_graph (so the pass can be
// differentiated in turn). Saving comes before the op, since an op may take over a donated
// operand's memory, or write over one that it was given in place.
template <class B>
struct AutodiffBase {
  using Inner = typename B::FloatTensorPrimitive;
  using Int = typename B::IntTensorPrimitive;
  using Bool = typename B::BoolTensorPrimitive;
  using Quantized = typename B::QuantizedTensorPrimitive;
  using T = Tensor<B>;
  using F = Arg<T>;
  using P = Pass<B>;
  using A = Autodiff<B>;

  static Arg<Inner> in(const F& x) { return x.with(x->inner); }
  static const Inner* in(const T* x) { return x == nullptr ? nullptr : &x->inner; }

  static bool has_node(const F& x) { return static_cast<bool>(x->node); }
  static bool has_node(const T* x) { return x != nullptr && x->node; }
  template <class... X>
  static bool tracked(const X&... xs) {
    return (has_node(xs) || ...) && is_recording<B>();
  }

  // An operand that the op is about to write over is saved as a copy.
  static SavedInput<B> save(const F& x) {
    if (!x.is_in_place()) return SavedInput<B>(x.get());
    return SavedInput<B>(
        T{B::float_mul_scalar(std::as_const(x->inner), Scalar(1)), x->node, x->slot});
  }
  // Saves x only where some other operand's gradient needs it.
  static std::optional<SavedInput<B>> save_if(bool wanted, const F& x) {
    return wanted ? std::optional(save(x)) : std::nullopt;
  }
  static std::optional<SavedInput<B>> save_if(bool wanted, const T* x) {
    return wanted && x != nullptr ? std::optional(SavedInput<B>(*x)) : std::nullopt;
  }
  static SavedOutput<B> save_output(const Inner& y, uint32_t slot = 0) {
    return SavedOutput<B>(y, slot);
  }
  static SavedOutput<B> save_output(const Inner& y, Handle<Recipe<B>> recipe) {
    return SavedOutput<B>(y, 0, std::move(recipe));
  }

  // How an elementwise op's result is computed again from its operands; null unless the strategy
  // wants that. To be made before the op runs, as what is saved must be.
  using Options = typename ComputedAgain<B>::Options;
  static Handle<Recipe<B>> recipe(const F& x, typename ComputedAgain<B>::Run run,
                                  const Options& options = {}) {
    if (checkpoint_strategy() == CheckpointStrategy::keep_all) [[likely]]
      return nullptr;
    return x.is_in_place() ? nullptr : made(save(x).values(), std::nullopt, run, options);
  }
  static Handle<Recipe<B>> recipe(const F& x, const F& y, typename ComputedAgain<B>::Run run) {
    if (checkpoint_strategy() == CheckpointStrategy::keep_all) [[likely]]
      return nullptr;
    if (x.is_in_place() || y.is_in_place()) return nullptr;
    return made(save(x).values(), save(y).values(), run, {});
  }
  template <class X>
  static SavedConstant<B, X> save_constant(const X& x) {
    return SavedConstant<B, X>(x);
  }

  static Edge<B> edge(const F& x) { return {x->node, x->slot}; }
  static Edge<B> edge(const T* x) { return x == nullptr ? Edge<B>{} : Edge<B>{x->node, x->slot}; }

  template <size_t N>
  using Edges = std::array<Edge<B>, N>;
  template <class... X>
  static Edges<sizeof...(X)> edges(const X&... xs) {
    return {edge(xs)...};
  }

  template <size_t N, class Formula>
  static T attach(const char* name, Inner out, Edges<N> to, Formula formula,
                  Handle<Recipe<B>> recipe = nullptr) {
    auto node = make_handle<OpNode<B, N, Formula>>(name, 1u, std::move(to), std::move(formula));
    if (recipe) [[unlikely]]
      node->ensure_extras().recipe = std::move(recipe);
    return T{std::move(out), std::move(node), 0};
  }

  static decltype(auto) shape(const T& x) { return B::shape(x.inner); }
  static DType dtype(const T& x) { return B::dtype(x.inner); }
  static Device device(const T& x) { return B::device(x.inner); }
  static uint32_t version(const T& x) { return version_of<B>(x.inner); }

  static T zeros_like(const T& x, const Shape& shape) {
    return {B::float_full(shape, Scalar(0.0), B::dtype(x.inner), B::device(x.inner))};
  }

  // Sums g over the dims along which an operand of shape `to` was broadcast.
  static T sum_to(T g, const Shape& to) {
    const Shape from = B::shape(g.inner);
    if (from == to) return g;
    const int lead = from.rank() - to.rank();
    Dims dims;
    for (int i = 0; i < from.rank(); ++i) {
      if (i < lead || (to[i - lead] == 1 && from[i] != 1)) dims.push_back(i);
    }
    T sum = dims.empty() ? std::move(g) : A::float_sum(std::move(g), dims, true);
    return A::float_reshape(std::move(sum), to);
  }

 private:
  static Handle<Recipe<B>> made(SavedValues<B> x, std::optional<SavedValues<B>> y,
                                typename ComputedAgain<B>::Run run, const Options& options) {
    auto out = make_handle<ComputedAgain<B>>(std::move(x), std::move(y), run, options);
    if (!out->is_short()) return nullptr;
    return out;
  }
};

}  // namespace kiln::autodiff
