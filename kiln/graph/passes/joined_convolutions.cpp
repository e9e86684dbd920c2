#include <algorithm>
#include <optional>
#include <utility>

#include "kiln/graph/passes/passes.h"
#include "kiln/graph/passes/rewrite.h"

namespace kiln::graph {

namespace {

// A convolution as a row, whatever it ends with.
struct Convolution {
  ConvOptions options;
  Activation activation = Activation::none;
  ValueId residual = kNoValue;
};

std::optional<Convolution> convolution_of(const Node& node) {
  if (is_plain_row(node, kRow_float_conv2d)) {
    return Convolution{std::get<ConvOptions>(node.arguments[3].attribute)};
  }
  if (is_plain_row(node, kRow_float_conv2d_activation)) {
    return Convolution{std::get<ConvOptions>(node.arguments[5].attribute),
                       std::get<Activation>(node.arguments[4].attribute), operand_of(node, 3)};
  }
  return std::nullopt;
}

bool is_pointwise(const Convolution& c, const Shape& weight) {
  return weight[2] == 1 && weight[3] == 1 && c.options.groups == 1 &&
         c.options.stride == IntPair{1, 1} && c.options.padding == IntPair{0, 0};
}

bool is_depthwise(const Convolution& c, const Shape& weight) {
  return weight[1] == 1 && weight[0] == c.options.groups && weight[2] * weight[3] > 1 &&
         c.residual == kNoValue;
}

class JoinedConvolutions {
 public:
  explicit JoinedConvolutions(Graph& graph)
      : graph_(graph),
        effects_(graph),
        uses_(uses_of(graph)),
        made_by_(graph.values.size(), -1),
        gone_(graph.nodes.size(), 0) {}

  // How many blocks there are then.
  int run() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      for (const ValueId id : graph_.nodes[n].results) {
        if (id != kNoValue) made_by_[static_cast<size_t>(id)] = static_cast<int>(n);
      }
      if (!join_before(n)) join_behind(n);
    }
    int blocks = 0;
    std::vector<Node> kept;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (gone_[n] != 0) continue;
      blocks += is_plain_row(graph_.nodes[n], kRow_float_separable_block) ? 1 : 0;
      kept.push_back(std::move(graph_.nodes[n]));
    }
    graph_.nodes = std::move(kept);
    return blocks;
  }

 private:
  const Shape& weight_of(const Node& node) const { return graph_[operand_of(node, 1)].shape; }

  // The node that makes what convolution n reads, when n alone reads it and it can move to n.
  std::optional<size_t> node_before(size_t n) const {
    const ValueId between = operand_of(graph_.nodes[n], 0);
    const int from = made_by_[static_cast<size_t>(between)];
    if (from < 0 || uses_[static_cast<size_t>(between)] != 1 || effects_.is_written(between) ||
        changes_between(graph_, static_cast<size_t>(from), n)) {
      return std::nullopt;
    }
    return static_cast<size_t>(from);
  }

  void replace(size_t n, size_t before, std::vector<Argument> arguments) {
    Node& node = graph_.nodes[n];
    Node block;
    block.row = kRow_float_separable_block;
    block.name = row_name(block.row);
    block.arguments = std::move(arguments);
    block.results = node.results;
    node = std::move(block);
    gone_[before] = 1;
  }

  // The arguments of a block that has no last convolution yet: of a depthwise one, or of a block.
  std::optional<std::vector<Argument>> block_of(const Node& node) const {
    if (is_plain_row(node, kRow_float_separable_block) && operand_of(node, 7) == kNoValue) {
      return node.arguments;
    }
    const std::optional<Convolution> c = convolution_of(node);
    if (!c || !is_depthwise(*c, weight_of(node))) return std::nullopt;
    const Argument none = RowWriter::tensor(kNoValue);
    const Argument no_activation = RowWriter::attribute(Activation::none);
    const std::vector<Argument>& a = node.arguments;
    return std::vector<Argument>{a[0],
                                 none,
                                 none,
                                 no_activation,
                                 a[1],
                                 a[2],
                                 RowWriter::attribute(c->activation),
                                 none,
                                 none,
                                 none,
                                 no_activation,
                                 RowWriter::attribute(c->options)};
  }

  // A convolution of 1 x 1, and the depthwise one n behind it.
  bool join_before(size_t n) {
    std::optional<std::vector<Argument>> block = block_of(graph_.nodes[n]);
    if (!block || (*block)[1].operands[0].value != kNoValue) return false;
    const std::optional<size_t> from = node_before(n);
    if (!from) return false;
    const Node& before = graph_.nodes[*from];
    const std::optional<Convolution> wide = convolution_of(before);
    if (!wide || !is_pointwise(*wide, weight_of(before)) || wide->residual != kNoValue)
      return false;
    std::copy_n(before.arguments.begin(), 3, block->begin());
    (*block)[3] = RowWriter::attribute(wide->activation);
    replace(n, *from, std::move(*block));
    return true;
  }

  // A depthwise convolution, or a block that ends with it, and the one of 1 x 1 n behind it.
  void join_behind(size_t n) {
    const Node& node = graph_.nodes[n];
    const std::optional<Convolution> c = convolution_of(node);
    if (!c || !is_pointwise(*c, weight_of(node))) return;
    const std::optional<size_t> from = node_before(n);
    if (!from) return;
    std::optional<std::vector<Argument>> block = block_of(graph_.nodes[*from]);
    if (!block) return;
    (*block)[7] = node.arguments[1];
    (*block)[8] = node.arguments[2];
    (*block)[9] = RowWriter::tensor(c->residual);
    (*block)[10] = RowWriter::attribute(c->activation);
    replace(n, *from, std::move(*block));
  }

  Graph& graph_;
  const Effects effects_;
  const std::vector<int> uses_;
  std::vector<int> made_by_;  // nodes, of values
  std::vector<char> gone_;    // nodes that are part of a later one
};

}  // namespace

void join_convolutions(Graph& graph, PassReport* report) {
  const int blocks = JoinedConvolutions(graph).run();
  if (blocks == 0 || report == nullptr) return;
  report->lines.push_back(
      concat("convolutions: ", blocks, " depthwise ones joined to those of 1 x 1 around them"));
}

}  // namespace kiln::graph
