// The first call of a compiled function: what it computes, and the graphs of it.
#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "kiln/compile/variant.h"
#include "kiln/core/error.h"
#include "kiln/graph/capture.h"
#include "kiln/graph/passes/effects.h"
#include "kiln/nn/module.h"
#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/autograd/leaf_log.h"

namespace kiln::compiling {

using namespace kiln::detail;
using graph::ValueId;

namespace {

// Whether this thread notes which leaves get gradients.
class Logging {
 public:
  explicit Logging(LeafLog& log) : before_(std::exchange(leaf_log, &log)) {}
  ~Logging() { leaf_log = before_; }
  Logging(const Logging&) = delete;
  Logging& operator=(const Logging&) = delete;

 private:
  LeafLog* before_;
};

struct Boundary {
  std::vector<Edge<Dispatch>> edges;
  bool hooks = false;  // something looks at gradients within
  bool freed = false;  // a backward pass has been there
};

// Where what was recorded since `start` ends (as of a checkpoint).
Boundary boundary_of(const std::vector<Value>& roots, uint64_t start) {
  Boundary out;
  std::unordered_set<const AutodiffNode*> seen;
  std::vector<Handle<AutodiffNode>> stack;
  const auto follow = [&](const Edge<Dispatch>& edge) {
    const AutodiffNode* node = edge.node.get();
    if (node == nullptr) return;
    if (node->is_leaf() || node->sequence() < start) {
      const bool known = std::any_of(out.edges.begin(), out.edges.end(), [&](const auto& other) {
        return other.node == edge.node && other.slot == edge.slot;
      });
      if (!known) out.edges.push_back(edge);
    } else if (seen.insert(node).second) {
      stack.push_back(edge.node);
    }
  };
  for (const Value& root : roots) follow({root.node, root.slot});
  while (!stack.empty()) {
    const Handle<AutodiffNode> node = std::move(stack.back());
    stack.pop_back();
    out.freed = out.freed || node->released();
    if (const auto* extras = node->extras()) {
      out.hooks = out.hooks || !extras->hooks.empty() || !extras->before.empty() ||
                  !extras->after.empty() || !extras->kept.empty();
    }
    for (const auto& next : node->edges()) follow(next);
  }
  return out;
}

bool is_recorded_within(const Value& value, uint64_t start) {
  return value.node && !value.node->is_leaf() && value.node->sequence() >= start;
}

std::string why_of(const std::exception& error) { return error.what(); }

class CallCapture {
 public:
  CallCapture(const Compiled::Function& f, const TensorList& inputs, const CompileOptions& options,
              Variant& variant)
      : f_(f), inputs_(inputs), options_(options), v_(variant), capture_({options.fullgraph}) {}

  TensorList run() {
    begin();
    const uint64_t start = autodiff::detail::next_sequence();
    TensorList results;
    log_.rows = [this] { return capture_.nodes(); };
    {
      const Logging logging(log_);
      results = f_(inputs_);
    }
    if (refuse(capture_.failure())) return results;
    v_.draws = default_generator().state().offset != random_before_;
    try {
      v_.tape.finish();
    } catch (const ValueError& error) {
      refuse(why_of(error));
      return results;
    }
    note_outputs(results, start);
    if (!v_.eager.empty()) return results;
    nodes_forward_ = capture_.nodes();
    note_leaves(start);
    if (!v_.eager.empty()) return results;
    if (!roots_.empty()) capture_backward(start);
    if (!v_.eager.empty()) return results;
    build();
    return results;
  }

 private:
  bool refuse(const std::string& why) {
    if (v_.eager.empty()) v_.eager = why;
    if (!why.empty() && options_.fullgraph) throw graph::CaptureError("compile: " + why);
    return !why.empty();
  }

  void begin() {
    amp::clear_autocast_cache();
    random_before_ = default_generator().state().offset;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].defined()) continue;
      const Value& value = parts_or_value("compile", inputs_[i]);
      input_nodes_.push_back(value.node);
      input_ids_.push_back(capture_.add_input(value.inner, concat("input", i)));
    }
    for (nn::Module* module : options_.modules) {
      for (const auto& [name, x] : module->named_parameters()) name_constant(x, name);
      for (const auto& [name, x] : module->named_buffers()) name_constant(x, name);
    }
  }

  void name_constant(const Tensor& x, const std::string& name) {
    if (x.defined()) capture_.name_constant(parts_or_value("compile", x).inner, name);
  }

  void note_outputs(const TensorList& results, uint64_t start) {
    size_t k = 0;
    for (const Tensor& x : inputs_) {
      if (!x.defined()) continue;
      if (!(parts_or_value("compile", x).node == input_nodes_[k++])) {
        refuse("it writes in place to an input that requires a gradient");
      }
    }
    for (const HeldTensor& held : v_.held) {
      if (!held.holds()) refuse("it gives a parameter or a buffer another tensor");
    }
    for (const Tensor& y : results) {
      Variant::Output out;
      if (y.defined()) {
        const auto same = std::find_if(inputs_.begin(), inputs_.end(), [&](const Tensor& x) {
          return x.defined() && x.is_same(y);
        });
        const Value& value = parts_or_value("compile", y);
        if (same != inputs_.end()) {
          out.kind = Variant::Output::Kind::input;
          out.input = static_cast<int>(same - inputs_.begin());
        } else {
          out.kind = Variant::Output::Kind::computed;
          out.complex = state_of(y).is_complex();
          out.tracked = is_recorded_within(value, start);
          if (value.node && !out.tracked) refuse("it returns a tensor of another graph");
          if (state_of(y).root) note_view(y, out);
          out.place = static_cast<int>(given_out_.size());
          given_out_.push_back(value.inner);
          if (out.tracked) roots_.push_back(value);
        }
      }
      v_.outputs.push_back(out);
    }
  }

  // A result that is a view: of an input, it stays one.
  void note_view(const Tensor& y, Variant::Output& out) {
    const auto& root = state_of(y).root;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].defined()) continue;
      const auto& x = inputs_[i];
      if (root.get() == x.impl().get() || root.get() == state_of(x).root.get()) {
        out.input = static_cast<int>(i);
      }
    }
    for (const HeldTensor& held : v_.held) {
      if (root.get() == held.tensor.impl().get()) refuse("it returns a view of a tensor it holds");
    }
  }

  void note_leaves(uint64_t start) {
    for (const LeafLog::Entry& entry : log_.entries) {
      if (entry.node->sequence() >= start) continue;  // made within
      const bool reads = entry.first != LeafLog::First::reset;
      if (reads && entry.before) {
        v_.leaves_read.push_back(entry.node);
        Tensor grad = wrap(Value{entry.before->inner});
        v_.leaf_guards.push_back(guards_of({grad})[0]);
        leaf_inputs_.push_back(entry.before->inner);
      } else if (entry.first == LeafLog::First::added) {
        v_.leaves_empty.push_back(entry.node);
      }
      if (entry.first == LeafLog::First::reset) resets_.emplace_back(entry.at, entry.node);
      const auto& now = entry.leaf().grad;
      v_.leaves_written.push_back({entry.node, now ? static_cast<int>(given_out_.size()) : -1});
      if (now) given_out_.push_back(now->inner);
      if (now && now->node) refuse("it leaves a gradient that has a history of its own");
    }
  }

  void capture_backward(uint64_t start) {
    const Boundary boundary = boundary_of(roots_, start);
    if (boundary.freed) {  // within the function: nobody can take a gradient from outside
      roots_.clear();
      v_.freed = true;
      return;
    }
    if (boundary.hooks) {
      refuse("hooks look at gradients within it");
      return;
    }
    std::vector<Value> seeds;
    std::vector<Value> wanted;
    {
      const graph::PauseCapture pause;
      for (const Value& root : roots_) {
        seeds.push_back(AD::float_full(shape_of(root), Scalar(1.0), dtype_of_value(root),
                                       root.inner->device()));
      }
    }
    for (size_t i = 0; i < seeds.size(); ++i) {
      seed_ids_.push_back(capture_.add_input(seeds[i].inner, concat("gradient", i)));
    }
    for (const auto& edge : boundary.edges) wanted.push_back(Value{{}, edge.node, edge.slot});
    std::vector<std::optional<Value>> found;
    try {
      const amp::detail::NoCasting off;
      found = AD::grad_of(roots_, seeds, wanted, {.retain_graph = true, .end_at_targets = true});
    } catch (const Error& error) {
      refuse(why_of(error));
      return;
    }
    if (refuse(capture_.failure())) return;
    for (size_t i = 0; i < found.size(); ++i) {
      Variant::Target target;
      target.edge = boundary.edges[i];
      for (size_t k = 0; k < inputs_.size(); ++k) {
        if (!inputs_[k].defined()) continue;
        const Value& x = parts_or_value("compile", inputs_[k]);
        if (x.node == target.edge.node && x.slot == target.edge.slot) {
          target.input = static_cast<int>(k);
          target.edge = {};
        }
      }
      if (found[i]) {
        target.place = static_cast<int>(grads_.size());
        grads_.push_back(found[i]->inner);
      }
      v_.targets.push_back(std::move(target));
    }
  }

  // ---- The graphs

  void build() {
    std::vector<ErasedTensor> all = given_out_;
    all.insert(all.end(), grads_.begin(), grads_.end());
    graph::Graph whole = capture_.finish(all);
    for (const ErasedTensor& x : leaf_inputs_) add_leaf_input(whole, x);
    std::erase_if(whole.inputs, [&](ValueId id) {
      return std::count(seed_ids_.begin(), seed_ids_.end(), id) != 0;
    });
    const std::vector<ValueId> grads(
        whole.outputs.begin() + static_cast<int64_t>(given_out_.size()), whole.outputs.end());
    whole.outputs.resize(given_out_.size());
    if (!check_order(whole)) return;
    for (const ValueId id : whole.constants()) v_.read.push_back(whole[id].constant.address());
    note_resets(whole);
    graph::PassReport report;
    const bool is_cut = !roots_.empty();
    if (is_cut) {  // values that go from one graph to the other
      const std::vector<ValueId> given_out = whole.outputs;
      whole.outputs.insert(whole.outputs.end(), grads.begin(), grads.end());
      graph::recompute(whole, options_.memory_budget, &report, &nodes_forward_);
      whole.outputs = given_out;
    }
    graph::Graph backward = cut(whole, grads);
    const graph::Effects effects(whole);
    for (const graph::Node& node : whole.nodes) {
      for (const graph::Argument& a : node.arguments) {
        const auto* attention = std::get_if<AttentionOptions>(&a.attribute);
        v_.draws = v_.draws || std::holds_alternative<RandomStream>(a.attribute) ||
                   (attention != nullptr && attention->dropout > 0.0);
      }
      graph::each_write(node, [&](ValueId id) {
        v_.writes_outside = v_.writes_outside || effects.is_outside(id);
      });
      v_.writes_outside = v_.writes_outside || node.kind == graph::NodeKind::call;
    }
    const graph::PassOptions passes{.own_results = options_.own_results,
                                    .dead_code = options_.dead_code,
                                    .common_subexpressions = options_.common_subexpressions,
                                    .constant_folding = options_.constant_folding,
                                    .freeze = options_.freeze,
                                    .norm_folding = options_.norm_folding && !options_.exact,
                                    .merged_products = options_.merged_products && !options_.exact,
                                    .epilogues = options_.epilogues,
                                    .joined_convolutions = options_.joined_convolutions,
                                    .fusion = options_.fusion,
                                    .memory_budget = is_cut ? 1.0 : options_.memory_budget};
    const graph::PauseCapture pause;
    v_.forward = std::make_unique<graph::Plan>(graph::optimized(std::move(whole), passes, &report));
    if (is_cut) {
      report.lines.push_back("backward pass:");
      v_.backward =
          std::make_unique<graph::Plan>(graph::optimized(std::move(backward), passes, &report));
      for (const ValueId id : v_.backward->graph().constants()) {
        v_.watched.push_back(v_.backward->graph()[id].constant);
      }
    }
    v_.report = std::move(report.lines);
  }

  // A gradient that was there before is another one in each call.
  void add_leaf_input(graph::Graph& whole, const ErasedTensor& x) {
    for (size_t i = 0; i < whole.values.size(); ++i) {
      graph::Value& value = whole.values[i];
      if (value.origin != graph::Origin::constant || !(value.constant == x)) continue;
      value.origin = graph::Origin::input;
      value.constant.reset();
      whole.inputs.push_back(static_cast<ValueId>(i));
      return;
    }
    graph::Value& value = whole.values.emplace_back();  // that no row reads
    value.shape = x->shape();
    value.dtype = x->dtype();
    value.device = x->device();
    value.origin = graph::Origin::input;
    value.memory = static_cast<int32_t>(whole.values.size()) + 1'000'000;
    whole.inputs.push_back(static_cast<ValueId>(whole.values.size()) - 1);
  }

  // Gradients that are dropped before anything may fail are dropped before a replay, whose own
  // gradients then take their memory.
  void note_resets(const graph::Graph& whole) {
    const auto may_fail = std::ranges::find_if(whole.nodes, [&](const graph::Node& n) {
      bool fails = n.kind == graph::NodeKind::check || n.kind == graph::NodeKind::expect ||
                   n.kind == graph::NodeKind::call;
      n.each_operand([&](const graph::Operand& o) {  // indices out of range
        fails = fails || kind_of(whole[o.value].dtype) == Kind::integer;
      });
      return fails;
    });
    for (const auto& [at, node] : resets_) {
      if (static_cast<int64_t>(at) <= may_fail - whole.nodes.begin())
        v_.leaves_reset.push_back(node);
    }
  }

  // A value that is compared in a replay must be read before anything is changed.
  bool check_order(const graph::Graph& whole) {
    const graph::Effects effects(whole);
    bool changed = false;
    for (size_t n = 0; n < whole.nodes.size(); ++n) {
      const graph::Node& node = whole.nodes[n];
      if (node.kind == graph::NodeKind::expect && (changed || n >= nodes_forward_)) {
        refuse(concat("capture: ", node.name, " reads a value after something was changed"));
        return false;
      }
      graph::each_write(node, [&](ValueId id) { changed = changed || effects.is_outside(id); });
      changed = changed || node.kind == graph::NodeKind::call;
    }
    return true;
  }

  // Leaves the forward pass in `whole`, with what the backward pass needs among its outputs.
  graph::Graph cut(graph::Graph& whole, const std::vector<ValueId>& grads) {
    graph::Graph backward;
    v_.saved_from = static_cast<int>(whole.outputs.size());
    if (roots_.empty()) return backward;
    backward.values = whole.values;
    const auto begin = whole.nodes.begin() + static_cast<int64_t>(nodes_forward_);
    backward.nodes.assign(std::make_move_iterator(begin),
                          std::make_move_iterator(whole.nodes.end()));
    whole.nodes.erase(begin, whole.nodes.end());
    std::vector<char> made(whole.values.size(), 0), saved(whole.values.size(), 0);
    for (const graph::Node& node : whole.nodes) {
      for (const ValueId id : node.results) made[static_cast<size_t>(id)] = 1;
    }
    for (const ValueId id : whole.inputs) made[static_cast<size_t>(id)] = 1;
    const auto need = [&](ValueId id) {
      const auto i = static_cast<size_t>(id);
      if (made[i] == 0 || saved[i] != 0 || whole[id].origin == graph::Origin::constant) return;
      saved[i] = 1;
      whole.outputs.push_back(id);
      backward.inputs.push_back(id);
      backward[id].origin = graph::Origin::input;
      ++v_.saved;
    };
    for (const graph::Node& node : backward.nodes) {
      node.each_operand([&](const graph::Operand& o) { need(o.value); });
    }
    for (const ValueId id : grads) need(id);
    backward.inputs.insert(backward.inputs.end(), seed_ids_.begin(), seed_ids_.end());
    backward.outputs = grads;
    return backward;
  }

  const Compiled::Function& f_;
  const TensorList& inputs_;
  const CompileOptions& options_;
  Variant& v_;
  LeafLog log_;
  graph::Capture capture_;
  size_t nodes_forward_ = 0;
  uint64_t random_before_ = 0;
  std::vector<Handle<AutodiffNode>> input_nodes_;
  std::vector<ValueId> input_ids_, seed_ids_;
  std::vector<ErasedTensor> leaf_inputs_;
  std::vector<ErasedTensor> given_out_;  // results, and gradients of leaves
  std::vector<std::pair<size_t, Handle<AutodiffNode>>> resets_;
  std::vector<ErasedTensor> grads_;
  std::vector<Value> roots_;  // results that have gradients
};

}  // namespace

TensorList capture(const Compiled::Function& f, const TensorList& inputs,
                   const CompileOptions& options, Variant& variant) {
  return CallCapture(f, inputs, options, variant).run();
}

}  // namespace kiln::compiling
