// Later calls of a compiled function.
#include "kiln/compile/variant.h"
#include "kiln/core/error.h"
#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/autograd/grad_mode.h"

namespace kiln::compiling {

using namespace kiln::detail;

namespace {

using Leaf = autodiff::LeafNode<Dispatch>;
using Pass = autodiff::Pass<Dispatch>;

class Locked {
 public:
  explicit Locked(AutodiffNode& node) : node_(node) { node_.lock().lock(); }
  ~Locked() { node_.lock().unlock(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  AutodiffNode& node_;
};

std::optional<Value> gradient_of(AutodiffNode& leaf) {
  const Locked lock(leaf);
  return static_cast<Leaf&>(leaf).grad;
}

class RandomFrom {
 public:
  explicit RandomFrom(const RandomStream& state) : now_(default_generator().state()) {
    default_generator().set_state(state);
  }
  ~RandomFrom() { default_generator().set_state(now_); }
  RandomFrom(const RandomFrom&) = delete;
  RandomFrom& operator=(const RandomFrom&) = delete;

 private:
  RandomStream now_;
};

// The node of a replayed call.
class CompiledNode final : public AutodiffNode {
 public:
  CompiledNode(std::shared_ptr<Variant> variant, const Compiled::Function& f,
               const TensorList& inputs, std::vector<Edge<Dispatch>> edges,
               const graph::Plan::Results& outputs, const RandomStream& random,
               const RandomTape& tape, uint32_t roots)
      : AutodiffNode("compiled", roots),
        variant_(std::move(variant)),
        f_(f),
        inputs_(inputs),
        edges_(std::move(edges)),
        random_(random),
        tape_(tape) {
    set_edges(edges_);
    const Variant& v = *variant_;
    saved_.assign(outputs.begin() + v.saved_from, outputs.end());
    for (const ErasedTensor& x : saved_) versions_.push_back(Dispatch::version(x));
    for (const ErasedTensor& x : v.watched) versions_.push_back(Dispatch::version(x));
    for (const Tensor& x : inputs_) input_versions_.push_back(x.defined() ? x.version() : 0);
    for (const Variant::Output& out : v.outputs) {
      if (out.tracked) likes_.push_back(outputs[static_cast<size_t>(out.place)]->shape());
      if (out.tracked) dtypes_.push_back(outputs[static_cast<size_t>(out.place)]->dtype());
      if (out.tracked) device_ = outputs[static_cast<size_t>(out.place)]->device();
    }
  }

  void backward(Pass& pass) override {
    if (pass.create_graph()) return differentiate_again(pass);
    const Variant& v = *variant_;
    check_versions();
    std::vector<ErasedTensor> given = saved_;
    for (uint32_t i = 0; i < outputs(); ++i) {
      std::optional<Value> grad = pass.take(i);
      given.push_back(grad ? std::move(grad->inner)
                           : Dispatch::float_full(likes_[i], Scalar(0.0), dtypes_[i], device_));
    }
    const graph::Plan::Results found = v.backward->run(given, &tape_);
    for (size_t i = 0; i < v.targets.size(); ++i) {
      const int place = v.targets[i].place;
      if (place >= 0 && pass.needs(i)) pass.give(i, Value{found[static_cast<size_t>(place)]});
    }
  }

  bool release_saved() noexcept override {
    saved_.clear();
    inputs_.clear();
    f_ = nullptr;
    return true;
  }

 private:
  void check_versions() const {
    size_t i = 0;
    const auto check = [&](const ErasedTensor& x) {
      const uint32_t now = Dispatch::version(x), then = versions_[i++];
      if (now != then) autodiff::throw_modified(name(), then, now);
    };
    for (const ErasedTensor& x : saved_) check(x);
    for (const ErasedTensor& x : variant_->watched) check(x);
  }

  // The pass is recorded itself: by the function's own history.
  void differentiate_again(Pass& pass) {
    if (variant_->writes_outside) {
      throw_error<AutodiffError>(
          "compile: the function writes to tensors that it was given or holds, so it cannot be "
          "called again for a derivative of second order; expected that derivative to be taken "
          "inside the compiled function");
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].defined()) continue;
      if (const uint32_t now = inputs_[i].version(); now != input_versions_[i]) {
        autodiff::throw_modified(name(), input_versions_[i], now);
      }
    }
    TensorList results;
    {
      const EnableGradGuard recording;
      const RandomFrom random(variant_->draws ? random_ : default_generator().state());
      const amp::Autocast as_before(variant_->mode.autocast_dtype, variant_->mode.autocast);
      results = f_(inputs_);
    }
    std::vector<Value> roots, seeds, wanted;
    uint32_t slot = 0;
    for (size_t i = 0; i < variant_->outputs.size(); ++i) {
      if (!variant_->outputs[i].tracked) continue;
      std::optional<Value> grad = pass.take(slot++);
      if (!grad) continue;
      roots.push_back(parts_or_value("compile", results[i]));
      seeds.push_back(std::move(*grad));
    }
    if (roots.empty()) return;
    for (const auto& edge : edges_) wanted.push_back(Value{{}, edge.node, edge.slot});
    auto found = AD::grad_of(roots, seeds, wanted,
                             {.retain_graph = true, .create_graph = true, .end_at_targets = true});
    for (size_t i = 0; i < found.size(); ++i) {
      if (found[i] && pass.needs(i)) pass.give(i, std::move(*found[i]));
    }
  }

  std::shared_ptr<Variant> variant_;
  Compiled::Function f_;
  TensorList inputs_;
  std::vector<Edge<Dispatch>> edges_;
  RandomStream random_;
  RandomTape tape_;
  std::vector<ErasedTensor> saved_;
  std::vector<uint32_t> versions_, input_versions_;
  std::vector<Shape> likes_;
  std::vector<DType> dtypes_;
  Device device_;
};

}  // namespace

bool Variant::fits_leaves() const {
  for (size_t i = 0; i < leaves_read.size(); ++i) {
    const std::optional<Value> grad = gradient_of(*leaves_read[i]);
    if (!grad || !(guards_of({wrap(Value{grad->inner})})[0] == leaf_guards[i])) return false;
  }
  for (const auto& leaf : leaves_empty) {
    if (gradient_of(*leaf)) return false;
  }
  return true;
}

TensorList replay(const std::shared_ptr<Variant>& variant, const Compiled::Function& f,
                  const TensorList& inputs) {
  Variant& v = *variant;
  kiln::detail::CachedVector<ErasedTensor> given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined() || v.inputs[i].same_tensor >= 0) continue;
    given.push_back(parts_or_value("compile", inputs[i]).inner);
  }
  for (const auto& leaf : v.leaves_read) given.push_back(gradient_of(*leaf)->inner);
  for (const auto& leaf : v.leaves_reset) {
    const Locked lock(*leaf);
    static_cast<Leaf&>(*leaf).grad.reset();
  }
  graph::Plan::Results made;
  RandomStream random;
  RandomTape tape = v.tape;  // a copy: other threads may replay it, too
  if (!v.draws) {
    made = v.forward->run(given);
  } else {
    random = default_generator().state();
    tape.advance();
    try {
      made = v.forward->run(given, &tape);
    } catch (const graph::ValueChanged&) {
      default_generator().set_state(random);
      throw;
    }
  }
  for (const Variant::LeafOutput& out : v.leaves_written) {
    const Locked lock(*out.node);
    auto& grad = static_cast<Leaf&>(*out.node).grad;
    if (out.place < 0) {
      grad.reset();
    } else {
      grad = Value{made[static_cast<size_t>(out.place)]};
    }
  }
  Handle<AutodiffNode> node;
  if (v.backward) {
    std::vector<Edge<Dispatch>> edges;
    for (const Variant::Target& target : v.targets) {
      if (target.input < 0) {
        edges.push_back(target.edge);
        continue;
      }
      const Value& x = parts_or_value("compile", inputs[static_cast<size_t>(target.input)]);
      edges.push_back({x.node, x.slot});
    }
    uint32_t roots = 0;
    for (const Variant::Output& out : v.outputs) roots += out.tracked;
    node =
        make_handle<CompiledNode>(variant, f, inputs, std::move(edges), made, random, tape, roots);
  }
  if (v.freed) {
    node = make_handle<autodiff::IdentityNode<Dispatch>>(
        "compiled", std::vector<Edge<Dispatch>>(v.outputs.size()));
    node->mark_released();
  }
  TensorList results;
  results.reserve(v.outputs.size());
  uint32_t slot = 0;
  for (const Variant::Output& out : v.outputs) {
    switch (out.kind) {
      case Variant::Output::Kind::undefined:
        results.emplace_back();
        continue;
      case Variant::Output::Kind::input:
        results.push_back(inputs[static_cast<size_t>(out.input)]);
        continue;
      case Variant::Output::Kind::computed:
        break;
    }
    Value value{made[static_cast<size_t>(out.place)]};
    if (out.tracked) value = Value{std::move(value.inner), node, slot++};
    if (out.complex) {
      results.push_back(wrap_complex(std::move(value)));
    } else if (out.input >= 0) {
      results.push_back(wrap_alias(inputs[static_cast<size_t>(out.input)], std::move(value),
                                   out.tracked ? ViewKind::function : ViewKind::plain));
    } else {
      results.push_back(wrap(std::move(value)));
    }
  }
  return results;
}

}  // namespace kiln::compiling
