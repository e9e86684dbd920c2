// Max and average pooling.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kiln/backend/reference/elements.h"

namespace kiln {

using reference::make;
using reference::Ops;
using reference::position;
using reference::read;
using reference::Tensor;

namespace {

Shape pooled_shape(const Shape& x, const PoolOptions& o, IntPair dilation) {
  return {x[0], x[1],
          pool_output_size(x[2], o.kernel[0], o.stride[0], o.padding[0], dilation[0], o.ceil_mode),
          pool_output_size(x[3], o.kernel[1], o.stride[1], o.padding[1], dilation[1], o.ceil_mode)};
}

// Calls fn(row, column) for every element of the plane that the window at `at` meets.
template <class Fn>
void for_each_in_window(const Shape& x, const Shape& at, const PoolOptions& o, IntPair dilation,
                        Fn&& fn) {
  for (int64_t kh = 0; kh < o.kernel[0]; ++kh) {
    for (int64_t kw = 0; kw < o.kernel[1]; ++kw) {
      const int64_t row = at[2] * o.stride[0] - o.padding[0] + kh * dilation[0];
      const int64_t column = at[3] * o.stride[1] - o.padding[1] + kw * dilation[1];
      if (row >= 0 && row < x[2] && column >= 0 && column < x[3]) fn(row, column);
    }
  }
}

// What PyTorch divides a window's sum by. With count_include_pad its size, cut where the padding
// ends (ceil_mode may reach beyond); without, the number of elements it meets.
double divisor(const Shape& x, const Shape& at, const PoolOptions& o) {
  int64_t count = 0;
  if (!o.count_include_pad) {
    for_each_in_window(x, at, o, {1, 1}, [&](int64_t, int64_t) { ++count; });
    return static_cast<double>(std::max<int64_t>(count, 1));
  }
  for (int64_t kh = 0; kh < o.kernel[0]; ++kh) {
    for (int64_t kw = 0; kw < o.kernel[1]; ++kw) {
      const int64_t row = at[2] * o.stride[0] - o.padding[0] + kh;
      const int64_t column = at[3] * o.stride[1] - o.padding[1] + kw;
      if (row < x[2] + o.padding[0] && column < x[3] + o.padding[1]) ++count;
    }
  }
  return static_cast<double>(count);
}

}  // namespace

HostHandle Ops::float_max_pool2d_values(Tensor x, const PoolOptions& options) {
  return float_max_pool2d(x, options).first;
}

std::pair<HostHandle, HostHandle> Ops::float_max_pool2d(Tensor x, const PoolOptions& options) {
  const Shape& in = x->shape();
  const Shape shape = pooled_shape(in, options, options.dilation);
  const std::vector<double> values = read<double>(x);
  std::vector<double> out;
  std::vector<int64_t> indices;
  reference::for_each_index(shape, [&](const Shape& at) {
    double best = -std::numeric_limits<double>::infinity();
    int64_t best_index = -1;  // stays so for a window that meets no element
    for_each_in_window(in, at, options, options.dilation, [&](int64_t row, int64_t column) {
      const double value = values[position(in, {at[0], at[1], row, column})];
      if (best_index < 0 || value > best || (std::isnan(value) && !std::isnan(best))) {
        best = value;
        best_index = row * in[3] + column;
      }
    });
    out.push_back(best);
    indices.push_back(best_index);
  });
  return {make(shape, x->dtype(), x->device(), out), make(shape, DType::i64, x->device(), indices)};
}

HostHandle Ops::float_max_pool2d_backward(Tensor g, Tensor indices, const Shape& x_shape,
                                          const PoolOptions&) {
  const std::vector<double> grads = read<double>(g);
  const std::vector<int64_t> index = read<int64_t>(indices);
  std::vector<double> out(static_cast<size_t>(x_shape.numel()), 0.0);
  const int64_t plane = x_shape[2] * x_shape[3];
  reference::for_each_index(g->shape(), [&](const Shape& at) {
    const size_t from = position(g->shape(), at);
    if (index[from] < 0) return;
    out[static_cast<size_t>((at[0] * x_shape[1] + at[1]) * plane + index[from])] += grads[from];
  });
  return make(x_shape, g->dtype(), g->device(), out);
}

HostHandle Ops::float_avg_pool2d(Tensor x, const PoolOptions& options) {
  const Shape& in = x->shape();
  const Shape shape = pooled_shape(in, options, {1, 1});
  const std::vector<double> values = read<double>(x);
  std::vector<double> out;
  reference::for_each_index(shape, [&](const Shape& at) {
    double sum = 0.0;
    for_each_in_window(in, at, options, {1, 1}, [&](int64_t row, int64_t column) {
      sum += values[position(in, {at[0], at[1], row, column})];
    });
    out.push_back(sum / divisor(in, at, options));
  });
  return make(shape, x->dtype(), x->device(), out);
}

HostHandle Ops::float_avg_pool2d_backward(Tensor g, const Shape& x_shape,
                                          const PoolOptions& options) {
  const std::vector<double> grads = read<double>(g);
  std::vector<double> out(static_cast<size_t>(x_shape.numel()), 0.0);
  reference::for_each_index(g->shape(), [&](const Shape& at) {
    const double share = grads[position(g->shape(), at)] / divisor(x_shape, at, options);
    for_each_in_window(x_shape, at, options, {1, 1}, [&](int64_t row, int64_t column) {
      out[position(x_shape, {at[0], at[1], row, column})] += share;
    });
  });
  return make(x_shape, g->dtype(), g->device(), out);
}

}  // namespace kiln
