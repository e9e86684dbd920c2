// Rules of the rows of layers: products, convolutions, norms, attention, recurrences, images.
#include "kiln/graph/file/rules.h"

namespace kiln::graph {

namespace {

constexpr int64_t kMostOption = int64_t{1} << 30;

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

bool all_within(const IntPair& v, int64_t low) {
  return v[0] >= low && v[1] >= low && v[0] <= kMostOption && v[1] <= kMostOption;
}

Shape conv2d_shape(const RowCheck& row, size_t options) {
  row.require_same_dtype(0, 1);
  const ConvOptions& o = row.get<ConvOptions>(options);
  const Shape &x = row.shape(0), &w = row.shape(1);
  row.require(x.rank() == 4 && w.rank() == 4, "[N, C, H, W] and a weight of four dims");
  row.require(all_within(o.stride, 1) && all_within(o.padding, 0) && all_within(o.dilation, 1) &&
                  o.groups >= 1 && x[1] % o.groups == 0 && w[0] % o.groups == 0 &&
                  x[1] / o.groups == w[1] && w[2] >= 1 && w[3] >= 1 && w[2] <= kMostOption &&
                  w[3] <= kMostOption,
              "options that fit the weight");
  Shape out{x[0], w[0]};
  for (int d = 0; d < 2; ++d) {
    const auto i = static_cast<size_t>(d);
    const int64_t n =
        conv_output_size(x[d + 2], w[d + 2], o.stride[i], o.padding[i], o.dilation[i]);
    row.require(x[d + 2] + 2 * o.padding[i] >= o.dilation[i] * (w[d + 2] - 1) + 1 && n >= 0,
                "a kernel that is no larger than the padded image");
    out.push_back(n);
  }
  row.require_optional(2, {w[0]}, "a bias for each channel");
  checked_numel(out);
  return out;
}
void check_conv2d(const RowCheck& row) { conv2d_shape(row, 3); }
void check_conv2d_activation(const RowCheck& row) {
  row.require_optional(3, conv2d_shape(row, 5), "a residual in the shape of the result");
}

template <bool kMax>
void check_pool(const RowCheck& row) {
  const PoolOptions& o = row.get<PoolOptions>(1);
  const Shape& x = row.shape(0);
  row.require(x.rank() == 4 && all_within(o.kernel, 1) && all_within(o.stride, 1) &&
                  all_within(o.padding, 0) && all_within(o.dilation, 1) &&
                  (kMax || (o.dilation[0] == 1 && o.dilation[1] == 1)),
              "[N, C, H, W] and the options of a pool");
  Shape out{x[0], x[1]};
  for (int d = 0; d < 2; ++d) {
    const auto i = static_cast<size_t>(d);
    row.require(2 * o.padding[i] <= o.kernel[i] && x[d + 2] >= 1 &&
                    x[d + 2] + 2 * o.padding[i] >= o.dilation[i] * (o.kernel[i] - 1) + 1,
                "a window that is no larger than the padded image");
    out.push_back(pool_output_size(x[d + 2], o.kernel[i], o.stride[i], o.padding[i], o.dilation[i],
                                   o.ceil_mode));
    row.require(out.back() >= 0, "a window that fits");
  }
  checked_numel(out);
}

void check_batch_norm(const RowCheck& row, size_t first, size_t last) {
  row.require(row.rank(0) >= 2, "[N, C, ..]");
  for (size_t i = first; i <= last; ++i) {
    row.require_optional(i, {row.shape(0)[1]}, "a number for each channel");
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

void check_attention(const RowCheck& row) {
  row.require_same_dtype(0, 1);
  row.require_same_dtype(0, 2);
  const Shape &q = row.shape(0), &k = row.shape(1), &v = row.shape(2);
  row.require(q.rank() == 4 && k.rank() == 4 && v.rank() == 4 && q[0] == k[0] && q[0] == v[0] &&
                  k[1] == v[1] && k[1] >= 1 && q[1] % k[1] == 0 && k[2] == v[2] && q[3] == k[3],
              "queries [N, H, L, E], keys [N, G, S, E] and values [N, G, S, V]");
  const Shape scores{q[0], q[1], q[2], k[2]};
  checked_numel(scores);
  if (!row.has(3)) return;
  row.require_same_dtype(0, 3);
  row.require(broadcast_shapes("attention", row.shape(3), scores) == scores,
              "a mask that broadcasts to the scores [N, H, L, S]");
}

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

void check_cross_entropy(const RowCheck& row) {
  row.require(row.rank(0) == 2 && row.rank(1) == 1 && row.dtype(1) == DType::i64 &&
                  row.shape(0)[0] == row.shape(1)[0] && row.shape(0)[1] >= 1,
              "logits [N, C] and classes [N] of dtype int64");
}

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
  const Shape &x = row.shape(0), &points = row.shape(1);
  row.require((row.dtype(0) == DType::f32 || row.dtype(0) == DType::f64) &&
                  (x.rank() == 4 || x.rank() == 5) && points.rank() == 3 && points[0] == x[0] &&
                  points[2] == x.rank() - 2,
              "images [N, C, spatial..] and points [N, L, spatial]");
  for (int d = 2; d < x.rank(); ++d) row.require(x[d] >= 1, "images with elements");
  row.require(x.rank() == 4 || row.get<GridOptions>(2).between != GridBetween::cubic,
              "cubic interpolation of two dims");
  checked_numel({x[0], x[1], points[1]});
}

constexpr Rule kRules[] = {
    {kRow_float_matmul, check_matmul},
    {kRow_int_matmul, check_matmul},
    {kRow_float_linear, check_linear},
    {kRow_float_linear_activation, check_linear_activation},
    {kRow_float_conv2d, check_conv2d},
    {kRow_float_conv2d_activation, check_conv2d_activation},
    {kRow_float_max_pool2d, check_pool<true>},
    {kRow_float_avg_pool2d, check_pool<false>},
    {kRow_float_softmax, check_dim},
    {kRow_float_log_softmax, check_dim},
    {kRow_float_batch_norm, check_batch_norm_training},
    {kRow_float_batch_norm_inference, check_batch_norm_inference},
    {kRow_float_layer_norm, check_layer_norm},
    {kRow_float_group_norm, check_group_norm},
    {kRow_float_attention, check_attention},
    {kRow_float_recurrence, check_recurrence},
    {kRow_float_cross_entropy, check_cross_entropy},
    {kRow_float_resample, check_resample},
    {kRow_int_resample, check_resample},
    {kRow_float_grid_sample, check_grid_sample},
};

}  // namespace

std::span<const Rule> layer_rules() { return kRules; }

}  // namespace kiln::graph
