#include <algorithm>
#include <map>
#include <utility>

#include "kiln/graph/passes/passes.h"
#include "kiln/graph/passes/rewrite.h"

namespace kiln::graph {

namespace {

// Products of one tensor with several frozen weights, as queries, keys and values are: one product
// with all of them beside one another, whose result is cut. The weights are joined by rows that
// folding of constants runs.
class MergedProducts {
 public:
  MergedProducts(Graph& graph, PassReport* report)
      : graph_(graph), frozen_(graph), effects_(graph), report_(report) {}

  int run() {
    // Windows by strides would have to be found anew.
    int32_t most = 0;
    for (const Value& value : graph_.values) most = std::max(most, value.memory);
    by_strides_.assign(static_cast<size_t>(most) + 1, 0);
    for (const Node& node : graph_.nodes) {
      if (node.kind != NodeKind::as_strided && node.kind != NodeKind::reinterpret) continue;
      node.each_operand(
          [&](const Operand& o) { by_strides_[static_cast<size_t>(graph_[o.value].memory)] = 1; });
    }
    std::map<std::pair<ValueId, int32_t>, std::vector<size_t>> all;  // by operand and row
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (suits(node)) all[{operand_of(node, 0), node.row}].push_back(n);
    }
    std::map<size_t, std::vector<size_t>> merged;  // the first of a group: all of it
    std::vector<char> gone(graph_.nodes.size(), 0);
    for (const auto& [key, members] : all) {
      if (members.size() < 2) continue;
      for (const size_t n : members) gone[n] = 1;
      merged[members[0]] = members;
    }
    std::vector<Node> nodes = std::move(graph_.nodes), out;
    for (size_t n = 0; n < nodes.size(); ++n) {
      if (const auto found = merged.find(n); found != merged.end())
        merge(nodes, found->second, out);
      if (gone[n] == 0) out.push_back(std::move(nodes[n]));
    }
    graph_.nodes = std::move(out);
    if (report_ != nullptr) {
      for (const auto& [first, members] : merged) {
        report_->lines.push_back(concat("merged: ", members.size(), " products of one operand"));
      }
    }
    return static_cast<int>(merged.size());
  }

 private:
  bool suits(const Node& node) const {
    const bool linear = is_plain_row(node, kRow_float_linear);
    if (!linear && !is_plain_row(node, kRow_float_matmul)) return false;
    const ValueId x = operand_of(node, 0), weight = operand_of(node, 1), y = node.results[0];
    bool fits = frozen_(weight) && graph_[weight].shape.rank() == 2 && !effects_.is_written(x) &&
                !effects_.is_written(y) && !effects_.is_given_out(y) &&
                graph_[y].origin == Origin::node &&
                by_strides_[static_cast<size_t>(graph_[y].memory)] == 0;
    const ValueId bias = linear ? operand_of(node, 2) : kNoValue;
    return fits && (bias == kNoValue || frozen_(bias));
  }

  // A constant.
  ValueId zeros(int64_t size, ValueId like) {
    Value value;
    value.shape = {size};
    value.dtype = graph_[like].dtype;
    value.device = graph_[like].device;
    for (const Value& other : graph_.values)
      value.memory = std::max(value.memory, other.memory + 1);
    value.row_major = true;
    value.origin = Origin::constant;
    value.constant = kiln::detail::table_of(value.device)
                         .float_full(value.shape, Scalar(0.0), value.dtype, value.device);
    graph_.values.push_back(std::move(value));
    return static_cast<ValueId>(graph_.values.size()) - 1;
  }

  void merge(std::vector<Node>& nodes, const std::vector<size_t>& members, std::vector<Node>& out) {
    RowWriter writer(graph_, out);
    const Node& first = nodes[members[0]];
    const bool linear = first.row == kRow_float_linear;
    const ValueId x = operand_of(first, 0), like = operand_of(first, 1);
    const int out_dim = linear ? 0 : 1;
    std::vector<ValueId> weights, biases;
    std::vector<int64_t> sizes;
    bool any_bias = false;
    int64_t total = 0;
    for (const size_t n : members) {
      weights.push_back(operand_of(nodes[n], 1));
      sizes.push_back(graph_[weights.back()].shape[out_dim]);
      total += sizes.back();
      any_bias = any_bias || (linear && operand_of(nodes[n], 2) != kNoValue);
    }
    Shape shape = graph_[like].shape;
    const auto joined = [&](const std::vector<ValueId>& parts, int dim, const Shape& of) {
      return writer.add(kRow_float_cat,
                        {RowWriter::list(parts), RowWriter::attribute(Attribute(dim))}, of, like);
    };
    shape[out_dim] = total;
    const ValueId weight = joined(weights, out_dim, shape);
    ValueId bias = kNoValue;
    for (size_t i = 0; any_bias && i < members.size(); ++i) {
      const ValueId own = operand_of(nodes[members[i]], 2);
      biases.push_back(own != kNoValue ? own : zeros(sizes[i], like));
    }
    if (any_bias) bias = joined(biases, 0, Shape{total});
    Shape whole = graph_[first.results[0]].shape;
    const int last = whole.rank() - 1;
    whole[last] = total;
    std::vector<Argument> arguments{RowWriter::tensor(x), RowWriter::tensor(weight)};
    if (linear) arguments.push_back(RowWriter::tensor(bias));
    const ValueId product = writer.add(first.row, std::move(arguments), whole, first.results[0]);
    int64_t begin = 0;
    for (size_t i = 0; i < members.size(); ++i) {
      const ValueId y = nodes[members[i]].results[0];
      const Shape part = graph_[y].shape;
      writer.add(kRow_float_slice,
                 {RowWriter::tensor(product), RowWriter::attribute(Attribute(last)),
                  RowWriter::attribute(Range(begin, begin + sizes[i]))},
                 part, y);
      out.back().results = {y};
      // It, and every view of it, is a window of the product now.
      const int32_t own = graph_[y].memory;
      for (Value& value : graph_.values) {
        if (value.memory != own) continue;
        value.memory = graph_[product].memory;
        value.row_major = false;
      }
      begin += sizes[i];
    }
  }

  Graph& graph_;
  Frozen frozen_;
  Effects effects_;
  PassReport* report_;
  std::vector<char> by_strides_;
};

}  // namespace

int merge_products(Graph& graph, PassReport* report) { return MergedProducts(graph, report).run(); }

}  // namespace kiln::graph
