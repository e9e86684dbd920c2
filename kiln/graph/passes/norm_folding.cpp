#include <algorithm>
#include <iterator>
#include <optional>

#include "kiln/graph/passes/passes.h"
#include "kiln/graph/passes/rewrite.h"

namespace kiln::graph {

namespace {

// Note [Folded norms]
// In evaluation a batch norm is y = scale x + shift, with a number of each for a channel. Behind a
// product the scale goes into the product's weights, a row or a column of them for a channel, and
// the shift into its bias; before a product the scale goes into what each channel is multiplied
// with, and the product of the shift into the bias. What stands between the two may only move
// elements: convolutions of one and three dims are those of two with reshapes and permutations
// around them. The rows that compute the new weights are put into the graph, and folding of
// constants runs them.

// Where the channels are behind a row that moves elements, when they were dim `dim` before it.
std::optional<int> moved(const Graph& graph, const Node& node, int dim) {
  const Shape& from = graph[operand_of(node, 0)].shape;
  const Shape& to = graph[node.results[0]].shape;
  if (node.row == kRow_float_contiguous) return dim;
  if (node.row == kRow_float_permute) {
    const auto& dims = std::get<Dims>(node.arguments[1].attribute);
    for (int d = 0; d < dims.rank(); ++d) {
      if (dims[d] == dim) return d;
    }
    return std::nullopt;
  }
  int64_t before = 1, until = 1;
  for (int d = 0; d < dim; ++d) before *= from[d];
  for (int d = 0; d < to.rank(); ++d) {
    if (until == before && to[d] == from[dim]) return d;
    until *= to[d];
  }
  return std::nullopt;
}

bool moves(const Node& node) {
  return is_plain_row(node, kRow_float_reshape) || is_plain_row(node, kRow_float_permute) ||
         is_plain_row(node, kRow_float_contiguous);
}

// [1, .., n, .., 1] with n at `dim`.
Shape along(int rank, int dim, int64_t n) {
  Shape out = Shape::filled(rank, 1);
  out[dim] = n;
  return out;
}

class NormFolding {
 public:
  NormFolding(Graph& graph, PassReport* report)
      : graph_(graph), frozen_(graph), effects_(graph), report_(report) {}

  int run() {
    nodes_ = std::move(graph_.nodes);
    uses_.assign(graph_.values.size(), 0);
    made_by_.assign(graph_.values.size(), -1);
    for (size_t n = 0; n < nodes_.size(); ++n) {
      nodes_[n].each_operand([&](const Operand& o) { ++uses_[static_cast<size_t>(o.value)]; });
      for (const ValueId id : nodes_[n].results) made_by_[static_cast<size_t>(id)] = int(n);
    }
    for (const ValueId id : graph_.outputs) ++uses_[static_cast<size_t>(id)];
    before_.resize(nodes_.size());
    gone_.assign(nodes_.size(), 0);
    for (size_t n = 0; n < nodes_.size(); ++n) {
      if (is_norm(nodes_[n]) && (fold_behind(n) || fold_before(n))) ++folded_;
    }
    std::vector<Node> out;
    for (size_t n = 0; n < nodes_.size(); ++n) {
      std::ranges::move(before_[n], std::back_inserter(out));
      if (gone_[n] == 0) {
        nodes_[n].each_operand([&](Operand& o) { o.value = now(o.value); });
        for (ValueId& id : nodes_[n].results) id = now(id);  // a write in place gives its operand
        out.push_back(std::move(nodes_[n]));
      }
    }
    for (ValueId& id : graph_.outputs) id = now(id);
    graph_.nodes = std::move(out);
    if (report_ != nullptr && folded_ != 0) {
      report_->lines.push_back(concat("norms: ", folded_, " folded into products"));
    }
    return folded_;
  }

 private:
  // (x, mean, var, weight, bias, eps), with numbers that nobody changes: in x's dtype, or in f32
  // where that has 16 bits.
  bool is_norm(const Node& node) const {
    if (!is_plain_row(node, kRow_float_batch_norm_inference)) return false;
    const Value& x = graph_[operand_of(node, 0)];
    bool fits = x.shape.rank() >= 2;
    for (size_t i = 1; i < 5; ++i) {
      const ValueId id = operand_of(node, i);
      if (id == kNoValue) {
        fits = fits && i > 2;
      } else {
        const DType dtype = graph_[id].dtype;
        fits = fits && frozen_(id) && (dtype == x.dtype || dtype == wide(x.dtype));
      }
    }
    return fits;
  }
  // Whether nobody but one node sees a value.
  bool is_passed_on(ValueId id) const {
    return uses_[static_cast<size_t>(id)] == 1 && graph_[id].origin == Origin::node &&
           !effects_.is_written(id);
  }
  bool is_weight(ValueId id, DType dtype) const { return frozen_(id) && graph_[id].dtype == dtype; }

  // What new weights are computed in, and rounded from once.
  static DType wide(DType dtype) {
    return dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype;
  }
  ValueId cast(RowWriter& writer, ValueId id, DType dtype) const {
    if (graph_[id].dtype == dtype) return id;
    const Shape shape = graph_[id].shape;
    const ValueId out = writer.add(kRow_float_cast,
                                   {RowWriter::tensor(id), RowWriter::attribute(dtype)}, shape, id);
    graph_[out].dtype = dtype;
    return out;
  }
  ValueId widened(RowWriter& writer, ValueId id) const {
    return cast(writer, id, wide(graph_[id].dtype));
  }

  struct Affine {
    ValueId scale, shift;  // [C], wide
  };
  Affine affine_of(const Node& norm, RowWriter& writer) const {
    const auto operand = [&](size_t i) {
      const ValueId id = operand_of(norm, i);
      return id == kNoValue ? id : widened(writer, id);
    };
    const ValueId mean = operand(1), var = operand(2), weight = operand(3), bias = operand(4);
    const Shape shape = graph_[var].shape;
    const double eps = std::get<double>(norm.arguments[5].attribute);
    const ValueId wider =
        writer.add(kRow_float_add_scalar,
                   {RowWriter::tensor(var), RowWriter::attribute(Scalar(eps))}, shape, var);
    Affine out{};
    out.scale = writer.add(kRow_float_rsqrt, {RowWriter::tensor(wider)}, shape, var);
    if (weight != kNoValue) out.scale = writer.binary(kRow_float_mul, out.scale, weight);
    const ValueId moved_mean = writer.binary(kRow_float_mul, mean, out.scale);
    out.shift = bias != kNoValue ? writer.binary(kRow_float_sub, bias, moved_mean)
                                 : writer.add(kRow_float_neg, {RowWriter::tensor(moved_mean)},
                                              shape, moved_mean);
    return out;
  }

  // norm(product(x)): from the norm back to the product, over rows that move elements and one that
  // adds a bias.
  bool fold_behind(size_t n) {
    const Node& norm = nodes_[n];
    const DType dtype = graph_[operand_of(norm, 0)].dtype;
    std::vector<size_t> between;  // the last first
    ValueId id = operand_of(norm, 0);
    size_t base = 0;
    int bias_at = -1;  // the addition among them
    for (;;) {
      if (!is_passed_on(id) || made_by_[static_cast<size_t>(id)] < 0) return false;
      base = static_cast<size_t>(made_by_[static_cast<size_t>(id)]);
      const Node& node = nodes_[base];
      if (gone_[base] != 0) return false;
      if (is_plain_row(node, kRow_float_add) && bias_at < 0 &&
          is_weight(operand_of(node, 1), dtype) &&
          graph_[operand_of(node, 0)].shape == graph_[id].shape) {
        bias_at = static_cast<int>(between.size());
      } else if (!moves(node)) {
        break;
      }
      between.push_back(base);
      id = operand_of(node, 0);
    }
    Node& product = nodes_[base];
    const bool linear = is_plain_row(product, kRow_float_linear);
    const bool conv =
        is_plain_row(product, kRow_float_conv2d) || is_plain_row(product, kRow_float_conv3d);
    const bool has_bias = linear || conv || is_plain_row(product, kRow_float_conv_transpose2d);
    const bool gradient = is_plain_row(product, kRow_float_conv2d_input_grad) ||
                          is_plain_row(product, kRow_float_conv3d_input_grad);
    if (!has_bias && !gradient) return false;
    const bool transposed = !linear && !conv;
    if (transposed && has_bias &&
        std::get<Activation>(product.arguments[3].attribute) != Activation::none) {
      return false;
    }
    const size_t weight_at = gradient ? 0 : 1;
    if (!is_weight(operand_of(product, weight_at), dtype)) return false;
    if (has_bias && operand_of(product, 2) != kNoValue &&
        !is_weight(operand_of(product, 2), dtype)) {
      return false;
    }
    // The product's channels must be the norm's.
    int dim = linear ? graph_[id].shape.rank() - 1 : 1;
    const int64_t channels = graph_[id].shape[dim];
    if (channels != graph_[operand_of(norm, 1)].shape[0]) return false;
    std::optional<Shape> bias_shape;
    for (size_t i = between.size(); i-- > 0;) {
      const Node& node = nodes_[between[i]];
      if (static_cast<int>(i) == bias_at) {
        const Shape& bias = graph_[operand_of(node, 1)].shape;
        const int rank = graph_[node.results[0]].shape.rank(), at = dim - (rank - bias.rank());
        if (at < 0 || bias.numel() != channels || bias[at] != channels) return false;
        bias_shape = bias;
        continue;
      }
      const std::optional<int> next = moved(graph_, node, dim);
      if (!next) return false;
      dim = *next;
    }
    if (dim != 1) return false;

    RowWriter writer(graph_, before_[base]);
    const Affine affine = affine_of(norm, writer);
    const ValueId weight = operand_of(product, weight_at);
    product.arguments[weight_at] =
        RowWriter::tensor(transposed ? scaled_transposed(writer, product, weight, affine.scale)
                                     : scaled(writer, weight, affine.scale));
    if (bias_at >= 0) {
      // b + product: the norm's shift comes with it.
      Node& add = nodes_[between[static_cast<size_t>(bias_at)]];
      const Shape flat = graph_[affine.scale].shape;
      const ValueId old = widened(writer, writer.reshape(operand_of(add, 1), flat));
      const ValueId sum = writer.binary(
          kRow_float_add, writer.binary(kRow_float_mul, old, affine.scale), affine.shift);
      add.arguments[1] = RowWriter::tensor(writer.reshape(cast(writer, sum, dtype), *bias_shape));
    }
    if (has_bias && (bias_at < 0 || operand_of(product, 2) != kNoValue)) {
      ValueId bias = operand_of(product, 2);
      if (bias != kNoValue) {
        bias = writer.binary(kRow_float_mul, widened(writer, bias), affine.scale);
      }
      if (bias_at < 0) {
        bias = bias == kNoValue ? affine.shift : writer.binary(kRow_float_add, bias, affine.shift);
      }
      product.arguments[2] = RowWriter::tensor(cast(writer, bias, dtype));
    }
    if (gradient && bias_at < 0) {
      // It has no bias: the norm becomes an addition.
      Node& here = nodes_[n];
      const int rank = graph_[operand_of(here, 0)].shape.rank();
      const ValueId shift =
          writer.reshape(cast(writer, affine.shift, dtype), along(rank, 1, channels));
      const ValueId x = operand_of(here, 0);
      here.row = kRow_float_add;
      here.name = row_name(here.row);
      here.arguments = {RowWriter::tensor(x), RowWriter::tensor(shift)};
      return true;
    }
    replace(n);
    return true;
  }

  // Weights [O, ..] times a number for each O.
  ValueId scaled(RowWriter& writer, ValueId weight, ValueId scale) const {
    const Shape shape = graph_[weight].shape;
    const ValueId product = writer.binary(kRow_float_mul, widened(writer, weight),
                                          writer.reshape(scale, along(shape.rank(), 0, shape[0])));
    return cast(writer, product, graph_[weight].dtype);
  }
  // Weights [C, O / groups, K..] of a transposed convolution.
  ValueId scaled_transposed(RowWriter& writer, const Node& product, ValueId weight,
                            ValueId scale) const {
    const Shape shape = graph_[weight].shape;
    const Attribute& options = product.arguments.back().attribute;
    const auto* volume = std::get_if<Conv3dOptions>(&options);
    const int64_t groups =
        volume != nullptr ? volume->groups : std::get<ConvOptions>(options).groups;
    const ValueId pieces = writer.reshape(
        widened(writer, weight), {groups, shape[0] / groups, shape[1],
                                  shape.numel() / std::max<int64_t>(1, shape[0] * shape[1])});
    const ValueId by = writer.reshape(scale, {groups, 1, shape[1], 1});
    const ValueId product_of_pieces = writer.binary(kRow_float_mul, pieces, by);
    return cast(writer, writer.reshape(product_of_pieces, shape), graph_[weight].dtype);
  }

  // product(norm(x)), for a product that sees x alone: no padding, whose zeros no norm has moved.
  bool fold_before(size_t n) {
    const Node& norm = nodes_[n];
    const ValueId given = norm.results[0];
    if (!is_passed_on(given)) return false;
    const auto user =
        std::find_if(nodes_.begin() + static_cast<int64_t>(n), nodes_.end(), [&](const Node& node) {
          bool reads = false;
          node.each_operand([&](const Operand& o) { reads |= o.value == given; });
          return reads;
        });
    if (user == nodes_.end() || user->arguments.empty() || user->arguments[0].operands.empty() ||
        operand_of(*user, 0) != given) {
      return false;
    }
    const bool linear = is_plain_row(*user, kRow_float_linear) && graph_[given].shape.rank() == 2;
    const auto sees_it_alone = [](const auto& options) {
      return options.groups == 1 &&
             std::ranges::all_of(options.padding, [](int64_t n) { return n == 0; });
    };
    const bool conv = (is_plain_row(*user, kRow_float_conv2d) &&
                       sees_it_alone(std::get<ConvOptions>(user->arguments[3].attribute))) ||
                      (is_plain_row(*user, kRow_float_conv3d) &&
                       sees_it_alone(std::get<Conv3dOptions>(user->arguments[3].attribute)));
    if (!linear && !conv) return false;
    const DType dtype = graph_[given].dtype;
    const ValueId weight = operand_of(*user, 1), bias = operand_of(*user, 2);
    if (!is_weight(weight, dtype) || (bias != kNoValue && !is_weight(bias, dtype))) return false;
    const Shape shape = graph_[weight].shape;  // [O, C, K..]
    RowWriter writer(graph_, before_[n]);
    const Affine affine = affine_of(norm, writer);
    const int64_t out = shape[0], in = shape[1];
    const int64_t kernel = shape.numel() / std::max<int64_t>(1, out * in);
    // The product of the shift: [1, C] spread to [1, C K], with weights as [O, C K].
    const ValueId spread = writer.add(kRow_float_expand,
                                      {RowWriter::tensor(writer.reshape(affine.shift, {in, 1})),
                                       RowWriter::attribute(Shape{in, kernel})},
                                      Shape{in, kernel}, affine.shift);
    const ValueId wide_weight = widened(writer, weight);
    const ValueId wide_bias = bias == kNoValue ? bias : widened(writer, bias);
    const ValueId moved_bias =
        writer.add(kRow_float_linear,
                   {RowWriter::tensor(writer.reshape(spread, {1, in * kernel})),
                    RowWriter::tensor(writer.reshape(wide_weight, {out, in * kernel})),
                    RowWriter::tensor(wide_bias)},
                   Shape{1, out}, wide_weight);
    const ValueId scaled_weight = writer.binary(
        kRow_float_mul, wide_weight, writer.reshape(affine.scale, along(shape.rank(), 1, in)));
    user->arguments[2] = RowWriter::tensor(writer.reshape(cast(writer, moved_bias, dtype), {out}));
    user->arguments[1] = RowWriter::tensor(cast(writer, scaled_weight, dtype));
    replace(n);
    return true;
  }

  // Who reads the norm's result reads its operand.
  void replace(size_t n) {
    gone_[n] = 1;
    const ValueId x = operand_of(nodes_[n], 0), y = nodes_[n].results[0];
    instead_.resize(graph_.values.size(), kNoValue);
    instead_[static_cast<size_t>(y)] = x;
    uses_[static_cast<size_t>(x)] = uses_[static_cast<size_t>(y)];
  }
  ValueId now(ValueId id) const {
    while (static_cast<size_t>(id) < instead_.size() && id != kNoValue &&
           instead_[static_cast<size_t>(id)] != kNoValue) {
      id = instead_[static_cast<size_t>(id)];
    }
    return id;
  }

  Graph& graph_;
  Frozen frozen_;
  Effects effects_;
  PassReport* report_;
  std::vector<Node> nodes_;
  std::vector<std::vector<Node>> before_;  // rows that come before a node
  std::vector<char> gone_;
  std::vector<int> uses_, made_by_;
  std::vector<ValueId> instead_;
  int folded_ = 0;
};

}  // namespace

int fold_norms(Graph& graph, PassReport* report) { return NormFolding(graph, report).run(); }

}  // namespace kiln::graph
