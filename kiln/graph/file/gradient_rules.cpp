// Rules of gradients: transposed convolutions, and models that differentiate inside (forces, for
// example). That of a recurrence is in no file, because a recurrence from a file keeps nothing for
// it.
#include "kiln/graph/file/layer_shapes.h"

namespace kiln::graph {

namespace {

void require_like(const RowCheck& row, size_t tensor, size_t like) {
  row.require_same_dtype(tensor, like);
  row.require_shape(tensor, row.shape(like), "a gradient in the shape of its result");
}

void check_two(const RowCheck& row) { require_like(row, 0, 1); }
void check_softmax(const RowCheck& row) {
  check_two(row);
  row.require_dim(0, 2);
}

// (weight, g, the shape of x) and (x, g, the shape of the weight).
void check_conv2d_input(const RowCheck& row) {
  row.require_same_dtype(0, 1);
  const Shape out = conv2d_shape(row, row.get<Shape>(2), row.shape(0), row.get<ConvOptions>(3));
  row.require_shape(1, out, "a tensor of the size that the convolution gives");
}
void check_conv2d_weight(const RowCheck& row) {
  row.require_same_dtype(0, 1);
  const Shape out = conv2d_shape(row, row.shape(0), row.get<Shape>(2), row.get<ConvOptions>(3));
  row.require_shape(1, out, "a tensor of the size that the convolution gives");
}

void check_conv3d_input(const RowCheck& row) {
  row.require_same_dtype(0, 1);
  const Shape out = conv3d_shape(row, row.get<Shape>(2), row.shape(0), row.get<Conv3dOptions>(3));
  row.require_shape(1, out, "a tensor of the size that the convolution gives");
}
void check_conv3d_weight(const RowCheck& row) {
  row.require_same_dtype(0, 1);
  const Shape out = conv3d_shape(row, row.shape(0), row.get<Shape>(2), row.get<Conv3dOptions>(3));
  row.require_shape(1, out, "a tensor of the size that the convolution gives");
}

// Which elements were the largest stands in a tensor: the row looks at it.
void check_max_pool_grad(const RowCheck& row) {
  const Shape &g = row.shape(0), &x = row.get<Shape>(2);
  checked_numel(x);
  row.require(row.dtype(1) == DType::i64 && row.shape(1) == g,
              "gradients, and places of dtype int64 in their shape");
  row.require_shape(0, pool2d_shape(row, x, row.get<PoolOptions>(3), true),
                    "a tensor of the size that the pool gives");
}
void check_avg_pool_grad(const RowCheck& row) {
  row.require_shape(0, pool2d_shape(row, row.get<Shape>(1), row.get<PoolOptions>(2), false),
                    "a tensor of the size that the pool gives");
}

void check_grid_input(const RowCheck& row) {
  row.require_same_dtype(0, 1);
  row.require_shape(
      0, grid_sample_shape(row, row.get<Shape>(2), row.shape(1), row.get<GridOptions>(3)),
      "a value for each point");
}
void check_grid_points(const RowCheck& row) {
  row.require_same_dtype(0, 1);
  row.require_same_dtype(0, 2);
  row.require_shape(0, grid_sample_shape(row, row.shape(1), row.shape(2), row.get<GridOptions>(3)),
                    "a value for each point");
}

void check_pad_edges(const RowCheck& row) {
  const Shape &g = row.shape(0), &before = row.get<Shape>(1), &behind = row.get<Shape>(2);
  const EdgeMode mode = row.get<EdgeMode>(3);
  bool fits = before.rank() == g.rank() && behind.rank() == g.rank();
  for (int d = 0; fits && d < g.rank(); ++d) {
    fits = before[d] >= 0 && behind[d] >= 0 && before[d] <= g[d] && behind[d] <= g[d] - before[d];
    if (!fits || before[d] + behind[d] == 0) continue;
    const int64_t inner = g[d] - before[d] - behind[d];
    const int64_t most = mode == EdgeMode::reflect    ? inner - 1
                         : mode == EdgeMode::circular ? inner
                                                      : g[d];
    fits = inner >= 1 && before[d] <= most && behind[d] <= most;
  }
  row.require(fits, "pads that the operand's dims have");
}

// Of norms: (g, x, ..) and numbers of the shape [C] from `first` to `last`.
void check_channels(const RowCheck& row, std::initializer_list<size_t> arguments) {
  check_two(row);
  row.require(row.rank(1) >= 2, "[N, C, ..]");
  for (const size_t i : arguments) {
    row.require_optional(i, {row.shape(1)[1]}, "a number for each channel", true);
  }
}
void check_batch_norm(const RowCheck& row) {
  check_channels(row, {2, 3, 4});
  row.require(row.shape(1).numel() > 0, "elements");
}
void check_batch_norm_inference_grad(const RowCheck& row) { check_channels(row, {2, 3, 4}); }
void check_group_norm_grad(const RowCheck& row) {
  check_channels(row, {2});
  const int64_t groups = row.get<int64_t>(5);
  const Shape& x = row.shape(1);
  row.require(groups >= 1 && x[1] % groups == 0, "groups of its channels");
  for (const size_t i : {size_t{3}, size_t{4}}) {
    row.require_optional(i, {x[0], groups}, "a number for each group");
  }
}
void check_layer_norm_grad(const RowCheck& row) {
  check_two(row);
  const int n = row.get<int>(5);
  const Shape& x = row.shape(1);
  row.require(n >= 1 && n <= x.rank(), "a number of the operand's dims");
  Shape last, rows = x;
  for (int d = x.rank() - n; d < x.rank(); ++d) {
    last.push_back(x[d]);
    rows[d] = 1;
  }
  row.require_optional(2, last, "a weight in the shape of the last dims");
  for (const size_t i : {size_t{3}, size_t{4}}) {
    row.require_optional(i, rows, "a number for each row");
  }
}

void check_cross_entropy_grad(const RowCheck& row) {
  const Shape& logits = row.shape(1);
  row.require(logits.rank() == 2 && logits[1] >= 1 && row.dtype(2) == DType::i64 &&
                  row.shape(2) == Shape{logits[0]},
              "logits [N, C] and classes [N] of dtype int64");
  for (const size_t i : {size_t{0}, size_t{3}}) {
    row.require_same_dtype(i, 1);
    row.require_shape(i, {logits[0]}, "a number for each row");
  }
}

// (g, classes, weight, C, ignored).
void check_nll_loss_grad(const RowCheck& row) {
  const Shape& g = row.shape(0);
  const int64_t classes = row.get<int64_t>(3);
  row.require(g.rank() == 2 && classes >= 0 && row.dtype(1) == DType::i64 && row.shape(1) == g,
              "a number for each place, classes of dtype int64, and how many there are");
  checked_numel({g[0], classes, g[1]});
  row.require_optional(2, {classes}, "a weight for each class");
}

// (g, x, targets, steps, lengths, blank).
void check_ctc_loss_grad(const RowCheck& row) {
  check_ctc(row, 1);
  row.require(row.shape(0) == Shape{row.shape(1)[1]}, "a number for each sequence");
  row.require_same_dtype(0, 1);
}

// (g, x, targets, steps, lengths, blank, clamp, softmax).
void check_rnnt_loss_grad(const RowCheck& row) {
  check_rnnt(row, 1);
  row.require(row.shape(0) == Shape{row.shape(1)[0]}, "a number for each sequence");
  row.require_same_dtype(0, 1);
}

// (g, q, k, v, mask, output, logsumexp).
void check_attention_grad(const RowCheck& row) {
  const Shape scores = check_attention(row, 1);
  Shape out = row.shape(1);
  out.back() = row.shape(3).back();
  for (const size_t i : {size_t{0}, size_t{5}}) {
    row.require_same_dtype(i, 1);
    row.require_shape(i, out, "a tensor [N, H, L, V]");
  }
  const DType sums = size_of(row.dtype(1)) == 2 ? DType::f32 : row.dtype(1);
  row.require(row.dtype(6) == sums && row.shape(6) == Shape{scores[0], scores[1], scores[2]},
              "a sum for each query");
}

constexpr Rule kGradientRules[] = {
    {kRow_float_conv2d_input_grad, check_conv2d_input},
    {kRow_float_conv2d_weight_grad, check_conv2d_weight},
    {kRow_float_conv3d_input_grad, check_conv3d_input},
    {kRow_float_conv3d_weight_grad, check_conv3d_weight},
    {kRow_float_relu_backward, check_two},
    {kRow_float_sigmoid_backward, check_two},
    {kRow_float_tanh_backward, check_two},
    {kRow_float_silu_backward, check_two},
    {kRow_float_gelu_backward, check_two},
    {kRow_float_softmax_backward, check_softmax},
    {kRow_float_log_softmax_backward, check_softmax},
    {kRow_float_max_pool2d_backward, check_max_pool_grad},
    {kRow_float_avg_pool2d_backward, check_avg_pool_grad},
    {kRow_float_grid_sample_input_grad, check_grid_input},
    {kRow_float_grid_sample_points_grad, check_grid_points},
    {kRow_float_pad_edges_backward, check_pad_edges},
    {kRow_float_batch_norm_backward, check_batch_norm},
    {kRow_float_batch_norm_inference_backward, check_batch_norm_inference_grad},
    {kRow_float_group_norm_backward, check_group_norm_grad},
    {kRow_float_layer_norm_backward, check_layer_norm_grad},
    {kRow_float_cross_entropy_backward, check_cross_entropy_grad},
    {kRow_float_nll_loss_backward, check_nll_loss_grad},
    {kRow_float_ctc_loss_backward, check_ctc_loss_grad},
    {kRow_float_rnnt_loss_backward, check_rnnt_loss_grad},
    {kRow_float_attention_backward, check_attention_grad},
};

}  // namespace

std::span<const Rule> gradient_rules() { return kGradientRules; }

}  // namespace kiln::graph
