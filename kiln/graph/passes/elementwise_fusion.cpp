#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "kiln/core/cache_size.h"
#include "kiln/core/dim_order.h"
#include "kiln/graph/fused.h"
#include "kiln/graph/passes/effects.h"
#include "kiln/graph/passes/elementwise_rows.h"
#include "kiln/graph/passes/last_uses.h"
#include "kiln/graph/passes/passes.h"

namespace kiln::graph {

namespace {

using Source = FusedRows::Source;

// Smaller tensors stay in the cache anyway, and a tile costs a few views.
constexpr int64_t kLeastElements = 32768;
// A row of the matrix is no longer than this.
constexpr int64_t kMostInner = 8192;

// Rows on one shape that will run together.
struct Group {
  ValueId like = kNoValue;  // one of its results
  int split = -1;           // dims before it are the matrix's rows; -1: no operand says
  std::vector<Node> nodes;
};

// The shape with its dims in the order in which the value lies.
Shape in_memory(const Value& x) {
  return x.order.rank() == 0 ? x.shape : permuted(x.shape, x.order);
}

bool lie_alike(const Value& x, const Value& y) {
  return x.shape == y.shape && x.row_major == y.row_major && x.order == y.order;
}

class Fusion {
 public:
  Fusion(Graph& graph, bool always, PassReport* report)
      : graph_(graph), effects_(graph), always_(always), report_(report) {}

  void run() {
    users_.assign(graph_.values.size(), 0);
    for (const Node& node : graph_.nodes) {
      node.each_operand([&](const Operand& o) { ++users_[static_cast<size_t>(o.value)]; });
    }
    for (const ValueId id : graph_.outputs) ++users_[static_cast<size_t>(id)];
    owner_.assign(graph_.values.size(), -1);
    for (Node& node : graph_.nodes) take(std::move(node));
    while (!groups_.empty()) close(groups_.begin()->first);
    graph_.nodes = std::move(out_);
    if (report_ == nullptr) return;
    for (const auto& [why, count] : left_) {
      report_->lines.push_back(concat("not fused: ", count, " elementwise rows: ", why));
    }
  }

 private:
  // How an operand lies beside a result, and where that must be split: at a dim of in_memory().
  struct Place {
    Source source;
    int split = -1;
  };
  static std::optional<Place> place_of(const Value& x, const Value& y) {
    if (lie_alike(x, y)) return Place{Source::matrix};
    if (x.shape.numel() == 1) return Place{Source::number};
    if (!x.row_major || x.shape == y.shape) return std::nullopt;
    const Shape all = in_memory(y);
    const int rank = all.rank();
    Shape padded = Shape::filled(rank, 1);
    for (int d = 0; d < x.shape.rank(); ++d) padded[rank - x.shape.rank() + d] = x.shape[d];
    if (y.order.rank() != 0) {
      const Strides strides = permuted(contiguous_strides(padded), y.order);
      padded = permuted(padded, y.order);
      if (!is_contiguous(padded, strides)) return std::nullopt;
    }
    int first = 0;  // [1, .., 1, trailing dims]
    while (first < rank && padded[first] == 1 && all[first] != 1) ++first;
    bool trailing = first > 0;
    for (int d = first; d < rank; ++d) trailing = trailing && padded[d] == all[d];
    if (trailing) return Place{Source::row, first};
    int last = rank;  // [leading dims, 1, .., 1]
    while (last > 0 && padded[last - 1] == 1 && all[last - 1] != 1) --last;
    bool leading = last < rank;
    for (int d = 0; d < last; ++d) leading = leading && padded[d] == all[d];
    if (leading) return Place{Source::column, last};
    return std::nullopt;
  }

  const char* why_not(const Node& node) const {
    const Value& y = graph_[node.results[0]];
    if (y.device.type != kCpu) return "another device";
    if (y.shape.numel() < kLeastElements) return "they are small";
    if (node.has_effect() || effects_.is_written(node.results[0])) return "written in place";
    if (!y.row_major && y.order.rank() == 0) return "they have gaps";
    const char* why = nullptr;
    node.each_operand([&](const Operand& o) {
      const Value& x = graph_[o.value];
      if (o.value == node.results[0]) why = "it gives its operand";
      if (effects_.is_written(o.value)) why = "written in place";
      if (place_of(x, y)) return;
      const bool plain = x.row_major && y.row_major;
      why = plain ? "broadcast along a dim in the middle" : "they lie in different orders";
    });
    return why;
  }

  // The split that a node asks for; false when it asks for two.
  bool split_of(const Node& node, int& split) const {
    const Value& y = graph_[node.results[0]];
    const Shape shape = in_memory(y);
    bool fits = true;
    node.each_operand([&](const Operand& o) {
      const Place place = *place_of(graph_[o.value], y);
      if (place.split < 0) return;
      int64_t inner = 1;
      for (int d = place.split; d < shape.rank(); ++d) inner *= shape[d];
      fits = fits && (split < 0 || split == place.split) && inner <= kMostInner;
      split = place.split;
    });
    return fits;
  }

  void take(Node node) {
    const bool elementwise = is_elementwise(node);
    const char* why = elementwise ? why_not(node) : nullptr;
    if (why != nullptr) ++left_[why];
    if (!elementwise || why != nullptr) {
      close_needed(node, -1);
      out_.push_back(std::move(node));
      return;
    }
    const Value& y = graph_[node.results[0]];
    int key = -1;
    for (const auto& [k, group] : groups_) {
      int split = group.split;
      if (lie_alike(graph_[group.like], y) && split_of(node, split)) key = k;
    }
    if (key < 0) {
      int split = -1;
      if (!split_of(node, split)) {
        ++left_["broadcast along different dims"];
        close_needed(node, -1);
        out_.push_back(std::move(node));
        return;
      }
      key = next_++;
      groups_[key].like = node.results[0];
    }
    close_needed(node, key);
    Group& group = groups_[key];
    split_of(node, group.split);
    owner_[static_cast<size_t>(node.results[0])] = key;
    group.nodes.push_back(std::move(node));
  }

  // Groups, but this one, that make what the node reads have to come before it.
  void close_needed(const Node& node, int own) {
    std::vector<int> needed;
    node.each_operand([&](const Operand& o) {
      const int key = owner_[static_cast<size_t>(o.value)];
      if (key >= 0 && key != own) needed.push_back(key);
    });
    for (const int key : needed) close(key);
  }

  void close(int key) {
    const auto found = groups_.find(key);
    if (found == groups_.end()) return;
    Group group = std::move(found->second);
    groups_.erase(found);
    // What the group itself reads of others.
    for (const Node& node : group.nodes) {
      owner_[static_cast<size_t>(node.results[0])] = -1;
      close_needed(node, key);
    }
    const bool alone = group.nodes.size() < 2;
    if (alone || !pays(group)) {
      for (Node& node : group.nodes) {
        ++left_[alone ? "alone" : "few for what they read and write"];
        out_.push_back(std::move(node));
      }
      return;
    }
    out_.push_back(fused(std::move(group)));
  }

  // Note [When tiles pay]
  // A tensor that the cache holds is read from there by the next row about as fast as a tile is,
  // and tiles of many tensors are slower to read than one after another. So a group needs two rows
  // for each tensor that it reads or writes, unless its tensors go through memory.
  bool pays(const Group& group) const {
    std::set<ValueId> streams;  // what is as large as the result, from outside or to it
    std::map<ValueId, int> made;
    int64_t bytes = 0;
    for (const Node& node : group.nodes) {
      made[node.results[0]] = 0;
      bytes = std::max(bytes, graph_[node.results[0]].bytes());
    }
    if (always_ || bytes >= memory_bound_bytes()) return true;
    for (const Node& node : group.nodes) {
      node.each_operand([&](const Operand& o) {
        if (const auto own = made.find(o.value); own != made.end()) {
          ++own->second;
        } else if (graph_[o.value].shape == graph_[group.like].shape) {
          streams.insert(o.value);
        }
      });
    }
    for (const auto& [id, reads] : made) {
      if (users_[static_cast<size_t>(id)] > reads) streams.insert(id);
    }
    return group.nodes.size() >= 2 * streams.size();
  }

  Node fused(Group group) {
    auto rows = std::make_shared<FusedRows>();
    const Value& like = graph_[group.like];
    rows->shape = in_memory(like);
    rows->order = like.order;
    const int split = group.split < 0 ? rows->shape.rank() : group.split;
    for (int d = 0; d < rows->shape.rank(); ++d) {
      (d < split ? rows->rows : rows->inner) *= rows->shape[d];
    }
    Node out;
    out.kind = NodeKind::fused;
    out.name = concat("fused_", group.nodes.size());
    out.arguments.resize(1);
    out.arguments[0].kind = Argument::Kind::list;
    std::map<ValueId, ValueId> numbers;
    std::map<ValueId, int> made;  // with how often the group reads it
    for (const Node& node : group.nodes) made[node.results[0]] = 0;
    for (const Node& node : group.nodes) {
      node.each_operand([&](const Operand& o) {
        if (const auto own = made.find(o.value); own != made.end()) {
          ++own->second;
        } else if (numbers.try_emplace(o.value, static_cast<ValueId>(numbers.size())).second) {
          out.arguments[0].operands.push_back({o.value, false, false});
          rows->sources.push_back(place_of(graph_[o.value], like)->source);
        }
      });
    }
    Graph local;  // for the last uses
    auto next = static_cast<ValueId>(numbers.size());
    for (const Node& node : group.nodes) numbers[node.results[0]] = next++;
    rows->values = next;
    local.values.resize(static_cast<size_t>(next));
    for (size_t i = 0; i < rows->sources.size(); ++i) {
      // Those that are the same in each tile stay.
      const bool same = rows->sources[i] == Source::row || rows->sources[i] == Source::number;
      local.values[i].origin = same ? Origin::constant : Origin::input;
    }
    std::string names;
    for (Node& node : group.nodes) {
      const ValueId result = node.results[0];
      if (users_[static_cast<size_t>(result)] > made[result]) {
        out.results.push_back(result);
        rows->outputs.push_back(numbers[result]);
        rows->dtypes.push_back(graph_[result].dtype);
      }
      names += (names.empty() ? "" : ", ") + node.name;
      node.each_operand([&](Operand& o) { o.value = numbers[o.value]; });
      node.results[0] = numbers[result];
      local.nodes.push_back(std::move(node));
    }
    local.outputs = rows->outputs;
    find_last_uses(local);
    for (Node& node : local.nodes) {  // a result has its place: no operand's memory becomes it
      if (std::ranges::find(rows->outputs, node.results[0]) == rows->outputs.end()) continue;
      node.each_operand([](Operand& o) { o.last = false; });
    }
    rows->nodes = std::move(local.nodes);
    if (report_ != nullptr) {
      report_->lines.push_back(
          concat("fused: ", rows->nodes.size(), " rows on ", like.shape, ": ", names));
    }
    out.fused = std::move(rows);
    return out;
  }

  Graph& graph_;
  Effects effects_;
  bool always_;  // also where it does not pay
  PassReport* report_;
  std::vector<int> users_;  // how often a value is read
  std::vector<int> owner_;  // the open group that makes a value
  std::map<int, Group> groups_;
  int next_ = 0;
  std::vector<Node> out_;
  std::map<std::string, int> left_;  // rows that are not fused, by the reason
};

}  // namespace

void fuse_elementwise(Graph& graph, PassReport* report, bool always) {
  Fusion(graph, always, report).run();
}

}  // namespace kiln::graph
