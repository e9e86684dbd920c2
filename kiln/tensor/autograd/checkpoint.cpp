#include "kiln/tensor/autograd/checkpoint.h"

#include <unordered_set>

#include "kiln/core/random.h"
#include "kiln/tensor/amp/autocast.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln::autograd {

using namespace detail;

namespace {

using Node = autodiff::Node<Dispatch>;
using Edge = autodiff::Edge<Dispatch>;
using TensorList = std::vector<Tensor>;
using ListFunction = std::function<TensorList(const TensorList&)>;

// The random numbers of an earlier moment, until the end of the scope.
class RandomFrom {
 public:
  explicit RandomFrom(const std::optional<RandomStream>& state) : restore_(state.has_value()) {
    if (!restore_) return;
    now_ = default_generator().state();
    default_generator().set_state(*state);
  }
  ~RandomFrom() {
    if (restore_) default_generator().set_state(now_);
  }
  RandomFrom(const RandomFrom&) = delete;
  RandomFrom& operator=(const RandomFrom&) = delete;

 private:
  bool restore_;
  RandomStream now_;
};

struct EdgeHash {
  size_t operator()(const std::pair<const Node*, uint32_t>& key) const {
    return std::hash<const void*>()(key.first) ^ (key.second * 0x9e3779b97f4a7c15u);
  }
};

// Where the graph behind `results` leaves what was recorded since `start`: the inputs and whatever
// else the function used.
std::vector<Edge> boundary(const TensorList& results, uint64_t start) {
  std::vector<Edge> out;
  std::unordered_set<std::pair<const Node*, uint32_t>, EdgeHash> found;
  std::unordered_set<const Node*> seen;
  std::vector<Edge> stack;
  const auto follow = [&](const Edge& edge) {
    const Node* node = edge.node.get();
    if (node == nullptr) return;
    if (node->is_leaf() || node->sequence() < start) {
      if (found.insert({node, edge.slot}).second) out.push_back(edge);
    } else if (seen.insert(node).second) {
      stack.push_back(edge);
    }
  };
  for (const Tensor& y : results) {
    if (!y.defined()) continue;
    const Value& value = parts_or_value("checkpoint", y);
    follow({value.node, value.slot});
  }
  while (!stack.empty()) {
    const Edge edge = std::move(stack.back());
    stack.pop_back();
    for (const Edge& next : edge.node->edges()) follow(next);
  }
  return out;
}

class CheckpointNode final : public Node {
 public:
  CheckpointNode(ListFunction f, TensorList inputs, std::optional<RandomStream> random,
                 std::vector<Edge> edges, const TensorList& results)
      : Node("checkpoint", static_cast<uint32_t>(results.size())),
        f_(std::move(f)),
        inputs_(std::move(inputs)),
        random_(random),
        edges_(std::move(edges)) {
    set_edges(edges_);
    for (const Tensor& x : inputs_) versions_.push_back(x.defined() ? x.version() : 0);
    for (const Tensor& y : results) shapes_.push_back(y.defined() ? y.shape() : Shape{});
  }

  void backward(autodiff::Pass<Dispatch>& pass) override {
    const TensorList results = again();
    std::vector<Value> roots;
    std::vector<Value> seeds;
    for (uint32_t i = 0; i < outputs(); ++i) {
      std::optional<Value> grad = pass.take(i);
      if (!grad || !results[i].requires_grad()) continue;
      roots.push_back(parts_or_value("checkpoint", results[i]));
      seeds.push_back(std::move(*grad));
    }
    if (roots.empty()) return;
    std::vector<Value> wanted;
    for (const Edge& edge : edges_) wanted.push_back(Value{{}, edge.node, edge.slot});
    auto found = AD::grad_of(roots, seeds, wanted,
                             {.retain_graph = pass.create_graph(),
                              .create_graph = pass.create_graph(),
                              .end_at_targets = true});
    for (size_t i = 0; i < found.size(); ++i) {
      if (found[i] && pass.needs(i)) pass.give(i, std::move(*found[i]));
    }
  }

  bool release_saved() noexcept override {
    f_ = nullptr;
    inputs_.clear();
    return true;
  }

 private:
  TensorList again() const {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].defined()) continue;
      if (const uint32_t now = inputs_[i].version(); now != versions_[i]) {
        autodiff::throw_modified(name(), versions_[i], now);
      }
    }
    const EnableGradGuard recording;
    const RandomFrom random(random_);
    const amp::Autocast as_before(autocast_.dtype, autocast_.enabled, autocast_.cache);
    TensorList results = f_(inputs_);
    bool same = results.size() == shapes_.size();
    for (size_t i = 0; same && i < results.size(); ++i) {
      same = !results[i].defined() || results[i].shape() == shapes_[i];
    }
    if (!same) {
      throw_error<AutodiffError>(
          "checkpoint: the function gave other results when it was called again in the backward "
          "pass; expected a function of its inputs");
    }
    return results;
  }

  ListFunction f_;
  TensorList inputs_;
  std::vector<uint32_t> versions_;
  std::vector<Shape> shapes_;
  std::optional<RandomStream> random_;
  amp::AutocastState autocast_ = amp::autocast_state();
  std::vector<Edge> edges_;
};

}  // namespace

TensorList checkpoint(const ListFunction& f, const TensorList& inputs,
                      const CheckpointOptions& options) {
  if (!is_grad_enabled()) return f(inputs);
  std::optional<RandomStream> random;
  if (options.preserve_random) random = default_generator().state();
  const uint64_t start = autodiff::detail::next_sequence();
  TensorList results = f(inputs);
  std::vector<Edge> edges = boundary(results, start);
  if (edges.empty()) return results;
  auto node = make_handle<CheckpointNode>(f, inputs, random, std::move(edges), results);
  for (uint32_t i = 0; i < results.size(); ++i) {
    Tensor& y = results[i];
    // What the function only passed on keeps its own place in the graph.
    if (!y.defined() || !y.requires_grad()) continue;
    const Value& value = parts_or_value("checkpoint", y);
    if (value.node->is_leaf() || value.node->sequence() < start) continue;
    Value own{value.inner, node, i};
    y = state_of(y).root ? wrap_alias(y, std::move(own), ViewKind::function)
                         : wrap_like(y, std::move(own));
  }
  return results;
}

Tensor checkpoint(const std::function<Tensor(const Tensor&)>& f, const Tensor& x,
                  const CheckpointOptions& options) {
  const ListFunction list = [f](const TensorList& inputs) { return TensorList{f(inputs[0])}; };
  return checkpoint(list, TensorList{x}, options)[0];
}

Tensor checkpoint_sequential(const std::vector<std::function<Tensor(const Tensor&)>>& functions,
                             int64_t segments, const Tensor& x, const CheckpointOptions& options) {
  const auto count = static_cast<int64_t>(functions.size());
  if (segments < 1 || segments > count) {
    throw_error<ValueError>("checkpoint_sequential: expected 1 to ", count, " segments; got ",
                            segments);
  }
  const int64_t length = count / segments;
  Tensor y = x;
  for (int64_t s = 0; s + 1 < segments; ++s) {
    const auto begin = functions.begin() + s * length;
    const std::vector<std::function<Tensor(const Tensor&)>> part(begin, begin + length);
    y = checkpoint(
        [part](const Tensor& input) {
          Tensor z = input;
          for (const auto& f : part) z = f(z);
          return z;
        },
        y, options);
  }
  for (int64_t i = (segments - 1) * length; i < count; ++i) y = functions[i](y);
  return y;
}

bool is_balanced_checkpointing() {
  return autodiff::checkpoint_strategy() == autodiff::CheckpointStrategy::balanced;
}
void set_balanced_checkpointing(bool enabled) {
  using enum autodiff::CheckpointStrategy;
  autodiff::set_checkpoint_strategy(enabled ? balanced : keep_all);
}

}  // namespace kiln::autograd
