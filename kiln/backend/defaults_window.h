// Default convolution and pooling: a loop over the positions of the window, each a slice of the
// padded input.
#pragma once

#include <limits>

#include "kiln/backend/activated.h"
#include "kiln/backend/defaults_support.h"

namespace kiln::defaults {

template <class Bk>
struct WindowDefaults {
  // At each kernel position the output gains weight[:, :, kh, kw] times the slice of x that this
  // position meets; as a product of [1, G, O/G, C/G] with [N, G, C/G, OH OW] for G groups.
  template <class X = Bk>
  static FloatOf<X> float_conv2d(const FloatOf<X>& x, const FloatOf<X>& weight,
                                 const FloatOf<X>* bias, const ConvOptions& options) {
    const Conv conv(X::shape(x), X::shape(weight), options);
    const FloatOf<X> wide_weight = widen<X>(weight);
    const FloatOf<X> padded = pad_plane<X>(widen<X>(x), options.padding, conv.padded, 0.0);
    FloatOf<X> out = X::float_full(Shape{conv.batch, conv.groups, conv.group_out, conv.positions()},
                                   0.0, X::dtype(padded), X::device(x));
    conv.for_each_position([&](int64_t kh, int64_t kw, Range rows, Range columns) {
      FloatOf<X> met = X::float_reshape(slice_plane<X>(padded, rows, columns), conv.input_groups());
      out = X::float_add(std::move(out),
                         X::float_matmul(weight_at<X>(wide_weight, conv, kh, kw), std::move(met)));
    });
    out = X::float_reshape(std::move(out), conv.output_shape());
    if (bias != nullptr) {
      out =
          X::float_add(std::move(out), X::float_reshape(widen<X>(*bias), Shape{1, conv.out, 1, 1}));
    }
    return narrow<X>(std::move(out), X::dtype(x));
  }

  template <class X = Bk>
  static FloatOf<X> float_conv2d_activation(const FloatOf<X>& x, const FloatOf<X>& weight,
                                            const FloatOf<X>* bias, const FloatOf<X>* residual,
                                            Activation activation, const ConvOptions& options) {
    FloatOf<X> out = X::float_conv2d(x, weight, bias, options);
    if (residual != nullptr) out = X::float_add(std::move(out), *residual);
    return activated<X>(std::move(out), activation);
  }

  template <class X = Bk>
  static FloatOf<X> float_separable_block(const FloatOf<X>& x, const FloatOf<X>* expand,
                                          const FloatOf<X>* expand_bias, Activation expanded,
                                          const FloatOf<X>& weight, const FloatOf<X>* bias,
                                          Activation activation, const FloatOf<X>* project,
                                          const FloatOf<X>* project_bias,
                                          const FloatOf<X>* residual, Activation projected,
                                          const ConvOptions& options) {
    FloatOf<X> out = expand == nullptr
                         ? X::float_conv2d_activation(x, weight, bias, nullptr, activation, options)
                         : X::float_conv2d_activation(
                               X::float_conv2d_activation(x, *expand, expand_bias, nullptr,
                                                          expanded, ConvOptions{}),
                               weight, bias, nullptr, activation, options);
    if (project == nullptr) return out;
    return X::float_conv2d_activation(std::move(out), *project, project_bias, residual, projected,
                                      ConvOptions{});
  }

  template <class X = Bk>
  static FloatOf<X> float_conv2d_input_grad(const FloatOf<X>& weight, const FloatOf<X>& g,
                                            const Shape& x_shape, const ConvOptions& options) {
    const Conv conv(x_shape, X::shape(weight), options);
    const FloatOf<X> wide_weight = widen<X>(weight);
    const FloatOf<X> grad = X::float_reshape(widen<X>(g), conv.output_groups());
    const Shape met_shape = {conv.batch, conv.channels, conv.height, conv.width};
    FloatOf<X> out = X::float_full(Shape{conv.batch, conv.channels, conv.padded[0], conv.padded[1]},
                                   0.0, X::dtype(grad), X::device(g));
    conv.for_each_position([&](int64_t kh, int64_t kw, Range rows, Range columns) {
      FloatOf<X> transposed =
          X::float_permute(weight_at<X>(wide_weight, conv, kh, kw), swap_last_two(4));
      accumulate<X>(slice_plane<X>(out, rows, columns),
                    X::float_reshape(X::float_matmul(std::move(transposed), grad), met_shape));
    });
    return narrow<X>(unpad_plane<X>(out, options.padding, x_shape), X::dtype(g));
  }

  template <class X = Bk>
  static FloatOf<X> float_conv2d_weight_grad(const FloatOf<X>& x, const FloatOf<X>& g,
                                             const Shape& weight_shape,
                                             const ConvOptions& options) {
    const Conv conv(X::shape(x), weight_shape, options);
    const FloatOf<X> padded = pad_plane<X>(widen<X>(x), options.padding, conv.padded, 0.0);
    const FloatOf<X> grad = X::float_reshape(widen<X>(g), conv.output_groups());
    FloatOf<X> out = X::float_full(weight_shape, 0.0, X::dtype(grad), X::device(g));
    conv.for_each_position([&](int64_t kh, int64_t kw, Range rows, Range columns) {
      FloatOf<X> met = X::float_reshape(slice_plane<X>(padded, rows, columns), conv.input_groups());
      FloatOf<X> product =
          X::float_matmul(grad, X::float_permute(std::move(met), swap_last_two(4)));
      X::float_assign(slice_plane<X>(out, {kh, kh + 1, 1}, {kw, kw + 1, 1}),
                      X::float_reshape(X::float_sum(std::move(product), Dims{0}, false),
                                       Shape{conv.out, conv.group_in, 1, 1}));
    });
    return narrow<X>(std::move(out), X::dtype(g));
  }

  template <class X = Bk>
  static FloatOf<X> float_conv_transpose2d(const FloatOf<X>& x, const FloatOf<X>& weight,
                                           const FloatOf<X>* bias, Activation activation,
                                           const Shape& shape, const ConvOptions& options) {
    FloatOf<X> out = X::float_conv2d_input_grad(weight, x, shape, options);
    if (bias != nullptr) {
      out = X::float_add(std::move(out), X::float_reshape(*bias, Shape{1, shape[1], 1, 1}));
    }
    return activated<X>(std::move(out), activation);
  }

  // The padding never wins: an element counts only where its index is one of the plane's. Of equal
  // elements the first stays, and NaN beats all.
  template <class X = Bk>
  static std::pair<FloatOf<X>, IntOf<X>> float_max_pool2d(const FloatOf<X>& x,
                                                          const PoolOptions& options) {
    const Pool pool(X::shape(x), options, options.dilation);
    const Device device = X::device(x);
    constexpr double lowest = -std::numeric_limits<double>::infinity();
    const FloatOf<X> padded = pad_plane<X>(x, options.padding, pool.padded, lowest);
    const IntOf<X> plane = X::int_from_data(pool.plane_indices(), device);
    FloatOf<X> best = X::float_full(pool.output_shape(), lowest, X::dtype(x), device);
    IntOf<X> best_index = X::int_full(pool.output_shape(), -1, DType::i64, device);
    pool.for_each_position([&](Range rows, Range columns) {
      const FloatOf<X> value = slice_plane<X>(padded, rows, columns);
      const IntOf<X> index = slice_plane_int<X>(plane, rows, columns);
      BoolOf<X> better = X::bool_and(X::float_is_nan(value), X::bool_not(X::float_is_nan(best)));
      better = X::bool_or(X::float_greater(value, best), std::move(better));
      better = X::bool_or(X::int_lower_scalar(best_index, 0), std::move(better));
      better = X::bool_and(std::move(better), X::int_greater_equal_scalar(index, 0));
      best = X::float_mask_where(best, better, value);
      best_index = X::int_mask_where(best_index, better, index);
    });
    return {std::move(best), std::move(best_index)};
  }

  template <class X = Bk>
  static FloatOf<X> float_max_pool2d_values(const FloatOf<X>& x, const PoolOptions& options) {
    return X::float_max_pool2d(x, options).first;
  }

  template <class X = Bk>
  static FloatOf<X> float_max_pool2d_backward(const FloatOf<X>& g, const IntOf<X>& indices,
                                              const Shape& x_shape, const PoolOptions&) {
    const Shape& g_shape = X::shape(g);
    const Shape rows = {g_shape[0], g_shape[1], g_shape[2] * g_shape[3]};
    FloatOf<X> zero = X::float_full(Shape{x_shape[0], x_shape[1], x_shape[2] * x_shape[3]}, 0.0,
                                    widened(X::dtype(g)), X::device(g));
    // A window that met no element (large dilation) has index -1 and nothing to give its gradient
    // to.
    const BoolOf<X> none = X::int_lower_scalar(indices, 0);
    const IntOf<X> index = X::int_reshape(X::int_mask_fill(indices, none, 0), rows);
    const FloatOf<X> grad = X::float_reshape(X::float_mask_fill(widen<X>(g), none, 0.0), rows);
    FloatOf<X> sum = X::float_scatter_add(std::move(zero), 2, index, grad);
    return narrow<X>(X::float_reshape(std::move(sum), x_shape), X::dtype(g));
  }

  template <class X = Bk>
  static FloatOf<X> float_avg_pool2d(const FloatOf<X>& x, const PoolOptions& options) {
    const Pool pool(X::shape(x), options, {1, 1});
    const FloatOf<X> padded = pad_plane<X>(widen<X>(x), options.padding, pool.padded, 0.0);
    FloatOf<X> sum = X::float_full(pool.output_shape(), 0.0, X::dtype(padded), X::device(x));
    pool.for_each_position([&](Range rows, Range columns) {
      sum = X::float_add(std::move(sum), slice_plane<X>(padded, rows, columns));
    });
    return narrow<X>(X::float_div(sum, divisors<X>(pool, sum)), X::dtype(x));
  }

  template <class X = Bk>
  static FloatOf<X> float_avg_pool2d_backward(const FloatOf<X>& g, const Shape& x_shape,
                                              const PoolOptions& options) {
    const Pool pool(x_shape, options, {1, 1});
    const FloatOf<X> wide = widen<X>(g);
    const FloatOf<X> share = X::float_div(wide, divisors<X>(pool, wide));
    FloatOf<X> out = X::float_full(Shape{x_shape[0], x_shape[1], pool.padded[0], pool.padded[1]},
                                   0.0, X::dtype(wide), X::device(g));
    pool.for_each_position([&](Range rows, Range columns) {
      accumulate<X>(slice_plane<X>(out, rows, columns), share);
    });
    return narrow<X>(unpad_plane<X>(out, options.padding, x_shape), X::dtype(g));
  }

 private:
  // The sizes of one convolution.
  struct Conv {
    Conv(const Shape& x, const Shape& weight, const ConvOptions& o)
        : batch(x[0]),
          channels(x[1]),
          out(weight[0]),
          groups(o.groups),
          group_in(weight[1]),
          group_out(weight[0] / o.groups),
          kernel{weight[2], weight[3]},
          height(conv_output_size(x[2], kernel[0], o.stride[0], o.padding[0], o.dilation[0])),
          width(conv_output_size(x[3], kernel[1], o.stride[1], o.padding[1], o.dilation[1])),
          padded{x[2] + 2 * o.padding[0], x[3] + 2 * o.padding[1]},
          options(o) {}

    int64_t positions() const { return height * width; }
    Shape input_groups() const { return {batch, groups, group_in, positions()}; }
    Shape output_groups() const { return {batch, groups, group_out, positions()}; }
    Shape output_shape() const { return {batch, out, height, width}; }

    template <class Fn>
    void for_each_position(Fn&& fn) const {
      if (positions() == 0) return;
      for (int64_t kh = 0; kh < kernel[0]; ++kh) {
        for (int64_t kw = 0; kw < kernel[1]; ++kw) {
          fn(kh, kw, window_range(kh, options.dilation[0], options.stride[0], height),
             window_range(kw, options.dilation[1], options.stride[1], width));
        }
      }
    }

    int64_t batch, channels, out, groups, group_in, group_out;
    IntPair kernel;
    int64_t height, width;
    IntPair padded;
    ConvOptions options;
  };

  // The sizes of one pooling. With ceil_mode the last window may reach beyond the padding: the
  // plane grows to hold it.
  struct Pool {
    Pool(const Shape& x, const PoolOptions& o, IntPair dilation_)
        : shape(x), options(o), dilation(dilation_) {
      for (int i = 0; i < 2; ++i) {
        const int64_t in = x[2 + i];
        size[i] =
            pool_output_size(in, o.kernel[i], o.stride[i], o.padding[i], dilation[i], o.ceil_mode);
        const int64_t reach = (size[i] - 1) * o.stride[i] + dilation[i] * (o.kernel[i] - 1) + 1;
        padded[i] = std::max(in + 2 * o.padding[i], reach);
      }
    }

    Shape output_shape() const { return {shape[0], shape[1], size[0], size[1]}; }

    template <class Fn>
    void for_each_position(Fn&& fn) const {
      if (size[0] * size[1] == 0) return;
      for (int64_t kh = 0; kh < options.kernel[0]; ++kh) {
        for (int64_t kw = 0; kw < options.kernel[1]; ++kw) {
          fn(window_range(kh, dilation[0], options.stride[0], size[0]),
             window_range(kw, dilation[1], options.stride[1], size[1]));
        }
      }
    }

    // The index in the H x W plane of every element of the padded plane; -1 in the padding.
    TensorData plane_indices() const {
      TensorData data({1, 1, padded[0], padded[1]}, DType::i64);
      auto values = data.as_mutable<int64_t>();
      size_t at = 0;
      for (int64_t i = 0; i < padded[0]; ++i) {
        for (int64_t j = 0; j < padded[1]; ++j) {
          const int64_t row = i - options.padding[0];
          const int64_t column = j - options.padding[1];
          const bool inside = row >= 0 && row < shape[2] && column >= 0 && column < shape[3];
          values[at++] = inside ? row * shape[3] + column : -1;
        }
      }
      return data;
    }

    // What the window at `position` along dim i is divided by, in that dim: PyTorch counts the
    // padding that was asked for, but never what ceil_mode adds.
    double extent(int i, int64_t position) const {
      const int64_t in = shape[2 + i];
      const int64_t start = position * options.stride[i] - options.padding[i];
      const int64_t end = std::min(start + options.kernel[i], in + options.padding[i]);
      if (options.count_include_pad) return static_cast<double>(end - start);
      const int64_t inside = std::min(end, in) - std::max<int64_t>(start, 0);
      return static_cast<double>(std::max<int64_t>(inside, 1));
    }

    Shape shape;
    PoolOptions options;
    IntPair dilation;
    IntPair size{};
    IntPair padded{};
  };

  static DType widened(DType dtype) { return is_half(dtype) ? DType::f32 : dtype; }

  // weight[:, :, kh, kw] as [1, groups, O / groups, C / groups].
  template <class X>
  static FloatOf<X> weight_at(const FloatOf<X>& weight, const Conv& conv, int64_t kh, int64_t kw) {
    return X::float_reshape(slice_plane<X>(weight, {kh, kh + 1, 1}, {kw, kw + 1, 1}),
                            Shape{1, conv.groups, conv.group_out, conv.group_in});
  }

  // The part of a padded plane that stands for x, without holding on to the rest.
  template <class X>
  static FloatOf<X> unpad_plane(const FloatOf<X>& padded, IntPair before, const Shape& x_shape) {
    const Shape& shape = X::shape(padded);
    if (shape == x_shape) return padded;
    return X::float_contiguous(slice_plane<X>(padded, {before[0], before[0] + x_shape[2], 1},
                                              {before[1], before[1] + x_shape[3], 1}));
  }

  // [1, 1, OH, OW], in the dtype and on the device of `like`.
  template <class X>
  static FloatOf<X> divisors(const Pool& pool, const FloatOf<X>& like) {
    std::vector<double> values;
    for (int64_t i = 0; i < pool.size[0]; ++i) {
      for (int64_t j = 0; j < pool.size[1]; ++j) {
        values.push_back(pool.extent(0, i) * pool.extent(1, j));
      }
    }
    return X::float_from_data(
        TensorData(values, {1, 1, pool.size[0], pool.size[1]}).cast(X::dtype(like)),
        X::device(like));
  }
};

}  // namespace kiln::defaults
