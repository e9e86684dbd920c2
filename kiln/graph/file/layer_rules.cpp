// Rules of the rows of layers: products, convolutions, norms, attention, recurrences, images.
#include "kiln/graph/file/layer_shapes.h"

namespace kiln::graph {

namespace {

void check_dim(const RowCheck& row) { row.require_dim(0, 1); }

void check_matmul(const RowCheck& row) {
  row.require_same_dtype(0, 1);
  const Shape &x = row.shape(0), &y = row.shape(1);
  row.require(x.rank() >= 2 && y.rank() >= 2 && x.back() == y[y.rank() - 2],
              "[.., n, k] and [.., k, m]");
  Shape a = x, b = y;
  a.erase(x.rank() - 1), a.erase(x.rank() - 2);
  b.erase(y.rank() - 1), b.erase(y.rank() - 2);
  Shape out = broadcast_shapes("matmul", a, b);
  row.require(out.rank() + 2 <= kMaxRank, "at most 12 dims");
  out.push_back(x[x.rank() - 2]);
  out.push_back(y.back());
  checked_numel(out);
}

Shape linear_shape(const RowCheck& row) {
  row.require_same_dtype(0, 1);
  row.require(row.rank(0) >= 1 && row.rank(1) == 2 && row.shape(0).back() == row.shape(1)[1],
              "[.., in] and a weight [out, in]");
  row.require_optional(2, {row.shape(1)[0]}, "a bias [out]");
  Shape out = row.shape(0);
  out.back() = row.shape(1)[0];
  checked_numel(out);
  return out;
}
void check_linear(const RowCheck& row) { linear_shape(row); }
void check_linear_activation(const RowCheck& row) {
  row.require_optional(3, linear_shape(row), "a residual in the shape of the result");
}

Shape conv2d_shape(const RowCheck& row, size_t options) {
  row.require_same_dtype(0, 1);
  row.require_optional(2, {row.rank(1) > 0 ? row.shape(1)[0] : 0}, "a bias for each channel");
  return conv2d_shape(row, row.shape(0), row.shape(1), row.get<ConvOptions>(options));
}
void check_conv2d(const RowCheck& row) { conv2d_shape(row, 3); }
void check_conv2d_activation(const RowCheck& row) {
  row.require_optional(3, conv2d_shape(row, 5), "a residual in the shape of the result");
}
// (x, expand, its bias, activation, weight, bias, activation, project, its bias, residual,
// activation, options).
void check_separable_block(const RowCheck& row) {
  Shape shape = row.shape(0);
  const auto convolve = [&](size_t weight, const ConvOptions& options) {
    row.require_same_dtype(0, weight);
    shape = conv2d_shape(row, shape, row.shape(weight), options);
    row.require_optional(weight + 1, {row.shape(weight)[0]}, "a bias for each channel");
  };
  if (row.has(1)) convolve(1, ConvOptions{});
  convolve(4, row.get<ConvOptions>(11));
  if (row.has(7)) convolve(7, ConvOptions{});
  row.require(row.has(7) || !(row.has(8) || row.has(9)), "a bias and a residual with their weight");
  row.require(row.has(1) || !row.has(2), "a bias with its weight");
  row.require_optional(9, shape, "a residual in the shape of the result");
}

// (x, weight, bias, activation, shape of the result, options).
void check_conv_transpose2d(const RowCheck& row) {
  row.require_same_dtype(0, 1);
  const Shape& out = row.get<Shape>(4);
  const Shape given = conv2d_shape(row, out, row.shape(1), row.get<ConvOptions>(5));
  row.require_shape(0, given, "a tensor of the size that the convolution gives");
  row.require_optional(2, {out[1]}, "a bias for each channel");
}
void check_conv3d(const RowCheck& row) {
  row.require_same_dtype(0, 1);
  row.require_optional(2, {row.rank(1) > 0 ? row.shape(1)[0] : 0}, "a bias for each channel");
  conv3d_shape(row, row.shape(0), row.shape(1), row.get<Conv3dOptions>(3));
}

void check_max_pool(const RowCheck& row) {
  pool2d_shape(row, row.shape(0), row.get<PoolOptions>(1), true);
}
void check_avg_pool(const RowCheck& row) {
  pool2d_shape(row, row.shape(0), row.get<PoolOptions>(1), false);
}
// Which places the windows have stands in the tensors: the row looks at them.
void check_window_argmax(const RowCheck& row) {
  const Shape &x = row.shape(0), &out = row.get<Shape>(3), &longest = row.get<Shape>(4);
  row.require(x.rank() == 5 && out.rank() == 3 && longest.rank() == 3,
              "[N, C, D, H, W], numbers and sizes of windows along three dims");
  const int64_t windows = checked_numel(out);
  checked_numel({out[0] + out[1] + out[2]});
  checked_numel({x[0], x[1], windows, checked_numel(longest)});
  bool fits = true;
  for (int d = 0; d < 3; ++d) fits = fits && longest[d] >= 1 && longest[d] <= x[d + 2];
  const int64_t starts = out[0] + out[1] + out[2];
  row.require(fits && row.dtype(1) == DType::i64 && row.dtype(2) == DType::i64 &&
                  row.rank(1) == 2 && row.shape(1)[1] == starts &&
                  (row.shape(1)[0] == 1 || row.shape(1)[0] == x[0] * x[1]) &&
                  row.shape(2) == Shape{starts},
              "where windows start and how long they are, of dtype int64");
}

void check_batch_norm(const RowCheck& row, size_t first, size_t last) {
  row.require(row.rank(0) >= 2, "[N, C, ..]");
  for (size_t i = first; i <= last; ++i) {
    row.require_optional(i, {row.shape(0)[1]}, "a number for each channel", true);
  }
}
void check_batch_norm_training(const RowCheck& row) {
  check_batch_norm(row, 1, 2);
  row.require(row.shape(0).numel() > 0, "elements");
}
void check_batch_norm_inference(const RowCheck& row) { check_batch_norm(row, 1, 4); }
void check_layer_norm(const RowCheck& row) {
  const int n = row.get<int>(3);
  row.require(n >= 1 && n <= row.rank(0), "a number of the operand's dims");
  Shape last;
  for (int d = row.rank(0) - n; d < row.rank(0); ++d) last.push_back(row.shape(0)[d]);
  row.require_optional(1, last, "a weight in the shape of the last dims");
  row.require_optional(2, last, "a bias in the shape of the last dims");
}
void check_group_norm(const RowCheck& row) {
  const int64_t groups = row.get<int64_t>(3);
  row.require(row.rank(0) >= 2 && groups >= 1 && row.shape(0)[1] % groups == 0,
              "[N, C, ..] and groups of its channels");
  row.require_optional(1, {row.shape(0)[1]}, "a weight for each channel");
  row.require_optional(2, {row.shape(0)[1]}, "a bias for each channel");
}

void check_attention(const RowCheck& row) { check_attention(row, 0); }

void check_recurrence(const RowCheck& row) {
  const RecurrenceOptions& o = row.get<RecurrenceOptions>(5);
  row.require(row.rank(0) == 2 && row.rank(1) == 2, "an input [rows, gates] and states [N, H]");
  const int64_t sequences = row.shape(1)[0], size = row.shape(1)[1];
  row.require(size <= kMostOption && row.shape(0)[1] == o.gates() * size,
              "as many gates as the cell has");
  row.require_same_dtype(0, 1);
  row.require_same_dtype(0, 3);
  row.require_shape(3, {o.gates() * size, size}, "a weight [gates, H]");
  row.require_optional(4, {o.gates() * size}, "a bias for each gate");
  row.require((o.cell == RecurrenceCell::lstm) == row.has(2), "a cell state for an LSTM alone");
  row.require_optional(2, row.shape(1), "a cell state in the shape of the hidden one");
  int64_t most = sequences, rows = 0;
  for (const int64_t n : o.batch_sizes) {
    row.require(n >= 0 && n <= most, "batch sizes that do not grow");
    most = n;
    rows += n;
  }
  row.require(rows == row.shape(0)[0], "batch sizes that sum to the rows");
}

void check_recurrent_cell(const RowCheck& row) {
  const int64_t gates_of_one = row.get<RecurrenceOptions>(7).gates();
  row.require(row.rank(0) == 2 && row.rank(1) == 2 && row.shape(0)[0] == row.shape(1)[0],
              "an input [N, I] and states [N, H]");
  const int64_t size = row.shape(1)[1];
  row.require(size <= kMostOption, "a state of a size that a weight can have");
  const int64_t gates = gates_of_one * size;
  for (const size_t i : {size_t{1}, size_t{3}, size_t{4}}) row.require_same_dtype(0, i);
  row.require_shape(3, {gates, row.shape(0)[1]}, "a weight [gates, I]");
  row.require_shape(4, {gates, size}, "a weight [gates, H]");
  row.require_optional(5, {gates}, "a bias for each gate");
  row.require_optional(6, {gates}, "a bias for each gate");
  row.require((row.get<RecurrenceOptions>(7).cell == RecurrenceCell::lstm) == row.has(2),
              "a cell state for an LSTM alone");
  row.require_optional(2, row.shape(1), "a cell state in the shape of the hidden one");
}

void check_cross_entropy(const RowCheck& row) {
  row.require(row.rank(0) == 2 && row.rank(1) == 1 && row.dtype(1) == DType::i64 &&
                  row.shape(0)[0] == row.shape(1)[0] && row.shape(0)[1] >= 1,
              "logits [N, C] and classes [N] of dtype int64");
}

void check_nll_loss(const RowCheck& row) {
  const Shape& x = row.shape(0);
  row.require(x.rank() == 3 && row.dtype(1) == DType::i64 && row.shape(1) == Shape{x[0], x[2]},
              "numbers [N, C, P] and classes [N, P] of dtype int64");
  row.require_optional(2, {x[1]}, "a weight for each class");
}

// (x, targets, steps, lengths, blank).
void check_ctc_loss(const RowCheck& row) { check_ctc(row, 0); }

// (x, targets, steps, lengths, blank, clamp, softmax).
void check_rnnt_loss(const RowCheck& row) { check_rnnt(row, 0); }

void check_resample(const RowCheck& row) {
  uint32_t seen = 0;
  Shape out = row.shape(0);
  for (const DimMap& m : *row.get<DimMaps>(1)) {
    row.require(m.dim >= 0 && m.dim < row.rank(0) && (seen >> m.dim & 1) == 0 &&
                    m.map.in == row.shape(0)[m.dim],
                "maps of distinct dims of the operand");
    for (int64_t o = 0; o < m.map.out; ++o) {
      const bool one =
          m.map.taps(o) == 1 &&
          m.map.weight[static_cast<size_t>(m.map.first[static_cast<size_t>(o)])] == 1.0;
      const bool picks = kind_of(row.dtype(0)) == Kind::integer || size_of(row.dtype(0)) == 2;
      row.require(one || (!picks && m.map.taps(o) >= 1), "maps that give each element a value");
    }
    seen |= uint32_t{1} << m.dim;
    out[m.dim] = m.map.out;
  }
  checked_numel(out);
}

void check_grid_sample(const RowCheck& row) {
  row.require_same_dtype(0, 1);
  grid_sample_shape(row, row.shape(0), row.shape(1), row.get<GridOptions>(2));
}

constexpr Rule kLayerRules[] = {
    {kRow_float_matmul, check_matmul},
    {kRow_int_matmul, check_matmul},
    {kRow_float_linear, check_linear},
    {kRow_float_linear_activation, check_linear_activation},
    {kRow_float_conv2d, check_conv2d},
    {kRow_float_conv2d_activation, check_conv2d_activation},
    {kRow_float_separable_block, check_separable_block},
    {kRow_float_conv_transpose2d, check_conv_transpose2d},
    {kRow_float_conv3d, check_conv3d},
    {kRow_float_max_pool2d, check_max_pool},
    {kRow_float_max_pool2d_values, check_max_pool},
    {kRow_float_avg_pool2d, check_avg_pool},
    {kRow_float_window_argmax, check_window_argmax},
    {kRow_float_softmax, check_dim},
    {kRow_float_log_softmax, check_dim},
    {kRow_float_batch_norm, check_batch_norm_training},
    {kRow_float_batch_norm_inference, check_batch_norm_inference},
    {kRow_float_layer_norm, check_layer_norm},
    {kRow_float_group_norm, check_group_norm},
    {kRow_float_attention, check_attention},
    {kRow_float_recurrence, check_recurrence},
    {kRow_float_recurrent_cell, check_recurrent_cell},
    {kRow_float_cross_entropy, check_cross_entropy},
    {kRow_float_nll_loss, check_nll_loss},
    {kRow_float_ctc_loss, check_ctc_loss},
    {kRow_float_rnnt_loss, check_rnnt_loss},
    {kRow_float_resample, check_resample},
    {kRow_int_resample, check_resample},
    {kRow_float_grid_sample, check_grid_sample},
};

}  // namespace

std::span<const Rule> layer_rules() { return kLayerRules; }

}  // namespace kiln::graph
