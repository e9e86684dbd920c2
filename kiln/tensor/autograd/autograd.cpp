#include "kiln/core/kept_data.h"
#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/autograd/leaf_log.h"
#include "kiln/tensor/autograd/pass_callbacks.h"
#include "kiln/tensor/interop.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

using namespace detail;

struct Gradients::Impl {
  AD::Gradients map;
};

Gradients::Gradients() : impl_(std::make_unique<Impl>()) {}
Gradients::Gradients(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Gradients::Gradients(Gradients&&) noexcept = default;
Gradients& Gradients::operator=(Gradients&&) noexcept = default;
Gradients::~Gradients() = default;
size_t Gradients::size() const { return impl().map.size(); }
void Gradients::throw_moved() {
  throw_error<AutodiffError>("Gradients: they were moved away; got an object that was moved from");
}

bool is_grad_enabled() { return autodiff::is_recording<Dispatch>(); }
void set_grad_enabled(bool enabled) {
  autodiff::set_recording<Dispatch>(enabled);
  detail::set_keeps_data(!enabled);
}

void set_detect_anomaly(bool enabled, bool check_nan) {
  using autodiff::AnomalyMode;
  autodiff::set_anomaly_mode(!enabled    ? AnomalyMode::off
                             : check_nan ? AnomalyMode::check_nan
                                         : AnomalyMode::trace);
}
bool is_anomaly_enabled() { return autodiff::anomaly_mode() != autodiff::AnomalyMode::off; }
bool is_anomaly_check_nan_enabled() {
  return autodiff::anomaly_mode() == autodiff::AnomalyMode::check_nan;
}

bool Tensor::requires_grad() const {
  return static_cast<bool>(parts_or_value("requires_grad", *this).node);
}

bool Tensor::is_leaf() const { return impl_of("is_leaf", *this).is_leaf(); }

namespace {

// Other threads may compute with the leaf: they go on with the node that they saw.
void set_leaf(const Tensor& x, Value value, Handle<autodiff::Node<Dispatch>> resting) {
  TensorImpl& impl = state_of(x);
  if (x.impl().unique()) {
    impl.value = std::move(value);
    impl.resting = std::move(resting);
    return;
  }
  auto state = make_handle<TensorImpl>(std::move(value));
  if (impl.is_complex()) state->complex_shape = std::make_unique<const Shape>(impl.shape());
  state->root = impl.root;
  state->root_writes = impl.root_writes;
  state->recorded_writes = impl.recorded_writes;
  state->resting = std::move(resting);
  exchange(x.impl(), std::move(state));
}

}  // namespace

Tensor& Tensor::requires_grad_(bool wanted) {
  TensorImpl& impl = impl_of("requires_grad_", *this);
  if (!impl.is_leaf()) {
    if (wanted) return *this;
    throw_error<AutodiffError>(
        "requires_grad_: a result of recorded ops cannot stop requiring a "
        "gradient; try detach()");
  }
  if (wanted && impl.kind() != Kind::floating) {
    throw_error<DTypeError>(
        "requires_grad_: only floating point and complex tensors have gradients; got ",
        impl.dtype());
  }
  if (wanted == static_cast<bool>(impl.value.node)) return *this;
  if (!wanted) {
    set_leaf(*this, AD::detach(impl.value), impl.value.node);
  } else if (impl.resting) {
    set_leaf(*this, Value{impl.value.inner, impl.resting}, {});
  } else {
    set_leaf(*this, AD::require_grad(impl.value), {});
  }
  return *this;
}

Tensor Tensor::detach() const {
  const TensorImpl& state = impl_of("detach", *this);
  return state.is_complex() ? wrap_complex(Value{state.value.inner}) : wrap(state.value.inner);
}

Tensor Tensor::variable_data() const {
  const TensorImpl& state = impl_of("variable_data", *this);
  ErasedTensor values = Dispatch::own_version(state.value.inner);
  return state.is_complex() ? wrap_complex(Value{std::move(values)}) : wrap(std::move(values));
}

std::string Tensor::grad_fn() const {
  const Value& x = parts_or_value("grad_fn", *this);
  return !x.node || x.node->is_leaf() ? "" : x.node->name();
}

namespace {

// The gradient that the pass starts from: given, or one for a scalar.
std::optional<Value> checked_seed(const char* op, const Tensor& x, const Tensor& gradient) {
  const Value& value = parts_or_value(op, x);
  if (!gradient.defined()) {
    if (x.numel() != 1) {
      throw_error<AutodiffError>(op, ": only a tensor of one element has an implied gradient; got ",
                                 x.shape(), "; expected a `gradient` of that shape");
    }
    if (state_of(x).is_complex()) {
      throw_error<AutodiffError>(op, ": only a real scalar has an implied gradient; got ",
                                 x.dtype(), "; expected a `gradient`, or a real loss");
    }
    return std::nullopt;
  }
  if (!(gradient.shape() == x.shape())) {
    throw_error<ShapeError>(op, ": the gradient must have the tensor's shape; got ",
                            gradient.shape(), "; expected ", x.shape());
  }
  check_same_device(op, value, parts_or_value(op, gradient));
  return parts_or_value(op, gradient.to(x.dtype()));
}

}  // namespace

Gradients Tensor::backward(const Tensor& gradient, bool retain_graph, bool create_graph) const {
  std::optional<Value> seed = checked_seed("backward", *this, gradient);
  auto impl = std::make_unique<Gradients::Impl>();
  const amp::detail::NoCasting off;  // a gradient has the dtype of its op
  impl->map = AD::backward(parts_or_value("backward", *this), std::move(seed),
                           {retain_graph || create_graph, create_graph});
  Gradients gradients(std::move(impl));
  detail::call_gradients_hooks(gradients);
  return gradients;
}

void Tensor::backward_accumulate(const Tensor& gradient, bool retain_graph,
                                 bool create_graph) const {
  std::optional<Value> seed = checked_seed("backward", *this, gradient);
  const amp::detail::NoCasting off;
  if (leaf_log != nullptr) leaf_log->note_pass(parts_or_value("backward", *this));
  detail::PassCallbacks callbacks;
  AD::backward_accumulate(parts_or_value("backward", *this), std::move(seed),
                          {retain_graph || create_graph, create_graph});
  callbacks.call();
}

std::optional<Tensor> Tensor::grad(const Gradients& grads) const {
  std::optional<Value> found = grads.impl().map.find(parts_or_value("grad", *this));
  if (!found) return std::nullopt;
  return wrap_like(*this, std::move(*found));
}

std::optional<Tensor> Tensor::grad_remove(Gradients& grads) const {
  std::optional<Value> found = grads.impl().map.remove(parts_or_value("grad_remove", *this));
  if (!found) return std::nullopt;
  return wrap_like(*this, std::move(*found));
}

Tensor Gradients::at(const Tensor& x) const {
  std::optional<Tensor> grad = get(x);
  if (!grad) {
    throw_error<AutodiffError>(
        "Gradients: there is none for this tensor; got one of shape ", x.shape(),
        x.requires_grad() ? ", which the loss does not depend on" : ", which requires no gradient",
        "; expected a parameter that took part (get() gives an empty optional instead)");
  }
  return *std::move(grad);
}

void Tensor::grad_replace(Gradients& grads, const Tensor& grad) const {
  const Value& x = parts_or_value("grad_replace", *this);
  if (!x.node) autodiff::throw_no_grad_wanted();
  autodiff::check_like("grad_replace", grad.shape(), grad.dtype(), grad.device(), shape(), dtype(),
                       device());
  grads.impl().map.set(x.node, x.slot, parts_or_value("grad_replace", grad));
}

namespace {

using Leaf = autodiff::LeafNode<Dispatch>;

// Where a tensor's accumulated gradient is kept; locked.
class GradPlace {
 public:
  explicit GradPlace(const TensorImpl& x)
      : node_(x.value.node ? x.value.node : x.resting), slot_(x.value.slot) {
    if (node_) node_->lock().lock();
  }
  GradPlace(const GradPlace&) = delete;
  ~GradPlace() {
    if (node_) node_->lock().unlock();
  }

  const Handle<autodiff::Node<Dispatch>>& node() const { return node_; }
  // Null when there is none.
  std::optional<Value>* find() const {
    if (!node_) return nullptr;
    if (node_->is_leaf()) return &static_cast<Leaf*>(node_.get())->grad;
    if (auto* extras = node_->extras()) {
      for (auto& kept : extras->kept) {
        if (kept.slot == slot_) return &kept.grad;
      }
    }
    return nullptr;
  }

 private:
  Handle<autodiff::Node<Dispatch>> node_;
  uint32_t slot_;
};

}  // namespace

Tensor Tensor::grad() const {
  const GradPlace at(impl_of("grad", *this));
  const std::optional<Value>* place = at.find();
  if (place == nullptr || !*place) return {};
  return wrap_like(*this, **place);
}

void Tensor::set_grad(const Tensor& grad) {
  TensorImpl& x = impl_of("set_grad", *this);
  std::optional<Value> value;
  if (grad.defined()) {
    value = parts_or_value("set_grad", grad);
    if (!(grad.shape() == shape()) || grad.dtype() != dtype() || grad.device() != device()) {
      throw_error<ShapeError>("set_grad: the gradient must be like the tensor; got ", grad.shape(),
                              " ", grad.dtype(), "; expected ", shape(), " ", dtype());
    }
  }
  if (!x.value.node && !x.resting) {
    if (!value) return;
    if (x.kind() == Kind::floating) x.resting = make_handle<Leaf>();
  }
  const GradPlace at(x);
  if (leaf_log != nullptr) leaf_log->note(at.node(), LeafLog::First::reset);
  std::optional<Value>* place = at.find();
  if (place == nullptr) {
    throw_error<AutodiffError>(
        "set_grad: the tensor keeps no gradient; expected a leaf of floating point or complex "
        "numbers, or retain_grad() before");
  }
  *place = std::move(value);
}

void Tensor::zero_grad(bool set_to_none) {
  const GradPlace at(impl_of("zero_grad", *this));
  if (leaf_log != nullptr) {
    leaf_log->note(at.node(), set_to_none ? LeafLog::First::reset : LeafLog::First::filled);
  }
  std::optional<Value>* place = at.find();
  if (place == nullptr || !*place) return;
  if (set_to_none) {
    place->reset();
  } else {
    *place = AD::detach(**place);
    Dispatch::float_fill((*place)->inner, Scalar(0.0));
  }
}

Tensor& Tensor::retain_grad() {
  const Value& x = parts_or_value("retain_grad", *this);
  if (!x.node) {
    throw_error<AutodiffError>("retain_grad: the tensor does not require a gradient");
  }
  if (x.node->is_leaf()) return *this;
  const GradPlace at(impl_of("retain_grad", *this));
  if (at.find() == nullptr) x.node->ensure_extras().kept.push_back({x.slot, std::nullopt});
  return *this;
}

HookHandle Tensor::register_hook(std::function<Tensor(const Tensor&)> hook) const {
  const Value& x = parts_or_value("register_hook", *this);
  if (!x.node) {
    throw_error<AutodiffError>("register_hook: the tensor does not require a gradient");
  }
  auto alive = std::make_shared<bool>(true);
  const auto* foreign = hook.target<interop::ForeignCall<Tensor(const Tensor&)>>();
  autodiff::Foreign object = foreign == nullptr ? nullptr : foreign->object;
  auto call = [hook = std::move(hook),
               complex = state_of(*this).is_complex()](const Value& value) -> std::optional<Value> {
    const Tensor grad = complex ? wrap_complex(value) : wrap(value);
    const Tensor replaced = hook(grad);
    if (!replaced.defined()) return std::nullopt;
    if (!(replaced.shape() == grad.shape()) || replaced.dtype() != grad.dtype()) {
      throw_error<ShapeError>("hook: the replaced gradient must be like the first; got ",
                              replaced.shape(), " ", replaced.dtype(), "; expected ", grad.shape(),
                              " ", grad.dtype());
    }
    return parts_or_value("hook", replaced);
  };
  const GradPlace locked(impl_of("register_hook", *this));
  x.node->ensure_extras().hooks.push_back({x.slot, std::move(call), alive, std::move(object)});
  return HookHandle([alive = std::move(alive)] { *alive = false; });
}

HookHandle register_post_accumulate_grad_hook(const Tensor& x,
                                              std::function<void(const Tensor&)> hook) {
  const Value& value = value_of("register_post_accumulate_grad_hook", x);
  if (!value.node || !value.node->is_leaf()) {
    throw_error<AutodiffError>(
        "register_post_accumulate_grad_hook: expected a leaf that requires a gradient; got ",
        value.node ? "a result of recorded ops" : "a tensor that requires none");
  }
  auto alive = std::make_shared<bool>(true);
  const auto* foreign = hook.target<interop::ForeignCall<void(const Tensor&)>>();
  autodiff::Foreign object = foreign == nullptr ? nullptr : foreign->object;
  // The node owns the hook, so the hook must not own the node.
  auto call = [hook = std::move(hook), inner = value.inner, node = value.node.get()] {
    hook(wrap(Value{inner, Handle<autodiff::Node<Dispatch>>::share(node), 0}));
  };
  const GradPlace locked(impl_of("register_post_accumulate_grad_hook", x));
  value.node->ensure_extras().accumulated.push_back({std::move(call), alive, std::move(object)});
  return HookHandle([alive = std::move(alive)] { *alive = false; });
}

std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                         const GradOptions& options) {
  if (!options.grad_outputs.empty() && options.grad_outputs.size() != outputs.size()) {
    throw_error<ValueError>("grad: expected one grad_output for each output; got ",
                            options.grad_outputs.size(), " for ", outputs.size());
  }
  std::vector<Value> roots;
  std::vector<Value> seeds;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Value& root = parts_or_value("grad", outputs[i]);
    std::optional<Value> seed = checked_seed(
        "grad", outputs[i], options.grad_outputs.empty() ? Tensor() : options.grad_outputs[i]);
    if (!seed) {
      seed =
          AD::float_full(shape_of(root), Scalar(1.0), dtype_of_value(root), root.inner->device());
    }
    roots.push_back(root);
    seeds.push_back(std::move(*seed));
  }
  std::vector<Value> wanted;
  for (const Tensor& input : inputs) {
    wanted.push_back(parts_or_value("grad", input));
    if (!wanted.back().node) {
      throw_error<AutodiffError>(
          "grad: an input does not require a gradient; expected "
          "requires_grad_(), or a result of tracked ops");
    }
  }
  const bool retain = options.retain_graph.value_or(options.create_graph);
  const amp::detail::NoCasting off;
  auto found = AD::grad_of(roots, seeds, wanted, {retain, options.create_graph});
  std::vector<Tensor> out;
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i] && !options.allow_unused) {
      throw_error<AutodiffError>("grad: input ", i,
                                 " was not used in computing the outputs; "
                                 "expected allow_unused if that is meant");
    }
    out.push_back(found[i] ? wrap_like(inputs[i], std::move(*found[i])) : Tensor());
  }
  return out;
}

}  // namespace kiln
