#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "kiln/core/cache_size.h"
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
  Shape shape;
  int split = -1;  // dims before it are the matrix's rows; -1: no operand says
  std::vector<Node> nodes;
};

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
  // How an operand of this shape lies beside the common one, and where it must be split.
  struct Place {
    Source source;
    int split = -1;
  };
  static std::optional<Place> place_of(const Shape& x, const Shape& all) {
    if (x == all) return Place{Source::matrix};
    if (x.numel() == 1) return Place{Source::number};
    const int rank = all.rank();
    Shape padded = Shape::filled(rank, 1);
    for (int d = 0; d < x.rank(); ++d) padded[rank - x.rank() + d] = x[d];
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
    if (!y.row_major) return "not row-major";
    const char* why = nullptr;
    node.each_operand([&](const Operand& o) {
      const Value& x = graph_[o.value];
      if (o.value == node.results[0]) why = "it gives its operand";
      if (effects_.is_written(o.value)) why = "written in place";
      if (!x.row_major) why = "not row-major";
      if (!place_of(x.shape, y.shape)) why = "broadcast along a dim in the middle";
    });
    return why;
  }

  // The split that a node asks for; false when it asks for two.
  bool split_of(const Node& node, int& split) const {
    const Shape& shape = graph_[node.results[0]].shape;
    bool fits = true;
    node.each_operand([&](const Operand& o) {
      const Place place = *place_of(graph_[o.value].shape, shape);
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
    const Shape& shape = graph_[node.results[0]].shape;
    int key = -1;
    for (const auto& [k, group] : groups_) {
      int split = group.split;
      if (group.shape == shape && split_of(node, split)) key = k;
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
      groups_[key].shape = shape;
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
        } else if (graph_[o.value].shape == group.shape) {
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
    rows->shape = group.shape;
    const int split = group.split < 0 ? group.shape.rank() : group.split;
    for (int d = 0; d < group.shape.rank(); ++d) {
      (d < split ? rows->rows : rows->inner) *= group.shape[d];
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
          rows->sources.push_back(place_of(graph_[o.value].shape, group.shape)->source);
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
          concat("fused: ", rows->nodes.size(), " rows on ", group.shape, ": ", names));
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
