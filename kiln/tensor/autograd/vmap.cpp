#include "kiln/tensor/autograd/vmap.h"

#include <unordered_set>

#include "kiln/backend/batched/batched_tensor.h"
#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/shape/rearranging.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

using namespace detail;
using batched::BatchedTensor;
using BatchedRegion = batched::Region;

namespace {

using Node = autodiff::Node<Dispatch>;
using Edge = autodiff::Edge<Dispatch>;
using Pass = autodiff::Pass<Dispatch>;

// Note [Gradients through vmap]
// What a region records are nodes over batched tensors. At its end one node takes their place in
// the graph outside. Its backward puts the gradients of the results into the batch, differentiates
// what the region recorded, and hands on what arrives at the region's boundary: at an input, the
// gradients of the elements, side by side; at what the function captured, their sum over the batch.
// The boundary is found as a checkpoint finds its own: by going from the results back to what is
// older than the region.

// The beginning of an input's history in a region.
class InputNode final : public Node {
 public:
  InputNode(uint64_t level, Edge outside)
      : Node("vmap_input", 1), level_(level), outside_(std::move(outside)) {}
  void backward(Pass&) override {}
  bool release_saved() noexcept override { return false; }
  uint64_t level() const { return level_; }
  const Edge& outside() const { return outside_; }

 private:
  uint64_t level_;
  Edge outside_;
};

struct Bound {
  Edge inside;
  Edge outside;
  bool is_input;
};

struct EdgeHash {
  size_t operator()(const std::pair<const Node*, uint32_t>& key) const {
    return std::hash<const void*>()(key.first) ^ (key.second * 0x9e3779b97f4a7c15u);
  }
};

bool is_outside(const Node& node, uint64_t start) {
  return node.is_leaf() || node.sequence() < start;
}

std::vector<Bound> boundary(const std::vector<Value>& roots, uint64_t level, uint64_t start) {
  std::vector<Bound> out;
  std::unordered_set<std::pair<const Node*, uint32_t>, EdgeHash> found;
  std::unordered_set<const Node*> seen;
  std::vector<Handle<Node>> stack;
  const auto follow = [&](const Edge& edge) {
    const Node* node = edge.node.get();
    if (node == nullptr) return;
    const auto* input = dynamic_cast<const InputNode*>(node);
    const bool is_input = input != nullptr && input->level() == level;
    if (is_input || is_outside(*node, start)) {
      if (!found.insert({node, edge.slot}).second) return;
      out.push_back({edge, is_input ? input->outside() : edge, is_input});
    } else if (seen.insert(node).second) {
      stack.push_back(edge.node);
    }
  };
  for (const Value& root : roots) follow({root.node, root.slot});
  while (!stack.empty()) {
    const Handle<Node> node = std::move(stack.back());
    stack.pop_back();
    for (const Edge& next : node->edges()) follow(next);
  }
  return out;
}

// The batch of x as an ordinary tensor.
ErasedTensor batch_of(const ErasedTensor& x, const BatchedRegion& region) {
  if (const BatchedTensor* found = batched::as_batched(x, region.level)) return found->inner();
  Shape one{1}, all{region.size};
  for (const int64_t n : x->shape()) {
    one.push_back(n);
    all.push_back(n);
  }
  switch (kind_of(x->dtype())) {
    case Kind::floating:
      return Dispatch::float_expand(Dispatch::float_reshape(x, one), all);
    case Kind::integer:
      return Dispatch::int_expand(Dispatch::int_reshape(x, one), all);
    case Kind::boolean:
      return Dispatch::bool_expand(Dispatch::bool_reshape(x, one), all);
    default:
      throw_error<NotImplementedError>("vmap: quantized tensors cannot be results");
  }
}

std::vector<Value> leave_values(std::vector<Value> results, const BatchedRegion& region,
                                uint64_t start);

// This thread is in the region again.
class Inside {
 public:
  explicit Inside(const BatchedRegion& region) { batched::regions().push_back(region); }
  ~Inside() { batched::regions().pop_back(); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

class VmapNode final : public Node {
 public:
  VmapNode(std::vector<Value> roots, std::vector<Bound> bounds, const BatchedRegion& region,
           uint64_t start)
      : Node("vmap", static_cast<uint32_t>(roots.size())),
        roots_(std::move(roots)),
        bounds_(std::move(bounds)),
        region_(region),
        start_(start) {
    for (const Bound& bound : bounds_) edges_.push_back(bound.outside);
    set_edges(edges_);
  }

  void backward(Pass& pass) override {
    std::vector<Value> roots, seeds;
    for (uint32_t i = 0; i < outputs(); ++i) {
      std::optional<Value> grad = pass.take(i);
      if (!grad || !roots_[i].node) continue;
      Handle<Node> node;
      if (pass.create_graph() && grad->node) {
        node = make_handle<InputNode>(region_.level, Edge{grad->node, grad->slot});
      }
      roots.push_back(roots_[i]);
      seeds.push_back({make_handle<BatchedTensor>(grad->inner, region_), std::move(node), 0});
    }
    if (roots.empty()) return;
    std::vector<Value> wanted;
    for (const Bound& bound : bounds_) wanted.push_back({{}, bound.inside.node, bound.inside.slot});
    const auto differentiate = [&] {
      const Inside here(region_);
      return AD::grad_of(
          roots, seeds, wanted,
          {.retain_graph = true, .create_graph = pass.create_graph(), .end_at_targets = true});
    };
    auto found = differentiate();
    for (size_t i = 0; i < found.size(); ++i) {
      if (!found[i] || !pass.needs(i)) continue;
      Value grad = leave_values({std::move(*found[i])}, region_, start_)[0];
      if (!bounds_[i].is_input) grad = AD::float_sum(std::move(grad), Dims{0}, false);
      pass.give(i, std::move(grad));
    }
  }

  bool release_saved() noexcept override {
    roots_.clear();
    return true;
  }

 private:
  std::vector<Value> roots_;
  std::vector<Bound> bounds_;
  std::vector<Edge> edges_;
  BatchedRegion region_;
  uint64_t start_;
};

std::vector<Value> leave_values(std::vector<Value> results, const BatchedRegion& region,
                                uint64_t start) {
  std::vector<Value> out;
  std::vector<Value> roots;
  std::vector<size_t> places;
  for (const Value& y : results) {
    const bool own = y.node && (!is_outside(*y.node, start) || batched::as_batched(y.inner));
    if (y.node && !own) {  // it came from outside, and is the same for the whole batch
      Shape one{1}, all{region.size};
      for (const int64_t n : shape_of(y)) {
        one.push_back(n);
        all.push_back(n);
      }
      out.push_back(AD::float_expand(AD::float_reshape(y, one), all));
      continue;
    }
    out.push_back(Value{batch_of(y.inner, region)});
    if (!own) continue;
    places.push_back(out.size() - 1);
    roots.push_back(y);
  }
  if (roots.empty()) return out;
  std::vector<Bound> bounds = boundary(roots, region.level, start);
  if (bounds.empty()) return out;
  auto node = make_handle<VmapNode>(std::move(roots), std::move(bounds), region, start);
  for (size_t i = 0; i < places.size(); ++i) {
    out[places[i]].node = node;
    out[places[i]].slot = static_cast<uint32_t>(i);
  }
  return out;
}

std::atomic<uint64_t> newest_level{0};

}  // namespace

namespace detail {

bool is_of_batch(const Tensor& x) {
  return batched::as_batched(parts_or_value("vmap", x).inner) != nullptr;
}

Tensor of_whole_batch(const Tensor& x) {
  ErasedTensor inner = parts_or_value("vmap", x).inner;
  if (batched::as_batched(inner) == nullptr) return x;
  while (const auto* found = batched::as_batched(inner)) {
    const ErasedTensor within = found->inner();
    inner = within;
  }
  return wrap(Value{std::move(inner)});
}

VmapRegion::VmapRegion(int64_t size, Randomness randomness)
    : region_{.level = ++newest_level, .size = size, .randomness = randomness},
      start_(autodiff::detail::next_sequence()) {
  batched::install();
  batched::regions().push_back(region_);
}
VmapRegion::~VmapRegion() { batched::regions().pop_back(); }

Tensor VmapRegion::enter(const Tensor& x, int64_t dim) const {
  if (x.size(dim) != region_.size) {
    throw_error<ValueError>(
        "vmap: Expected all tensors to have the same size in the mapped "
        "dimension; got ",
        x.size(dim), " and ", region_.size);
  }
  const Tensor front = dim == 0 ? x : movedim(x, Dims{dim}, Dims{0});
  const Value& value = parts_or_value("vmap", front);
  if (kind_of_value(value) == Kind::quantized) {
    throw_error<NotImplementedError>("vmap: a quantized tensor cannot be mapped over");
  }
  Value inside{make_handle<BatchedTensor>(value.inner, region_)};
  if (value.node) {
    inside.node = make_handle<InputNode>(region_.level, Edge{value.node, value.slot});
  }
  return wrap_like(front, std::move(inside));
}

TensorList VmapRegion::leave(const TensorList& results) const {
  std::vector<Value> values;
  for (const Tensor& y : results) values.push_back(parts_or_value("vmap", y));
  values = leave_values(std::move(values), region_, start_);
  TensorList out;
  for (size_t i = 0; i < values.size(); ++i) {
    out.push_back(wrap_like(results[i], std::move(values[i])));
  }
  return out;
}

}  // namespace detail

TensorList vmap(const std::function<TensorList(const TensorList&)>& f, const TensorList& inputs,
                const VmapOptions& options) {
  const auto dim_of = [&](size_t i) {
    return options.in_dims.empty() ? std::optional<int64_t>(0) : options.in_dims[i];
  };
  if (!options.in_dims.empty() && options.in_dims.size() != inputs.size()) {
    throw_error<ValueError>("vmap: expected one of in_dims for each input; got ",
                            options.in_dims.size(), " for ", inputs.size());
  }
  std::optional<int64_t> size;
  for (size_t i = 0; i < inputs.size() && !size; ++i) {
    if (const auto dim = dim_of(i)) size = inputs[i].size(*dim);
  }
  if (!size) throw_error<ValueError>("vmap: at least one input must have a batch; got none");
  const VmapRegion region(*size, options.randomness);
  TensorList inside;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto dim = dim_of(i);
    inside.push_back(dim ? region.enter(inputs[i], *dim) : inputs[i]);
  }
  TensorList out = region.leave(f(inside));
  if (options.out_dims.empty()) return out;
  if (options.out_dims.size() != out.size()) {
    throw_error<ValueError>("vmap: expected one of out_dims for each result; got ",
                            options.out_dims.size(), " for ", out.size());
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (options.out_dims[i] != 0) out[i] = movedim(out[i], Dims{0}, Dims{options.out_dims[i]});
  }
  return out;
}

}  // namespace kiln
