#include "kiln/graph/file/layer_shapes.h"

#include <algorithm>

namespace kiln::graph {

namespace {

template <size_t n>
bool all_within(const std::array<int64_t, n>& v, int64_t low) {
  return std::ranges::all_of(v, [&](int64_t x) { return x >= low && x <= kMostOption; });
}

template <class Options>
Shape conv_shape(const RowCheck& row, const Shape& x, const Shape& w, const Options& o) {
  checked_numel(x);
  checked_numel(w);
  const int rank = static_cast<int>(o.stride.size()) + 2;
  row.require(x.rank() == rank && w.rank() == rank,
              rank == 4 ? "[N, C, H, W] and a weight of four dims"
                        : "[N, C, D, H, W] and a weight of five dims");
  bool fits = all_within(o.stride, 1) && all_within(o.padding, 0) && all_within(o.dilation, 1) &&
              o.groups >= 1 && x[1] % o.groups == 0 && w[0] % o.groups == 0 &&
              x[1] / o.groups == w[1];
  for (int d = 2; d < rank; ++d) fits = fits && w[d] >= 1 && w[d] <= kMostOption;
  row.require(fits, "options that fit the weight");
  Shape out{x[0], w[0]};
  for (size_t i = 0; i < o.stride.size(); ++i) {
    const int d = static_cast<int>(i) + 2;
    const int64_t n = conv_output_size(x[d], w[d], o.stride[i], o.padding[i], o.dilation[i]);
    row.require(x[d] + 2 * o.padding[i] >= o.dilation[i] * (w[d] - 1) + 1 && n >= 0,
                rank == 4 ? "a kernel that is no larger than the padded image"
                          : "a kernel that is no larger than the padded volume");
    out.push_back(n);
  }
  checked_numel(out);
  return out;
}

}  // namespace

Shape conv2d_shape(const RowCheck& row, const Shape& x, const Shape& w, const ConvOptions& o) {
  return conv_shape(row, x, w, o);
}
Shape conv3d_shape(const RowCheck& row, const Shape& x, const Shape& w, const Conv3dOptions& o) {
  return conv_shape(row, x, w, o);
}

Shape pool2d_shape(const RowCheck& row, const Shape& x, const PoolOptions& o, bool is_max) {
  checked_numel(x);
  row.require(x.rank() == 4 && all_within(o.kernel, 1) && all_within(o.stride, 1) &&
                  all_within(o.padding, 0) && all_within(o.dilation, 1) &&
                  (is_max || (o.dilation[0] == 1 && o.dilation[1] == 1)),
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
  return out;
}

Shape grid_sample_shape(const RowCheck& row, const Shape& x, const Shape& points,
                        const GridOptions& options) {
  checked_numel(x);
  row.require((row.dtype(0) == DType::f32 || row.dtype(0) == DType::f64) &&
                  (x.rank() == 4 || x.rank() == 5) && points.rank() == 3 && points[0] == x[0] &&
                  points[2] == x.rank() - 2,
              "images [N, C, spatial..] and points [N, L, spatial]");
  for (int d = 2; d < x.rank(); ++d) row.require(x[d] >= 1, "images with elements");
  row.require(x.rank() == 4 || options.between != GridBetween::cubic,
              "cubic interpolation of two dims");
  Shape out{x[0], x[1], points[1]};
  checked_numel(out);
  return out;
}

Shape check_attention(const RowCheck& row, size_t first) {
  row.require_same_dtype(first, first + 1);
  row.require_same_dtype(first, first + 2);
  const Shape &q = row.shape(first), &k = row.shape(first + 1), &v = row.shape(first + 2);
  row.require(q.rank() == 4 && k.rank() == 4 && v.rank() == 4 && q[0] == k[0] && q[0] == v[0] &&
                  k[1] == v[1] && k[1] >= 1 && q[1] % k[1] == 0 && k[2] == v[2] && q[3] == k[3],
              "queries [N, H, L, E], keys [N, G, S, E] and values [N, G, S, V]");
  Shape scores{q[0], q[1], q[2], k[2]};
  checked_numel(scores);
  if (row.has(first + 3)) {
    row.require_same_dtype(first, first + 3);
    row.require(broadcast_shapes("attention", row.shape(first + 3), scores) == scores,
                "a mask that broadcasts to the scores [N, H, L, S]");
  }
  return scores;
}

void check_ctc(const RowCheck& row, size_t first) {
  const Shape &x = row.shape(first), &targets = row.shape(first + 1);
  bool fits = x.rank() == 3 && targets.rank() == 2 && targets[0] == x[1];
  for (size_t i = 1; i <= 3; ++i) fits = fits && row.dtype(first + i) == DType::i64;
  for (size_t i = 2; i <= 3; ++i) fits = fits && row.shape(first + i) == Shape{x[1]};
  row.require(
      fits, "log probabilities [T, N, C], and targets [N, S] and lengths [N], [N] of dtype int64");
  const int64_t blank = row.get<int64_t>(first + 4);
  row.require(blank >= 0 && blank < x[2], "a blank that is a class");
}

void check_rnnt(const RowCheck& row, size_t first) {
  const Shape &x = row.shape(first), &targets = row.shape(first + 1);
  bool fits = x.rank() == 4 && x[2] >= 1 && targets == Shape{x[0], x[2] - 1};
  for (size_t i = 1; i <= 3; ++i) fits = fits && row.dtype(first + i) == DType::i64;
  for (size_t i = 2; i <= 3; ++i) fits = fits && row.shape(first + i) == Shape{x[0]};
  row.require(fits,
              "scores [N, T, U + 1, C], and targets [N, U] and lengths [N], [N] of dtype int64");
  const int64_t blank = row.get<int64_t>(first + 4);
  row.require(blank >= 0 && blank < x[3], "a blank that is a class");
}

}  // namespace kiln::graph
