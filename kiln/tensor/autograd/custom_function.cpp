#include "kiln/tensor/autograd/custom_function.h"

#include <cstdlib>

#include <cxxabi.h>

#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/complex/complex.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/interop.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

using namespace detail;

namespace detail {

using Node = autodiff::Node<Dispatch>;
using Edge = autodiff::Edge<Dispatch>;

namespace {

uint32_t version_of_value(const Value& x) { return autodiff::version_of<Dispatch>(x.inner); }

// What is remembered of an input or an output.
struct Description {
  bool defined = false;
  Shape shape;
  DType dtype = DType::f32;
  Device device;

  static Description of(const Tensor& x) {
    if (!x.defined()) return {};
    return {true, x.shape(), x.dtype(), x.device()};
  }
};

// Note [Saved outputs]. An output that a function saves takes its history from the node that saved
// it when it is asked for: holding it would be a cycle that nothing frees.
struct Saved {
  std::optional<Value> value;
  uint32_t version = 0;
  bool is_output = false;
  bool is_complex = false;
  autodiff::Unpack<ErasedTensor> unpack = {};  // brings the values back, when a hook packed them
};

}  // namespace

// Shared by the node and the contexts of one call. It never holds a handle to that node, nor the
// user's functions, which may hold a context.
struct FunctionState {
  std::string name;
  std::vector<Description> inputs;
  std::vector<bool> tracked;  // for each input
  std::vector<Description> outputs;
  bool materialize_grads = true;
  std::map<std::string, std::any> data;

  // As they came, while forward runs.
  bool forward_done = false;
  bool has_saved = false;
  TensorList to_save;
  TensorList non_differentiable;
  TensorList dirty;

  std::vector<Saved> saved;
  std::atomic<bool> released = false;
  Node* node = nullptr;  // null when it is gone
};

namespace {

// What backward needs besides the state: apart from it, for the functions may hold contexts.
struct FunctionCall {
  FunctionCall(std::shared_ptr<FunctionState> s, FunctionBackward f)
      : state(std::move(s)), backward(std::move(f)) {
    using Call = interop::ForeignCall<TensorList(FunctionContext&, const TensorList&)>;
    if (const auto* call = backward.target<Call>()) foreign = call->object;
  }
  std::shared_ptr<FunctionState> state;
  FunctionBackward backward;
  autodiff::Foreign foreign;
};

bool contains(const TensorList& list, const Tensor& x) {
  for (const Tensor& y : list) {
    if (y.is_same(x)) return true;
  }
  return false;
}

// Sums g over the dims that broadcasting `to` has made.
Tensor sum_to(const Tensor& g, const Shape& to) {
  const int lead = g.dim() - to.rank();
  Dims dims;
  for (int i = 0; i < g.dim(); ++i) {
    if (i < lead || (to[i - lead] == 1 && g.shape()[i] != 1)) dims.push_back(i);
  }
  return (dims.empty() ? g : g.sum(dims, true)).reshape(to);
}

Value fitted(const FunctionState& state, size_t i, Tensor grad) {
  const Description& input = state.inputs[i];
  const char* name = state.name.c_str();
  if (grad.device() != input.device) {
    throw_error<DeviceError>(name, ": backward gave the gradient of input ", i,
                             " on another device; got ", grad.device(), "; expected ",
                             input.device);
  }
  // Of a real input, only the real part moves.
  if (is_complex(grad.dtype()) && !is_complex(input.dtype)) grad = real(grad);
  if (kind_of(grad.dtype()) != kind_of(input.dtype)) {
    throw_error<DTypeError>(name, ": backward gave the gradient of input ", i, " as ", grad.dtype(),
                            "; expected ", input.dtype);
  }
  if (!(grad.shape() == input.shape)) {
    if (!broadcasts_to(input.shape, grad.shape())) {
      throw_error<ShapeError>(name, ": backward gave the gradient of input ", i,
                              " in a shape that does not fit; got ", grad.shape(), "; expected ",
                              input.shape);
    }
    grad = sum_to(grad, input.shape);
  }
  return parts_or_value(name, grad.to(input.dtype));
}

struct Name {
  std::string text;
};

}  // namespace

class FunctionNode final : private Name, public Node {
 public:
  FunctionNode(std::string name, std::vector<Edge> edges, uint32_t outputs,
               std::shared_ptr<const FunctionCall> call)
      : Name{std::move(name)},
        Node(text.c_str(), outputs),
        edges_(std::move(edges)),
        call_(std::move(call)) {
    set_edges(edges_);
  }
  ~FunctionNode() override {
    if (call_) call_->state->node = nullptr;
  }

  void backward(autodiff::Pass<Dispatch>& pass) override {
    const std::shared_ptr<const FunctionCall> call = call_;
    FunctionState& state = *call->state;
    TensorList grads;
    for (uint32_t i = 0; i < outputs(); ++i) {
      std::optional<Value> grad = pass.take(i);
      const Description& out = state.outputs[i];
      if (grad) {
        grads.push_back(is_complex(out.dtype) ? wrap_complex(std::move(*grad))
                                              : wrap(std::move(*grad)));
      } else if (state.materialize_grads && out.defined) {
        grads.push_back(zeros(out.shape, {.dtype = out.dtype, .device = out.device}));
      } else {
        grads.emplace_back();
      }
    }
    std::vector<bool> wanted(edges_.size());
    for (size_t i = 0; i < edges_.size(); ++i) wanted[i] = edges_[i].node && pass.needs(i);
    TensorList given = run_unlocked(*call, wanted, grads);
    if (given.size() < edges_.size()) {
      throw_error<AutodiffError>(name(), ": backward gave too few gradients; got ", given.size(),
                                 "; expected ", edges_.size(),
                                 ", one for each input (undefined where there is none)");
    }
    for (size_t i = 0; i < given.size(); ++i) {
      if (!given[i].defined()) continue;
      if (i >= edges_.size() || !state.inputs[i].defined) {
        throw_error<AutodiffError>(
            name(), ": backward gave a gradient for input ", i,
            i >= edges_.size() ? ", which does not exist" : ", which is no tensor", "; got ",
            given[i].shape(), "; expected an undefined one");
      }
      if (wanted[i]) pass.give(i, fitted(state, i, std::move(given[i])));
    }
  }

  bool release_saved() noexcept override {
    if (call_) call_->state->released = true;
    call_.reset();
    return true;
  }
  const autodiff::Foreign* foreign() const override {
    return call_ == nullptr || call_.use_count() > 1 ? nullptr : &call_->foreign;
  }

 private:
  // A user's function may take long, wait for another lock or run a pass over this very node: it
  // runs with the node unlocked.
  TensorList run_unlocked(const FunctionCall& call, const std::vector<bool>& wanted,
                          const TensorList& grads) {
    struct Unlocked {
      FunctionNode& node;
      explicit Unlocked(FunctionNode& n) : node(n) { node.lock().unlock(); }
      ~Unlocked() { node.lock().lock(); }
    } unlocked(*this);
    FunctionContext ctx(call.state);
    ctx.wanted_ = &wanted;
    return call.backward(ctx, grads);
  }

  std::vector<Edge> edges_;
  std::shared_ptr<const FunctionCall> call_;
};

std::string function_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
  std::string name = status == 0 ? text.get() : type.name();
  if (name.back() != '>') {
    const size_t colon = name.rfind(':');
    if (colon != std::string::npos) name.erase(0, colon + 1);
  }
  return name;
}

namespace {

// The output with `node` as its history: itself, when it is new; another name for the same memory,
// when it is somebody else's already.
Tensor attach(FunctionState& state, Tensor x, const Handle<Node>& node, uint32_t slot,
              bool is_input) {
  TensorImpl& impl = impl_of(state.name.c_str(), x);
  Value value{impl.value.inner, node, slot};
  if (contains(state.dirty, x)) {
    check_writable(state.name.c_str(), x, true);
    record_write(impl, std::move(value));
    return x;
  }
  if (!is_input && !impl.value.node) {
    impl.value = std::move(value);
    // A view of memory that forward made, and that nobody else can see, is a tensor like others.
    if (impl.root && impl.root->unique()) impl.root = nullptr;
    if (impl.root) impl.view_kind = ViewKind::function;
    return x;
  }
  return wrap_alias(x, std::move(value), ViewKind::function);
}

std::vector<Saved> saved_of(FunctionState& state, const TensorList& outputs) {
  std::vector<Saved> saved;
  for (const Tensor& x : state.to_save) {
    Saved entry;
    if (x.defined()) {
      entry.value = parts_or_value(state.name.c_str(), x);
      entry.is_complex = state_of(x).is_complex();
      if (autodiff::packs_saved<Dispatch>()) {
        entry.unpack = autodiff::pack_saved<Dispatch>(entry.value->inner);
        entry.value->inner = nullptr;
      } else {
        entry.version = version_of_value(*entry.value);
      }
      for (uint32_t i = 0; i < outputs.size(); ++i) {
        if (!state.outputs[i].defined || !outputs[i].is_same(x) || entry.is_output) continue;
        entry.is_output = outputs[i].requires_grad();
        if (entry.is_output) {
          entry.value->node = nullptr;
          entry.value->slot = i;
        }
      }
    }
    saved.push_back(std::move(entry));
  }
  return saved;
}

void check_dirty(const FunctionState& state, const TensorList& inputs, const TensorList& outputs) {
  for (const Tensor& x : state.dirty) {
    if (!contains(inputs, x) || !contains(outputs, x)) {
      throw_error<AutodiffError>(state.name,
                                 ": mark_dirty is for inputs that are returned as outputs; got one "
                                 "that is not both; shape ",
                                 x.shape());
    }
  }
}

// Attaches a node to those outputs that have a gradient.
TensorList with_node(const std::shared_ptr<FunctionState>& state, std::vector<Edge> edges,
                     const TensorList& inputs, TensorList outputs, FunctionBackward backward) {
  std::vector<bool> differentiable;
  bool any = false;
  for (const Tensor& x : outputs) {
    differentiable.push_back(x.defined() && kind_of(x.dtype()) == Kind::floating &&
                             !contains(state->non_differentiable, x));
    any = any || differentiable.back();
  }
  if (!any) return outputs;
  auto call = std::make_shared<FunctionCall>(state, std::move(backward));
  auto node = make_handle<FunctionNode>(state->name, std::move(edges),
                                        static_cast<uint32_t>(outputs.size()), std::move(call));
  state->node = node.get();
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined()) continue;
    const bool is_input = contains(inputs, outputs[i]);
    if (differentiable[i]) {
      outputs[i] = attach(*state, outputs[i], node, i, is_input);
    } else if (is_input && !contains(state->dirty, outputs[i])) {
      outputs[i] = outputs[i].detach();
    }
  }
  // An output may have been replaced by another name of an input: what was saved is the input.
  state->saved = saved_of(*state, outputs);
  return outputs;
}

}  // namespace
}  // namespace detail

TensorList call_function(const std::string& name, const TensorList& inputs,
                         const FunctionForward& forward, FunctionBackward backward) {
  auto state = std::make_shared<FunctionState>();
  state->name = name;
  std::vector<Edge> edges;
  bool tracked = false;
  for (const Tensor& x : inputs) {
    state->inputs.push_back(Description::of(x));
    if (!x.defined()) {
      edges.emplace_back();
    } else {
      const Value& value = parts_or_value(name.c_str(), x);
      edges.push_back({value.node, value.slot});
    }
    state->tracked.push_back(static_cast<bool>(edges.back().node));
    tracked = tracked || (state->tracked.back() && is_grad_enabled());
  }
  TensorList outputs;
  {
    NoGradGuard guard;
    FunctionContext ctx(state);
    outputs = forward(ctx, inputs);
  }
  for (const Tensor& x : outputs) state->outputs.push_back(Description::of(x));
  check_dirty(*state, inputs, outputs);
  if (tracked) {
    outputs = with_node(state, std::move(edges), inputs, std::move(outputs), std::move(backward));
  }
  state->forward_done = true;
  state->to_save.clear();
  state->non_differentiable.clear();
  state->dirty.clear();
  return outputs;
}

void FunctionContext::save_for_backward(TensorList tensors) {
  if (state_->has_saved || state_->forward_done) {
    throw_error<AutodiffError>(state_->name,
                               ": save_for_backward was called a second time, or after forward; "
                               "expected one call in forward with all tensors");
  }
  state_->has_saved = true;
  state_->to_save = std::move(tensors);
}

TensorList FunctionContext::saved_tensors() const {
  if (!state_->forward_done) return state_->to_save;
  if (state_->released) {
    throw_error<AutodiffError>(state_->name,
                               ": the saved tensors were freed by an earlier backward pass; "
                               "expected retain_graph in that one");
  }
  TensorList out;
  for (const Saved& saved : state_->saved) {
    if (!saved.value) {
      out.emplace_back();
      continue;
    }
    Value value = *saved.value;
    if (saved.unpack) {
      value.inner = saved.unpack();
    } else if (const uint32_t now = version_of_value(value); now != saved.version) {
      autodiff::throw_modified(state_->name.c_str(), saved.version, now);
    }
    if (saved.is_output) value.node = Handle<Node>::share(state_->node);
    out.push_back(saved.is_complex ? wrap_complex(std::move(value)) : wrap(std::move(value)));
  }
  return out;
}

bool FunctionContext::needs_input_grad(size_t i) const {
  if (i >= state_->tracked.size()) {
    throw_error<IndexError>(state_->name,
                            ": needs_input_grad of an input that does not exist; got ", i,
                            "; expected less than ", state_->tracked.size());
  }
  return wanted_ != nullptr ? (*wanted_)[i] : state_->tracked[i];
}

void FunctionContext::mark_non_differentiable(const TensorList& outputs) {
  state_->non_differentiable = outputs;
}
void FunctionContext::mark_dirty(const TensorList& inputs) { state_->dirty = inputs; }
void FunctionContext::set_materialize_grads(bool on) { state_->materialize_grads = on; }
std::map<std::string, std::any>& FunctionContext::saved_data() { return state_->data; }

}  // namespace kiln
