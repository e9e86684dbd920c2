#include <algorithm>
#include <optional>

#include "kiln/graph/passes/passes.h"
#include "kiln/graph/passes/rewrite.h"

namespace kiln::graph {

namespace {

// An activation behind a linear layer, and a residual that is added to it, become part of the
// layer's row: float_linear_activation gives the numbers of the rows one after another. So does
// float_conv2d_activation, where the residual is added before the activation, and
// float_conv_transpose2d, which takes no residual. An activation is also found behind reshapes, as
// convolutions of one dim have them.
std::optional<Activation> activation_of(const Node& node) {
  if (node.kind != NodeKind::row || node.has_effect()) return std::nullopt;
  switch (node.row) {
    case kRow_float_relu:
      return Activation::relu;
    case kRow_float_gelu:
      return std::get<bool>(node.arguments[1].attribute) ? Activation::gelu_tanh : Activation::gelu;
    case kRow_float_silu:
      return Activation::silu;
    case kRow_float_tanh:
      return Activation::tanh;
    case kRow_float_sigmoid:
      return Activation::sigmoid;
    case kRow_float_unary: {
      const auto& f = std::get<UnaryFunction>(node.arguments[1].attribute);
      using Type = UnaryFunction::Type;
      if (f.type == Type::hardtanh && f.a == 0.0 && f.b == 6.0) return Activation::relu6;
      if (f.type == Type::hardswish) return Activation::hardswish;
      if (f.type == Type::hardsigmoid) return Activation::hardsigmoid;
      return std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

class Epilogues {
 public:
  Epilogues(Graph& graph, PassReport* report)
      : graph_(graph), effects_(graph), uses_(uses_of(graph)), report_(report) {}

  void run() {
    std::vector<Node>& nodes = graph_.nodes;
    user_.assign(graph_.values.size(), -1);
    for (size_t n = 0; n < nodes.size(); ++n) {
      nodes[n].each_operand(
          [&](const Operand& o) { user_[static_cast<size_t>(o.value)] = int(n); });
    }
    gone_.assign(nodes.size(), 0);
    int linear = 0, conv = 0;
    for (size_t n = 0; n < nodes.size(); ++n) {
      if (gone_[n] != 0) continue;
      if (is_plain_row(nodes[n], kRow_float_linear)) {
        linear += join(n, kRow_float_linear_activation);
      } else if (is_plain_row(nodes[n], kRow_float_conv2d)) {
        conv += join(n, kRow_float_conv2d_activation);
      } else if (is_plain_row(nodes[n], kRow_float_conv_transpose2d)) {
        conv += join_activation(n);
      }
    }
    std::vector<Node> kept;
    for (size_t n = 0; n < nodes.size(); ++n) {
      if (gone_[n] == 0) kept.push_back(std::move(nodes[n]));
    }
    nodes = std::move(kept);
    if (report_ == nullptr) return;
    if (linear != 0) {
      report_->lines.push_back(concat("epilogues: ", linear, " rows joined to linear layers"));
    }
    if (conv != 0) {
      report_->lines.push_back(concat("epilogues: ", conv, " rows joined to convolutions"));
    }
  }

 private:
  // The one node that reads a value, when nothing else may see it. One that was joined to another
  // row before is that row's.
  int follower(ValueId id) const {
    const bool hidden = uses_[static_cast<size_t>(id)] == 1 && !effects_.is_written(id) &&
                        graph_[id].origin == Origin::node;
    const int user = hidden ? user_[static_cast<size_t>(id)] : -1;
    return user >= 0 && gone_[static_cast<size_t>(user)] != 0 ? -1 : user;
  }

  // The activation behind reshapes of `id`, which nobody else sees: it becomes theirs to give its
  // result, and the caller's to compute.
  std::optional<Activation> take_behind_reshapes(ValueId id) {
    int last = -1, next = follower(id);
    while (next >= 0 && is_plain_row(graph_.nodes[static_cast<size_t>(next)], kRow_float_reshape)) {
      last = next;
      next = follower(graph_.nodes[static_cast<size_t>(last)].results[0]);
    }
    if (last < 0 || next < 0) return std::nullopt;
    const Node& end = graph_.nodes[static_cast<size_t>(next)];
    const std::optional<Activation> found = activation_of(end);
    if (!found) return std::nullopt;
    graph_.nodes[static_cast<size_t>(last)].results = end.results;
    gone_[static_cast<size_t>(next)] = 1;
    return found;
  }

  // The other operand of an addition in which `id` keeps its shape and dtype; it must be there
  // before.
  ValueId residual_of(const Node& node, ValueId id) const {
    if (!is_plain_row(node, kRow_float_add)) return kNoValue;
    const ValueId a = operand_of(node, 0), b = operand_of(node, 1);
    const ValueId other = a == id ? b : a;
    if (other == id || !(graph_[other].shape == graph_[id].shape) ||
        graph_[other].dtype != graph_[id].dtype) {
      return kNoValue;
    }
    return other;
  }

  // Joins what follows node n to it, as node of that row; how many rows.
  int join(size_t n, Row row) {
    std::vector<Node>& nodes = graph_.nodes;
    ValueId y = nodes[n].results[0];
    Activation activation = Activation::none;
    ValueId residual = kNoValue;
    std::vector<size_t> rows;
    const auto take_activation = [&] {
      const int next = follower(y);
      if (next < 0) return;
      if (const auto found = activation_of(nodes[static_cast<size_t>(next)])) {
        activation = *found;
        rows.push_back(static_cast<size_t>(next));
        y = nodes[rows.back()].results[0];
      }
    };
    const auto take_residual = [&] {
      const int next = follower(y);
      if (next < 0) return;
      residual = residual_of(nodes[static_cast<size_t>(next)], y);
      if (residual == kNoValue) return;
      rows.push_back(static_cast<size_t>(next));
      y = nodes[rows.back()].results[0];
    };
    const bool conv = row == kRow_float_conv2d_activation;
    if (conv) take_residual();
    take_activation();
    if (!conv) take_residual();
    if (!rows.empty() && changes_between(graph_, n, rows.back())) return 0;
    auto joined = static_cast<int>(rows.size());
    if (activation == Activation::none && (conv || residual == kNoValue)) {
      if (const auto found = take_behind_reshapes(y)) {
        activation = *found;
        ++joined;
      }
    }
    if (joined == 0) return 0;
    Node& last = nodes[rows.empty() ? n : rows.back()];
    const ValueId result = last.results[0];
    Node node;
    node.row = row;
    node.name = row_name(node.row);
    node.arguments = nodes[n].arguments;
    const Argument options = node.arguments.back();
    if (conv) node.arguments.pop_back();
    node.arguments.push_back(RowWriter::tensor(residual));
    node.arguments.push_back(RowWriter::attribute(activation));
    if (conv) node.arguments.push_back(options);
    node.results = {result};
    if (!rows.empty()) gone_[n] = 1;
    last = std::move(node);
    for (size_t i = 0; i + 1 < rows.size(); ++i) gone_[rows[i]] = 1;
    return joined;
  }

  // An activation behind a transposed convolution, which has a place for it.
  int join_activation(size_t n) {
    Node& node = graph_.nodes[n];
    const int next = follower(node.results[0]);
    if (next < 0 || std::get<Activation>(node.arguments[3].attribute) != Activation::none) return 0;
    Node& last = graph_.nodes[static_cast<size_t>(next)];
    const std::optional<Activation> activation = activation_of(last);
    if (!activation || changes_between(graph_, n, static_cast<size_t>(next))) return 0;
    node.arguments[3] = RowWriter::attribute(*activation);
    const std::vector<ValueId> results = last.results;
    last = std::move(node);
    last.results = results;
    gone_[n] = 1;
    return 1;
  }

  Graph& graph_;
  Effects effects_;
  std::vector<int> uses_, user_;
  std::vector<char> gone_;  // nodes that are part of a later one
  PassReport* report_;
};

}  // namespace

void join_epilogues(Graph& graph, PassReport* report) { Epilogues(graph, report).run(); }

}  // namespace kiln::graph
