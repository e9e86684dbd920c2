// Autodiff<B>: the backend that computes with B and records what it computes, so that it can be
// differentiated. It is a backend itself: Autodiff<Autodiff<B>> differentiates a differentiation.
#pragma once

#include "kiln/autodiff/formulas_recurrence.h"

namespace kiln {

namespace autodiff {

// The ops on ints and bools: not differentiable, so simply B's.
template <class B>
struct Plain : FormulasRecurrence<B> {
#define KILN_FLOAT_OP(level, op_name, ...)
#define KILN_OP(level, op_name, ...)                                             \
  template <class... X>                                                          \
  static auto op_name(X&&... xs)->decltype(B::op_name(std::forward<X>(xs)...)) { \
    return B::op_name(std::forward<X>(xs)...);                                   \
  }
#define KILN_INT_OP KILN_OP
#define KILN_BOOL_OP KILN_OP
#define KILN_QUANTIZED_OP(level, op_name, ...)
#include "kiln/backend/ops.def"
};

}  // namespace autodiff

template <class B>
struct Autodiff : autodiff::Plain<B> {
  using Base = autodiff::AutodiffBase<B>;
  using InnerBackend = B;
  using Device = typename B::Device;
  using FloatElem = typename B::FloatElem;
  using IntElem = typename B::IntElem;
  using BoolElem = typename B::BoolElem;
  using FloatTensorPrimitive = autodiff::Tensor<B>;
  using IntTensorPrimitive = typename B::IntTensorPrimitive;
  using BoolTensorPrimitive = typename B::BoolTensorPrimitive;
  using QuantizedTensorPrimitive = typename B::QuantizedTensorPrimitive;

  // The result of a backward pass: each leaf's gradient, apart from the graph.
  using Gradients = autodiff::GradientMap<B>;

  static std::string name(Device device) {
    return "autodiff<" + std::string(B::name(device)) + ">";
  }
  static void seed(Device device, uint64_t value) { B::seed(device, value); }
  static void sync(Device device) { B::sync(device); }

  using Base::device;
  using Base::dtype;
  using Base::shape;
  using Base::version;
  static decltype(auto) shape(const IntTensorPrimitive& x) { return B::shape(x); }
  static decltype(auto) shape(const BoolTensorPrimitive& x)
    requires(!std::same_as<IntTensorPrimitive, BoolTensorPrimitive>)
  {
    return B::shape(x);
  }
  static DType dtype(const IntTensorPrimitive& x) { return B::dtype(x); }
  static DType dtype(const BoolTensorPrimitive& x)
    requires(!std::same_as<IntTensorPrimitive, BoolTensorPrimitive>)
  {
    return B::dtype(x);
  }
  static Device device(const IntTensorPrimitive& x) { return B::device(x); }
  static Device device(const BoolTensorPrimitive& x)
    requires(!std::same_as<IntTensorPrimitive, BoolTensorPrimitive>)
  {
    return B::device(x);
  }
  static uint32_t version(const IntTensorPrimitive& x) { return autodiff::version_of<B>(x); }

  // ---- The AutodiffBackend part

  // A leaf: differentiation stops here and gives x a gradient.
  static FloatTensorPrimitive require_grad(const FloatTensorPrimitive& x) {
    return {x.inner, make_handle<autodiff::LeafNode<B>>(), 0};
  }
  static bool is_require_grad(const FloatTensorPrimitive& x) { return static_cast<bool>(x.node); }
  static FloatTensorPrimitive detach(const FloatTensorPrimitive& x) { return {x.inner}; }

  // Differentiates the sum of `tensor` with respect to every leaf it depends on. Throws
  // AutodiffError when it depends on none, or when the graph was freed by an earlier pass.
  static Gradients backward(FloatTensorPrimitive tensor) {
    return backward(std::move(tensor), std::nullopt, {});
  }
  // The same, starting from the gradient `seed` (ones when absent).
  static Gradients backward(FloatTensorPrimitive tensor, std::optional<FloatTensorPrimitive> seed,
                            autodiff::PassOptions options) {
    using Engine = autodiff::Engine<B>;
    Gradients map;
    Engine engine(options, Engine::Sink::map, &map);
    const FloatTensorPrimitive start = seed ? std::move(*seed) : ones_like(tensor);
    engine.run(std::span(&tensor, 1), std::span(&start, 1));
    return map;
  }
  // Adds the gradients into the leaves instead (see leaf_grad).
  static void backward_accumulate(FloatTensorPrimitive tensor,
                                  std::optional<FloatTensorPrimitive> seed,
                                  autodiff::PassOptions options) {
    using Engine = autodiff::Engine<B>;
    Engine engine(options, Engine::Sink::leaves, nullptr);
    const FloatTensorPrimitive start = seed ? std::move(*seed) : ones_like(tensor);
    engine.run(std::span(&tensor, 1), std::span(&start, 1));
  }
  // The gradients of several tensors with respect to chosen ones, which may be inside the graph.
  // Absent where nothing connects them.
  static std::vector<std::optional<FloatTensorPrimitive>> grad_of(
      std::span<const FloatTensorPrimitive> outputs, std::span<const FloatTensorPrimitive> seeds,
      std::span<const FloatTensorPrimitive> inputs, autodiff::PassOptions options) {
    using Engine = autodiff::Engine<B>;
    Gradients map;
    Engine engine(options, Engine::Sink::captured, &map);
    engine.restrict_to(outputs, inputs);
    engine.run(outputs, seeds);
    std::vector<std::optional<FloatTensorPrimitive>> out;
    for (const FloatTensorPrimitive& x : inputs) out.push_back(map.find(x));
    return out;
  }

  static std::optional<typename B::FloatTensorPrimitive> grad(const FloatTensorPrimitive& tensor,
                                                              const Gradients& grads) {
    auto found = grads.find(tensor);
    if (!found) return std::nullopt;
    return std::move(found->inner);
  }
  static std::optional<typename B::FloatTensorPrimitive> grad_remove(
      const FloatTensorPrimitive& tensor, Gradients& grads) {
    auto found = grads.remove(tensor);
    if (!found) return std::nullopt;
    return std::move(found->inner);
  }
  // Throws AutodiffError for a tensor that requires no gradient, ShapeError, DTypeError and
  // DeviceError for a gradient that is not like the tensor.
  static void grad_replace(const FloatTensorPrimitive& tensor, Gradients& grads,
                           typename B::FloatTensorPrimitive grad) {
    if (!tensor.node) autodiff::throw_no_grad_wanted();
    autodiff::check_like("grad_replace", B::shape(grad), B::dtype(grad), B::device(grad),
                         B::shape(tensor.inner), B::dtype(tensor.inner), B::device(tensor.inner));
    grads.set(tensor.node, tensor.slot, FloatTensorPrimitive{std::move(grad)});
  }

  static typename B::FloatTensorPrimitive inner(FloatTensorPrimitive x) {
    return std::move(x.inner);
  }
  static IntTensorPrimitive int_inner(IntTensorPrimitive x) { return x; }
  static BoolTensorPrimitive bool_inner(BoolTensorPrimitive x) { return x; }
  static QuantizedTensorPrimitive q_inner(QuantizedTensorPrimitive x) { return x; }
  static FloatTensorPrimitive from_inner(typename B::FloatTensorPrimitive x) {
    return {std::move(x)};
  }
  static IntTensorPrimitive int_from_inner(IntTensorPrimitive x) { return x; }
  static BoolTensorPrimitive bool_from_inner(BoolTensorPrimitive x) { return x; }
  static QuantizedTensorPrimitive q_from_inner(QuantizedTensorPrimitive x) { return x; }

  // ---- Ops between kinds, and on quantized tensors

  static FloatTensorPrimitive int_into_float(const Arg<IntTensorPrimitive>& x, DType dtype) {
    return {B::int_into_float(x, dtype)};
  }
  static FloatTensorPrimitive bool_into_float(const Arg<BoolTensorPrimitive>& x, DType dtype) {
    return {B::bool_into_float(x, dtype)};
  }
  static QuantizedTensorPrimitive q_from_parts(const Arg<IntTensorPrimitive>& values,
                                               const Arg<FloatTensorPrimitive>& scales,
                                               const QuantScheme& scheme, const Shape& shape) {
    return B::q_from_parts(values, scales->inner, scheme, shape);
  }
  static IntTensorPrimitive q_values(const Arg<QuantizedTensorPrimitive>& x) {
    return B::q_values(x);
  }
  static FloatTensorPrimitive q_scales(const Arg<QuantizedTensorPrimitive>& x) {
    return {B::q_scales(x)};
  }
  static QuantScheme q_scheme(const Arg<QuantizedTensorPrimitive>& x) { return B::q_scheme(x); }
  static QuantizedTensorPrimitive q_reshape(const Arg<QuantizedTensorPrimitive>& x,
                                            const Shape& shape) {
    return B::q_reshape(x, shape);
  }
  static FloatTensorPrimitive q_dequantize(const Arg<QuantizedTensorPrimitive>& x, DType dtype) {
    return {B::q_dequantize(x, dtype)};
  }
  static FloatTensorPrimitive q_matmul(const Arg<QuantizedTensorPrimitive>& a,
                                       const Arg<QuantizedTensorPrimitive>& b, bool transposed,
                                       DType dtype) {
    return {B::q_matmul(a, b, transposed, dtype)};
  }

 private:
  static FloatTensorPrimitive ones_like(const FloatTensorPrimitive& x) {
    return {B::float_full(B::shape(x.inner), Scalar(1.0), B::dtype(x.inner), B::device(x.inner))};
  }
};

}  // namespace kiln
