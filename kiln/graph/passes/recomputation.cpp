#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <optional>

#include "kiln/graph/passes/effects.h"
#include "kiln/graph/passes/elementwise_rows.h"
#include "kiln/graph/passes/passes.h"

namespace kiln::graph {

namespace {

// Note [Computing again]
// A training step needs most memory where its forward pass ends: what the backward pass reads is
// kept until then. Much of it is cheap to make again from something else that is kept: an
// activation from what was activated, a norm from what was normalized. So the pass looks for the
// node where most memory is in use, and for a value that is there only because a later node reads
// it. The row that made the value is put in once more, before that node. The value is free in
// between. This goes on until the budget is met. The same row on the same operands gives the same
// bits.

constexpr Row kCheap[] = {
    kRow_float_reshape,
    kRow_int_reshape,
    kRow_bool_reshape,
    kRow_float_permute,
    kRow_int_permute,
    kRow_bool_permute,
    kRow_float_expand,
    kRow_int_expand,
    kRow_bool_expand,
    kRow_float_slice,
    kRow_int_slice,
    kRow_bool_slice,
    kRow_float_contiguous,
    kRow_int_contiguous,
    kRow_bool_contiguous,
    kRow_float_cat,
    kRow_float_dropout,
    kRow_float_gather,
    kRow_float_index_select,
    kRow_float_batch_norm,
    kRow_float_group_norm,
    kRow_float_layer_norm,
    kRow_float_batch_norm_inference,
};
// So many rows may be needed for one value.
constexpr size_t kMostRows = 12;
// A value that is a smaller part of the peak is left alone.
constexpr int64_t kLeastPart = 2048;

bool is_cheap(const Node& node) {
  if (node.has_effect() || node.results.empty()) return false;
  if (node.kind == NodeKind::as_strided || node.kind == NodeKind::reinterpret) return true;
  if (is_elementwise(node)) return true;
  return node.kind == NodeKind::row &&
         std::find(std::begin(kCheap), std::end(kCheap), node.row) != std::end(kCheap);
}

class Recomputation {
 public:
  Recomputation(Graph& graph, double budget, size_t* boundary)
      : graph_(graph), budget_(budget), boundary_(boundary) {}

  void run(PassReport* report) {
    scan();
    const int64_t before = peak_;
    const auto wanted = static_cast<int64_t>(budget_ * static_cast<double>(before));
    const size_t most = graph_.nodes.size();
    while (peak_ > wanted && values_ < most && step()) scan();
    if (report == nullptr) return;
    const auto megabytes = [](int64_t bytes) {
      char text[32];
      std::snprintf(text, sizeof text, "%.3g", static_cast<double>(bytes) / 1e6);
      return std::string(text);
    };
    report->lines.push_back(concat("recomputation: ", values_, " values computed again by ", rows_,
                                   " rows; planned peak ", megabytes(peak_), " MB of ",
                                   megabytes(before), ", ", megabytes(wanted), " asked for"));
  }

 private:
  // Memory that some values share.
  struct Block {
    int64_t bytes = 0;
    int first = -1, last = -1;  // the nodes that make and read it
    bool outside = false;       // of inputs and constants: it is there anyway
    bool given_out = false;
    std::vector<int> reads, writes;
  };

  Block& block(ValueId id) { return blocks_[static_cast<size_t>(graph_[id].memory)]; }

  void scan() {
    int32_t most = 0;
    for (const Value& value : graph_.values) most = std::max(most, value.memory);
    next_memory_ = most + 1;
    blocks_.assign(static_cast<size_t>(most) + 1, {});
    makers_.assign(graph_.values.size(), -1);
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      if (graph_.values[i].origin != Origin::node) block(static_cast<ValueId>(i)).outside = true;
    }
    const auto count = static_cast<int>(graph_.nodes.size());
    std::vector<int> calls;
    for (int n = 0; n < count; ++n) {
      const Node& node = graph_.nodes[static_cast<size_t>(n)];
      node.each_operand([&](const Operand& o) {
        Block& b = block(o.value);
        if (b.reads.empty() || b.reads.back() != n) b.reads.push_back(n);
        b.last = n;
        // What a call on the host does with its tensors is not known.
        if (node.kind == NodeKind::call) b.writes.push_back(n);
      });
      if (node.kind == NodeKind::call) calls.push_back(n);
      each_write(node, [&](ValueId id) { block(id).writes.push_back(n); });
      for (const ValueId id : node.results) {
        int& maker = makers_[static_cast<size_t>(id)];
        if (maker < 0 && graph_[id].origin == Origin::node) maker = n;
        Block& b = block(id);
        if (b.first < 0) b.first = n;
        if (b.bytes == 0) b.bytes = graph_[id].bytes();
        b.last = std::max(b.last, n);
      }
    }
    for (Block& b : blocks_) {
      if (b.outside) b.writes.insert(b.writes.end(), calls.begin(), calls.end());
    }
    for (const ValueId id : graph_.outputs) {
      block(id).given_out = true;
      block(id).last = count;
    }
    live_.assign(static_cast<size_t>(count) + 2, 0);
    for (const Block& b : blocks_) {
      if (b.outside || b.first < 0) continue;
      live_[static_cast<size_t>(b.first)] += b.bytes;
      live_[static_cast<size_t>(b.last) + 1] -= b.bytes;
    }
    for (size_t n = 1; n < live_.size(); ++n) live_[n] += live_[n - 1];
    const auto top = std::ranges::max_element(live_);
    peak_ = *top;
    peak_at_ = static_cast<int>(top - live_.begin());
  }

  // What it takes to have values again before a node.
  struct Plan {
    int before = -1;
    std::vector<ValueId> wanted;
    std::vector<int> nodes;  // in order
    int64_t freed = 0, cost = 0;
    double worth() const { return static_cast<double>(freed) / static_cast<double>(cost + 1); }
  };

  bool step() {
    std::optional<Plan> best;
    std::map<int32_t, std::vector<ValueId>> members;
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      const auto id = static_cast<ValueId>(i);
      const Block& b = block(id);
      const bool crosses = !b.outside && !b.given_out && b.writes.empty() && b.first >= 0 &&
                           b.first < peak_at_ && b.last > peak_at_;
      if (crosses && b.bytes > peak_ / kLeastPart) members[graph_[id].memory].push_back(id);
    }
    for (const auto& [memory, ids] : members) {
      std::optional<Plan> plan = plan_for(blocks_[static_cast<size_t>(memory)], ids);
      if (plan && (!best || plan->worth() > best->worth())) best = std::move(plan);
    }
    if (!best) return false;
    apply(*best);
    return true;
  }

  std::optional<Plan> plan_for(const Block& b, const std::vector<ValueId>& members) {
    const auto next = std::ranges::lower_bound(b.reads, peak_at_);
    if (next == b.reads.end() || *next == peak_at_) return std::nullopt;  // it is needed there
    Plan plan;
    plan.before = *next;
    plan.freed = b.bytes;
    gone_ = &b;
    for (size_t n = static_cast<size_t>(plan.before); n < graph_.nodes.size(); ++n) {
      graph_.nodes[n].each_operand([&](const Operand& o) {
        const bool is_member = std::ranges::find(members, o.value) != members.end();
        const bool known = std::ranges::find(plan.wanted, o.value) != plan.wanted.end();
        if (is_member && !known && makers_[static_cast<size_t>(o.value)] < plan.before) {
          plan.wanted.push_back(o.value);
        }
      });
      if (static_cast<int>(n) >= b.last) break;
    }
    for (const ValueId id : plan.wanted) {
      if (!add_maker(id, plan)) return std::nullopt;
    }
    int64_t made = 0;
    for (const int n : plan.nodes) {
      const Node& node = graph_.nodes[static_cast<size_t>(n)];
      const bool is_view = block(node.results[0]).first != n;
      node.each_operand(
          [&](const Operand& o) { plan.cost += is_view ? 0 : graph_[o.value].bytes(); });
      for (const ValueId id : node.results) made += is_view ? 0 : graph_[id].bytes();
    }
    plan.cost += made;
    if (live_[static_cast<size_t>(plan.before)] + made > peak_ || plan.nodes.empty()) {
      return std::nullopt;
    }
    return plan;
  }

  // Whether a value that a node reads is what it was when that node ran, before a later one.
  bool is_there(ValueId id, int reader, int before) {
    const Block& b = block(id);
    const bool changed = std::ranges::any_of(
        b.writes, [&](int n) { return b.outside ? n > reader && n < before : true; });
    return !changed && &b != gone_ && (b.outside || b.last >= before);
  }

  bool add_maker(ValueId id, Plan& plan) {
    const int maker = makers_[static_cast<size_t>(id)];
    if (maker < 0 || !block(id).writes.empty()) return false;
    if (std::ranges::find(plan.nodes, maker) != plan.nodes.end()) return true;
    const Node& node = graph_.nodes[static_cast<size_t>(maker)];
    if (!is_cheap(node)) return false;
    bool possible = true;
    node.each_operand([&](const Operand& o) {
      possible = possible && plan.nodes.size() < kMostRows &&
                 (is_there(o.value, maker, plan.before) || add_maker(o.value, plan));
    });
    if (!possible) return false;
    plan.nodes.push_back(maker);
    return plan.nodes.size() <= kMostRows;
  }

  void apply(const Plan& plan) {
    std::map<ValueId, ValueId> again;
    std::map<int32_t, int32_t> memories;
    std::vector<Node> clones;
    for (const int n : plan.nodes) {
      Node node = graph_.nodes[static_cast<size_t>(n)];
      for (ValueId& id : node.results) {
        const int32_t memory = graph_[id].memory;
        const bool known = memories.contains(memory);
        if (!known) {
          // A view of something that is there still shares its memory.
          bool shared = false;
          node.each_operand([&](const Operand& o) {
            shared = shared || (graph_[o.value].memory == memory && !again.contains(o.value));
          });
          memories[memory] = shared ? memory : next_memory_++;
        }
        Value value = graph_[id];
        value.memory = memories[memory];
        const auto copy = static_cast<ValueId>(graph_.values.size());
        graph_.values.push_back(std::move(value));
        again[id] = copy;
        id = copy;
      }
      node.each_operand([&](Operand& o) {
        if (const auto found = again.find(o.value); found != again.end()) o.value = found->second;
      });
      clones.push_back(std::move(node));
    }
    for (size_t n = static_cast<size_t>(plan.before); n < graph_.nodes.size(); ++n) {
      graph_.nodes[n].each_operand([&](Operand& o) {
        if (std::ranges::find(plan.wanted, o.value) != plan.wanted.end()) o.value = again[o.value];
      });
    }
    for (size_t i = 0; i < makers_.size(); ++i) {  // later views are views of the copy now
      const auto memory = memories.find(graph_.values[i].memory);
      if (makers_[i] >= plan.before && memory != memories.end()) {
        graph_.values[i].memory = memory->second;
      }
    }
    values_ += 1;
    rows_ += clones.size();
    if (boundary_ != nullptr && static_cast<size_t>(plan.before) < *boundary_) {
      *boundary_ += clones.size();
    }
    graph_.nodes.insert(graph_.nodes.begin() + plan.before, std::make_move_iterator(clones.begin()),
                        std::make_move_iterator(clones.end()));
  }

  Graph& graph_;
  double budget_;
  size_t* boundary_;
  std::vector<Block> blocks_;  // by memory
  std::vector<int> makers_;    // the node that makes a value
  std::vector<int64_t> live_;  // bytes in use while a node runs
  int64_t peak_ = 0;
  int peak_at_ = 0;
  const Block* gone_ = nullptr;  // what is to be made again
  int32_t next_memory_ = 0;
  size_t values_ = 0, rows_ = 0;
};

}  // namespace

void recompute(Graph& graph, double budget, PassReport* report, size_t* boundary) {
  if (budget < 1.0) Recomputation(graph, budget, boundary).run(report);
}

}  // namespace kiln::graph
