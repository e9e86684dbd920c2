// The graph: nodes that know how to turn the gradients of an op's results into those of its
// operands.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kiln/autodiff/anomaly.h"
#include "kiln/autodiff/saved_hooks.h"
#include "kiln/backend/backend.h"
#include "kiln/backend/functions.h"
#include "kiln/core/allocator.h"
#include "kiln/core/error.h"
#include "kiln/core/handle.h"

namespace kiln::autodiff {

template <class B>
class Node;
template <class B>
class Pass;
template <class B>
class Recipe;

// A tensor of Autodiff<B>: one of B, and where it came from. `node` is null when nothing is
// tracked.
template <class B>
struct Tensor {
  typename B::FloatTensorPrimitive inner;
  Handle<Node<B>> node = nullptr;
  uint32_t slot = 0;  // which of the node's results this is
};

// Result `slot` of `node`: where the gradient of an operand goes.
template <class B>
struct Edge {
  Handle<Node<B>> node;
  uint32_t slot = 0;
};

// Held for a few instructions; a contended one yields.
class SpinLock {
 public:
  void lock() {
    while (flag_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
  void unlock() { flag_.clear(std::memory_order_release); }

 private:
  std::atomic_flag flag_;
};

namespace detail {

// Order of creation over all threads. A node is created after those it leads to, so going through
// nodes by falling sequence number meets every node after all that feed it: no dependency counts
// are needed.
uint64_t next_sequence();

// Nodes whose last handle went are deleted one after another by whoever holds the thread's list,
// never from within a deletion: a chain of any length needs no stack.
struct Doomed {
  Doomed* next_doomed = nullptr;
  virtual void delete_now() noexcept = 0;

 protected:
  ~Doomed() = default;
};
void doom(Doomed* node) noexcept;

}  // namespace detail

// An object of another language that a callable owns, for that language's collector of cycles to
// see; null for most. See interop::visit_foreign.
using Foreign = std::shared_ptr<void>;

// Note [Extras]. Hooks, kept gradients and recipes are rare, so a node carries one pointer for all.
template <class B>
struct Extras {
  struct Hook {
    uint32_t slot;
    std::function<std::optional<Tensor<B>>(const Tensor<B>&)> call;
    std::shared_ptr<bool> alive;
    Foreign foreign = nullptr;
  };
  struct Kept {
    uint32_t slot;
    std::optional<Tensor<B>> grad;
  };
  using Grads = std::span<std::optional<Tensor<B>>>;
  // Sees, and may replace, the gradients of all results before the formula runs.
  using Before = std::function<void(Grads)>;
  // Sees the gradients that the formula gave the operands, and may replace them; then those of the
  // results.
  struct After {
    std::function<void(Grads given, Grads grads)> call;
    std::shared_ptr<bool> alive;
  };
  // Runs when a pass has added to a leaf's gradient.
  struct Accumulated {
    std::function<void()> call;
    std::shared_ptr<bool> alive;
    Foreign foreign = nullptr;
  };
  std::vector<Hook> hooks;
  std::vector<Before> before;
  std::vector<After> after;
  std::vector<Kept> kept;
  std::vector<Accumulated> accumulated;
  std::string trace;                   // where the op was recorded; see anomaly.h
  Handle<Recipe<B>> recipe = nullptr;  // how result 0 is computed again
};

template <class B>
class Node : public RefCounted, public Pooled, private detail::Doomed {
 public:
  Node(const char* name, uint32_t outputs) : name_(name), outputs_(outputs) {
    if (anomaly_mode() != AnomalyMode::off) [[unlikely]]
      ensure_extras().trace = anomaly_trace();
  }

  // Hands the gradients of the operands to the pass. Called with the node's lock held.
  virtual void backward(Pass<B>& pass) = 0;
  // Drops what was saved for backward(); false: there was nothing, and backward() can run again.
  virtual bool release_saved() noexcept = 0;
  virtual bool is_leaf() const { return false; }
  // What the formula owns of another language.
  virtual const Foreign* foreign() const { return nullptr; }

  const char* name() const { return name_; }
  uint64_t sequence() const { return sequence_; }
  uint32_t outputs() const { return outputs_; }
  std::span<const Edge<B>> edges() const { return edges_; }

  SpinLock& lock() { return lock_; }
  bool released() const { return released_; }
  void mark_released() { released_ = true; }

  Extras<B>* extras() const { return extras_.get(); }
  Extras<B>& ensure_extras() {
    if (!extras_) extras_ = std::make_unique<Extras<B>>();
    return *extras_;
  }

 protected:
  void set_edges(std::span<const Edge<B>> edges) { edges_ = edges; }

 private:
  void destroy() noexcept override { detail::doom(this); }
  void delete_now() noexcept override { delete this; }

  const char* name_;
  uint64_t sequence_ = detail::next_sequence();
  std::span<const Edge<B>> edges_;
  std::unique_ptr<Extras<B>> extras_;
  uint32_t outputs_;
  bool released_ = false;
  SpinLock lock_;
};

namespace detail {

// A formula without a destructor owns numbers alone, such as the shape of an operand. There is
// nothing to free, and it may run once more.
template <class Formula>
bool drop(std::optional<Formula>& formula) noexcept {
  if constexpr (std::is_trivially_destructible_v<Formula>) return false;
  formula.reset();
  return true;
}

}  // namespace detail

// A tensor that the user marked: the end of the graph, where gradients gather.
template <class B>
class LeafNode final : public Node<B> {
 public:
  LeafNode() : Node<B>("leaf", 1) {}
  void backward(Pass<B>&) override {}
  bool release_saved() noexcept override { return false; }
  bool is_leaf() const override { return true; }

  // The accumulated gradient (guarded by lock()).
  std::optional<Tensor<B>> grad;
};

// The node of one op: its edges and its formula, a callable that owns exactly what it saved.
template <class B, size_t N, class Formula>
class OpNode final : public Node<B> {
 public:
  OpNode(const char* name, uint32_t outputs, std::array<Edge<B>, N> edges, Formula formula)
      : Node<B>(name, outputs), edges_(std::move(edges)), formula_(std::move(formula)) {
    this->set_edges(edges_);
  }
  void backward(Pass<B>& pass) override { (*formula_)(pass); }
  bool release_saved() noexcept override { return detail::drop(formula_); }

 private:
  std::array<Edge<B>, N> edges_;
  std::optional<Formula> formula_;
};

// The same for any number of operands.
template <class B, class Formula>
class ListNode final : public Node<B> {
 public:
  ListNode(const char* name, std::vector<Edge<B>> edges, Formula formula)
      : Node<B>(name, 1), edges_(std::move(edges)), formula_(std::move(formula)) {
    this->set_edges(edges_);
  }
  void backward(Pass<B>& pass) override { (*formula_)(pass); }
  bool release_saved() noexcept override { return detail::drop(formula_); }

 private:
  std::vector<Edge<B>> edges_;
  std::optional<Formula> formula_;
};

// Hands every gradient on as it is: a place in the graph for hooks. Results and operands pair up.
template <class B>
class IdentityNode final : public Node<B> {
 public:
  IdentityNode(const char* name, std::vector<Edge<B>> edges)
      : Node<B>(name, static_cast<uint32_t>(edges.size())), edges_(std::move(edges)) {
    this->set_edges(edges_);
  }
  void backward(Pass<B>& pass) override {
    for (uint32_t i = 0; i < edges_.size(); ++i) {
      if (auto grad = pass.take(i); grad && pass.needs(i)) pass.give(i, std::move(*grad));
    }
  }
  bool release_saved() noexcept override { return false; }

 private:
  std::vector<Edge<B>> edges_;
};

[[noreturn]] void throw_modified(const char* op, uint32_t saved, uint32_t now);

template <class B, class P>
uint32_t version_of(const P& x) {
  if constexpr (requires { B::version(x); }) {
    return B::version(x);
  } else {
    return 0;
  }
}

// How saved values come back that were not kept as they were.
template <class B>
class Recipe : public RefCounted, public Pooled {
 public:
  using Inner = typename B::FloatTensorPrimitive;
  virtual Inner make(const char* op) const = 0;
  // How many ops it computes, one after another.
  virtual int steps() const { return 0; }
};

// A hook's stand-in for saved values.
template <class B>
class Packed final : public Recipe<B> {
 public:
  using typename Recipe<B>::Inner;
  explicit Packed(Unpack<Inner> unpack) : unpack_(std::move(unpack)) {}
  Inner make(const char*) const override { return unpack_(); }

 private:
  Unpack<Inner> unpack_;
};

// What a formula saved of a tensor: its values, or how they come back.
template <class B>
class SavedValues {
 public:
  using Inner = typename B::FloatTensorPrimitive;
  SavedValues(const Inner& inner, Handle<Recipe<B>> recipe) : recipe_(std::move(recipe)) {
    if (packs_saved<B>() && !recipe_) [[unlikely]]
      recipe_ = make_handle<Packed<B>>(pack_saved<B>(inner));
    version_ = recipe_ ? 0 : version_of<B>(inner);
    if (!recipe_) inner_ = inner;
  }

  // `op` is the one that saved it, for the error.
  Inner get(const char* op) const {
    if (recipe_) [[unlikely]]
      return recipe_->make(op);
    if (const uint32_t now = version_of<B>(*inner_); now != version_) {
      throw_modified(op, version_, now);
    }
    return *inner_;
  }
  const Handle<Recipe<B>>& recipe() const { return recipe_; }

 private:
  std::optional<Inner> inner_;
  Handle<Recipe<B>> recipe_;
  uint32_t version_;
};

// Note [Recipes]. Under CheckpointStrategy::balanced, the result of an elementwise op is not kept
// for those who save it: they get a recipe, which owns the op's operands and computes the result
// again in the backward pass. What is expensive (products, convolutions, reductions) is kept. A
// recipe may rest on others, up to kMostSteps: so a long chain of elementwise ops keeps every so
// manieth result, and its backward pass stays linear in time.
template <class B>
class ComputedAgain final : public Recipe<B> {
 public:
  using typename Recipe<B>::Inner;
  // What an op takes beside its operands.
  struct Options {
    Scalar a = {};
    Scalar b = {};
    UnaryFunction function = {};
  };
  using Run = Inner (*)(const Inner& x, const Inner* y, const Options& options);
  static constexpr int kMostSteps = 6;

  ComputedAgain(SavedValues<B> x, std::optional<SavedValues<B>> y, Run run, const Options& options)
      : x_(std::move(x)), y_(std::move(y)), run_(run), options_(options) {}

  Inner make(const char* op) const override {
    const Inner x = x_.get(op);
    if (!y_) return run_(x, nullptr, options_);
    const Inner y = y_->get(op);
    return run_(x, &y, options_);
  }
  int steps() const override { return 1 + std::max(steps_of(x_), y_ ? steps_of(*y_) : 0); }
  bool is_short() const { return steps() <= kMostSteps; }

 private:
  static int steps_of(const SavedValues<B>& v) { return v.recipe() ? v.recipe()->steps() : 0; }

  SavedValues<B> x_;
  std::optional<SavedValues<B>> y_;
  Run run_;
  Options options_;
};

// Note [Saved tensors]. A saved operand remembers its own history, so that a backward pass which is
// itself recorded can go on through it, and the version of its memory, so that a later write in
// place is noticed instead of giving wrong gradients. A saved result takes its history from the
// node that saved it, or it would keep itself alive.
template <class B>
class SavedInput {
 public:
  explicit SavedInput(const Tensor<B>& x)
      : values_(x.inner, recipe_of(x)), node_(x.node), slot_(x.slot) {}

  Tensor<B> get(const Pass<B>& pass) const {
    auto inner = values_.get(pass.node().name());
    return pass.create_graph() ? Tensor<B>{std::move(inner), node_, slot_}
                               : Tensor<B>{std::move(inner)};
  }
  const SavedValues<B>& values() const { return values_; }

 private:
  static Handle<Recipe<B>> recipe_of(const Tensor<B>& x) {
    if (!x.node || x.node->extras() == nullptr || x.slot != 0) [[likely]]
      return nullptr;
    return x.node->extras()->recipe;
  }

  SavedValues<B> values_;
  Handle<Node<B>> node_;
  uint32_t slot_;
};

template <class B>
class SavedOutput {
 public:
  explicit SavedOutput(const typename B::FloatTensorPrimitive& inner, uint32_t slot = 0,
                       Handle<Recipe<B>> recipe = nullptr)
      : values_(inner, std::move(recipe)), slot_(slot) {}

  Tensor<B> get(const Pass<B>& pass) const {
    auto inner = values_.get(pass.node().name());
    return pass.create_graph()
               ? Tensor<B>{std::move(inner), Handle<Node<B>>::share(&pass.node()), slot_}
               : Tensor<B>{std::move(inner)};
  }

 private:
  SavedValues<B> values_;
  uint32_t slot_;
};

// A saved int, bool or untracked tensor. Hooks see it where its type is that of a float tensor.
template <class B, class P>
class SavedConstant {
  static constexpr bool kPackable = std::is_same_v<P, typename B::FloatTensorPrimitive>;

 public:
  explicit SavedConstant(const P& x) {
    if constexpr (kPackable) {
      if (packs_saved<B>()) [[unlikely]] {
        recipe_ = make_handle<Packed<B>>(pack_saved<B>(x));
        return;
      }
    }
    value_ = x;
    version_ = version_of<B>(x);
  }
  P get(const Pass<B>& pass) const {
    const char* op = pass.node().name();
    if constexpr (kPackable) {
      if (recipe_) [[unlikely]]
        return recipe_->make(op);
    }
    if (const uint32_t now = version_of<B>(*value_); now != version_) {
      throw_modified(op, version_, now);
    }
    return *value_;
  }

 private:
  std::optional<P> value_;
  Handle<Recipe<B>> recipe_;
  uint32_t version_ = 0;
};

}  // namespace kiln::autodiff
