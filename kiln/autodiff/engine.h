// The backward pass: from roots to leaves by falling sequence number, without recursion.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "kiln/autodiff/grad_mode.h"
#include "kiln/autodiff/node.h"
#include "kiln/core/cached_vector.h"

namespace kiln {
template <class B>
struct Autodiff;
}

namespace kiln::autodiff {

struct PassOptions {
  bool retain_graph = false;  // keep what the nodes saved, so that another pass may run
  bool create_graph = false;  // record the pass itself
  // What grad_of() asks for is where the pass ends: what lies behind it, and its hooks, are left to
  // another pass.
  bool end_at_targets = false;
};

[[noreturn]] void throw_no_grad_wanted();
// Throws ShapeError, DTypeError or DeviceError, naming `op`, unless both are equal.
void check_like(const char* op, const Shape& shape, DType dtype, Device device, const Shape& wanted,
                DType wanted_dtype, Device wanted_device);

// Gradients by the tensor (node and slot) that they belong to.
template <class B>
class GradientMap {
 public:
  std::optional<Tensor<B>> find(const Tensor<B>& x) const {
    const auto it = items_.find(Key{x.node.get(), x.slot});
    if (it == items_.end()) return std::nullopt;
    return it->second.grad;
  }
  void set(const Handle<Node<B>>& node, uint32_t slot, Tensor<B> grad) {
    items_.insert_or_assign(Key{node.get(), slot}, Item{node, std::move(grad)});
  }
  std::optional<Tensor<B>> remove(const Tensor<B>& x) {
    const auto it = items_.find(Key{x.node.get(), x.slot});
    if (it == items_.end()) return std::nullopt;
    std::optional<Tensor<B>> grad = std::move(it->second.grad);
    items_.erase(it);
    return grad;
  }
  size_t size() const { return items_.size(); }

 private:
  struct Key {
    const Node<B>* node;
    uint32_t slot;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const {
      return std::hash<const void*>()(key.node) ^ (key.slot * 0x9e3779b97f4a7c15u);
    }
  };
  struct Item {
    Handle<Node<B>> node;  // keeps the key's address from being used again
    Tensor<B> grad;
  };
  std::unordered_map<Key, Item, Hash> items_;
};

template <class B>
class Engine;

// What a node's formula sees of the pass.
template <class B>
class Pass {
 public:
  bool create_graph() const { return create_graph_; }
  Node<B>& node() const { return *node_; }
  // Whether the gradient of operand i is wanted.
  bool needs(size_t i) const;
  // The gradient of the result (of the first one that has one: see grad_of), given away.
  Tensor<B> take() { return std::move(*grads_[0]); }
  const Tensor<B>& grad() const { return *grads_[0]; }
  // The gradient of result `slot`, absent when nothing depended on it.
  std::optional<Tensor<B>> take(uint32_t slot) { return std::move(grads_[slot]); }
  // The gradient of operand i.
  void give(size_t i, Tensor<B> grad);

 private:
  friend class Engine<B>;
  Engine<B>* engine_ = nullptr;
  Node<B>* node_ = nullptr;
  std::vector<std::optional<Tensor<B>>>* held_back_ = nullptr;  // for hooks: see Extras::After
  std::span<std::optional<Tensor<B>>> grads_;
  bool create_graph_ = false;
};

[[noreturn]] void throw_freed(const char* op);
[[noreturn]] void throw_untracked();

template <class B>
class Engine {
 public:
  using T = Tensor<B>;

  // Where gradients of leaves go.
  enum class Sink { map, leaves, captured };

  Engine(PassOptions options, Sink sink, GradientMap<B>* map)
      : options_(options), sink_(sink), map_(map) {}

  // Only what `wanted` depends on is computed; their gradients are left in captured().
  void restrict_to(std::span<const T> roots, std::span<const T> wanted) {
    restricted_ = true;
    for (const T& x : wanted) {
      targets_.insert(x.node.get());
    }
    for (const T& root : roots) mark_needed(root.node.get());
  }

  void run(std::span<const T> roots, std::span<const T> root_grads) {
    RecordingGuard<B> recording(options_.create_graph);
    for (size_t i = 0; i < roots.size(); ++i) {
      if (!roots[i].node) throw_untracked();
      accumulate(roots[i].node.get(), roots[i].slot, root_grads[i]);
    }
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end());
      const uint32_t index = heap_.back().second;
      heap_.pop_back();
      visit(index);
    }
  }

  bool needed(const Node<B>* node) const {
    return node != nullptr && (!restricted_ || needed_.contains(node));
  }

  void accumulate(Node<B>* node, uint32_t slot, T grad);

 private:
  struct Entry {
    Node<B>* node;
    std::optional<T> first;                               // result 0
    kiln::detail::CachedVector<std::optional<T>> others;  // all results, when there are several

    std::span<std::optional<T>> grads() {
      return others.empty() ? std::span(&first, 1) : std::span(others);
    }
  };

  void visit(uint32_t index) {
    Entry entry = std::move(entries_[index]);
    Node<B>* node = entry.node;
    const auto grads = entry.grads();
    const bool is_target = restricted_ && targets_.contains(node);
    if (Extras<B>* extras = node->extras(); extras && !(is_target && options_.end_at_targets)) {
      run_extras(*node, *extras, grads);
    }
    if (node->is_leaf()) {
      finish_leaf(static_cast<LeafNode<B>*>(node), std::move(*grads[0]));
      return;
    }
    if (is_target) {
      for (uint32_t slot = 0; slot < grads.size(); ++slot) {
        if (grads[slot]) map_->set(Handle<Node<B>>::share(node), slot, *grads[slot]);
      }
      if (options_.end_at_targets || !leads_on(node)) return;
    }
    Pass<B> pass;
    pass.engine_ = this;
    pass.node_ = node;
    pass.grads_ = grads;
    pass.create_graph_ = options_.create_graph;
    if ((node->extras() != nullptr && !node->extras()->after.empty()) ||
        anomaly_mode() != AnomalyMode::off) [[unlikely]] {
      run_watched(*node, pass);
    } else {
      run_formula(*node, pass);
    }
  }

  void run_formula(Node<B>& node, Pass<B>& pass) {
    node.lock().lock();
    struct Unlock {
      Node<B>& node;
      ~Unlock() { node.lock().unlock(); }
    } unlock{node};
    if (node.released()) throw_freed(node.name());
    node.backward(pass);
    if (!options_.retain_graph) {
      if (node.release_saved()) node.mark_released();
      if (node.extras() != nullptr) [[unlikely]]
        node.extras()->recipe = nullptr;
    }
  }

  // The formula with what looks at its results: hooks, and anomaly mode.
  void run_watched(Node<B>& node, Pass<B>& pass) {
    std::vector<std::optional<T>> grads(pass.grads_.begin(), pass.grads_.end());
    std::vector<std::optional<T>> given(node.edges().size());
    pass.held_back_ = &given;
    if (anomaly_mode() == AnomalyMode::off) {
      run_formula(node, pass);
    } else {
      run_in_anomaly_mode(node, pass);
    }
    pass.held_back_ = nullptr;
    if (node.extras() != nullptr) {
      const auto hooks = node.extras()->after;  // a hook may add hooks
      for (const auto& hook : hooks) {
        if (*hook.alive) hook.call(given, grads);
      }
    }
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i]) pass.give(i, std::move(*given[i]));
    }
  }

  void run_in_anomaly_mode(Node<B>& node, Pass<B>& pass) {
    const std::string trace = node.extras() == nullptr ? "" : node.extras()->trace;
    try {
      run_formula(node, pass);
    } catch (const Error& error) {
      throw_anomaly(node.name(), error.what(), trace);
    }
    if (anomaly_mode() != AnomalyMode::check_nan) return;
    for (size_t i = 0; i < pass.held_back_->size(); ++i) {
      const std::optional<T>& grad = (*pass.held_back_)[i];
      if (!grad || !has_nan(grad->inner)) continue;
      throw_anomaly(node.name(), "its gradient for operand " + std::to_string(i) + " has NaN",
                    trace);
    }
  }

  static bool has_nan(const typename B::FloatTensorPrimitive& x) {
    const auto nan = B::float_is_nan(x);
    return B::bool_into_data(B::bool_any(nan, all_dims(Shape(B::shape(x)).rank()), false))
               .item(0) != 0;
  }

  void run_extras(Node<B>& node, Extras<B>& extras, std::span<std::optional<T>> grads) {
    for (size_t i = 0; i < extras.hooks.size(); ++i) {  // a hook may add hooks
      const auto hook = extras.hooks[i];
      if (!*hook.alive || !grads[hook.slot]) continue;
      if (std::optional<T> replaced = hook.call(*grads[hook.slot])) grads[hook.slot] = replaced;
    }
    const auto before = extras.before;
    for (const auto& hook : before) hook(grads);
    for (auto& kept : extras.kept) {
      if (!grads[kept.slot]) continue;
      if (sink_ == Sink::leaves) add_into(kept.grad, *grads[kept.slot]);
      if (sink_ == Sink::map) {
        map_->set(Handle<Node<B>>::share(&node), kept.slot, *grads[kept.slot]);
      }
    }
  }

  void finish_leaf(LeafNode<B>* leaf, T grad) {
    switch (sink_) {
      case Sink::map:
        map_->set(Handle<Node<B>>::share(leaf), 0, own(std::move(grad)));
        break;
      case Sink::captured:
        map_->set(Handle<Node<B>>::share(leaf), 0, std::move(grad));
        break;
      case Sink::leaves:
        add_to_leaf(*leaf, std::move(grad));
        break;
    }
  }

  void add_to_leaf(LeafNode<B>& leaf, T grad) {
    {
      leaf.lock().lock();
      struct Unlock {
        Node<B>& node;
        ~Unlock() { node.lock().unlock(); }
      } unlock{leaf};
      add_into(leaf.grad, std::move(grad));
    }
    if (leaf.extras() == nullptr) return;
    const auto hooks = leaf.extras()->accumulated;  // a hook may add hooks
    for (const auto& hook : hooks) {
      if (*hook.alive) hook.call();
    }
  }

  // A leaf's gradient is handed to users, who may write into it: it gets memory that nothing else
  // looks at, and row-major. Without that, y = a + b would leave one tensor as the gradient of
  // both.
  T own(T grad) {
    if (options_.create_graph) return grad;
    if constexpr (requires { B::owns_memory(grad.inner); }) {
      if (B::owns_memory(grad.inner)) return grad;
    }
    auto copy = B::float_mul_scalar(std::as_const(grad.inner), Scalar(1));
    if constexpr (requires { B::owns_memory(copy); }) {
      // It lies as the gradient does, which may be in another order than a tensor of its own does.
      if (!B::owns_memory(copy)) copy = B::float_contiguous(std::as_const(copy));
    }
    return T{std::move(copy)};
  }

  void add_into(std::optional<T>& sum, T grad);

  bool leads_on(const Node<B>* node) const {
    for (const Edge<B>& edge : node->edges()) {
      if (edge.node && needed_.contains(edge.node.get())) return true;
    }
    return false;
  }

  // Post-order walk without recursion: a node is needed when it is a target or leads to one.
  void mark_needed(const Node<B>* root) {
    struct Frame {
      const Node<B>* node;
      size_t next;
    };
    if (root == nullptr || !seen_.insert(root).second) return;
    std::vector<Frame> stack{{root, 0}};
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const auto edges = frame.node->edges();
      if (frame.next < edges.size()) {
        const Node<B>* child = edges[frame.next++].node.get();
        if (child == nullptr || !seen_.insert(child).second) continue;
        if (options_.end_at_targets && targets_.contains(child)) {
          needed_.insert(child);
        } else {
          stack.push_back({child, 0});
        }
        continue;
      }
      bool needed = targets_.contains(frame.node);
      for (const Edge<B>& edge : edges) {
        needed = needed || (edge.node && needed_.contains(edge.node.get()));
      }
      if (needed) needed_.insert(frame.node);
      stack.pop_back();
    }
  }

  // Note [Slots]. Which entry belongs to a node: open addressing on the node's address, grown by
  // doubling.
  uint32_t* find_slot(const Node<B>* node) {
    if ((entries_.size() + 1) * 2 > table_.size()) grow();
    const size_t mask = table_.size() - 1;
    size_t i = (reinterpret_cast<uintptr_t>(node) >> 5) * 0x9e3779b97f4a7c15u >> 20 & mask;
    while (table_[i].node != nullptr && table_[i].node != node) i = (i + 1) & mask;
    if (table_[i].node == nullptr) {
      table_[i].node = node;
      table_[i].entry = kNone;
    }
    return &table_[i].entry;
  }

  void grow() {
    kiln::detail::CachedVector<TableItem> old(std::max<size_t>(64, table_.size() * 2));
    old.swap(table_);
    const size_t mask = table_.size() - 1;
    for (const TableItem& item : old) {
      if (item.node == nullptr) continue;
      size_t i = (reinterpret_cast<uintptr_t>(item.node) >> 5) * 0x9e3779b97f4a7c15u >> 20 & mask;
      while (table_[i].node != nullptr) i = (i + 1) & mask;
      table_[i] = item;
    }
  }

  static constexpr uint32_t kNone = ~0u;
  struct TableItem {
    const Node<B>* node = nullptr;
    uint32_t entry = kNone;
  };

  PassOptions options_;
  Sink sink_;
  GradientMap<B>* map_;
  kiln::detail::CachedVector<Entry> entries_;
  kiln::detail::CachedVector<TableItem> table_;
  kiln::detail::CachedVector<std::pair<uint64_t, uint32_t>>
      heap_;  // by sequence number, largest first
  bool restricted_ = false;
  std::unordered_set<const Node<B>*> targets_;
  std::unordered_set<const Node<B>*> needed_;
  std::unordered_set<const Node<B>*> seen_;
};

template <class B>
bool Pass<B>::needs(size_t i) const {
  return engine_->needed(node_->edges()[i].node.get());
}

template <class B>
void Pass<B>::give(size_t i, Tensor<B> grad) {
  const Edge<B>& edge = node_->edges()[i];
  if (held_back_ != nullptr) [[unlikely]] {
    (*held_back_)[i] = std::move(grad);
  } else if (engine_->needed(edge.node.get())) {
    engine_->accumulate(edge.node.get(), edge.slot, std::move(grad));
  }
}

template <class B>
void Engine<B>::accumulate(Node<B>* node, uint32_t slot, T grad) {
  uint32_t* index = find_slot(node);
  if (*index == kNone) {
    *index = static_cast<uint32_t>(entries_.size());
    heap_.emplace_back(node->sequence(), *index);
    std::push_heap(heap_.begin(), heap_.end());
    entries_.push_back(Entry{node, std::nullopt, {}});
    if (node->outputs() > 1) entries_.back().others.resize(node->outputs());
  }
  std::optional<T>& place = entries_[*index].grads()[slot];
  if (place) {
    place = Autodiff<B>::float_add(std::move(*place), std::move(grad));
  } else {
    place = std::move(grad);
  }
}

template <class B>
void Engine<B>::add_into(std::optional<T>& sum, T grad) {
  if (!sum) {
    sum = own(std::move(grad));
  } else if (options_.create_graph) {
    sum = Autodiff<B>::float_add(*sum, grad);
  } else {
    // In place, so that whoever holds this gradient sees it grow; falls back to a fresh one.
    sum = T{B::float_add(Arg<typename B::FloatTensorPrimitive>::in_place(sum->inner), grad.inner)};
  }
}

}  // namespace kiln::autodiff
