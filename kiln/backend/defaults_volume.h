// Default convolution of volumes: their planes' convolutions, in which every channel is followed by
// the depths that the window meets.
#pragma once

#include <span>
#include <vector>

#include "kiln/backend/defaults_support.h"

namespace kiln::defaults {

template <class Bk>
struct VolumeDefaults {
  template <class X = Bk>
  static FloatOf<X> float_conv3d(const FloatOf<X>& x, const FloatOf<X>& weight,
                                 const FloatOf<X>* bias, const Conv3dOptions& options) {
    const Volume v(X::shape(x), X::shape(weight), options);
    const DType dtype = X::dtype(x);
    if (v.is_depthwise()) {
      const FloatOf<X> met = X::float_reshape(
          X::float_conv2d(v.template planes<X>(widen<X>(x)),
                          v.template plane_weight<X>(widen<X>(weight)), nullptr, v.each_plane()),
          v.met());
      FloatOf<X> out = v.template met_at<X>(met, 0);
      for (int64_t k = 1; k < v.kernel; ++k) {
        out = X::float_add(std::move(out), v.template met_at<X>(met, k));
      }
      out = X::float_reshape(X::float_permute(out, Dims{0, 1, 3, 2, 4, 5}), v.result());
      if (bias != nullptr) {
        out = X::float_add(std::move(out),
                           X::float_reshape(widen<X>(*bias), Shape{1, v.out, 1, 1, 1}));
      }
      return narrow<X>(std::move(out), dtype);
    }
    if (v.is_pointwise()) {
      const FloatOf<X> y =
          X::float_conv2d(X::float_reshape(x, v.as_plane(v.in)),
                          X::float_reshape(weight, v.flat_weight()), bias, options.planes());
      return X::float_reshape(y, v.result());
    }
    const FloatOf<X> y =
        X::float_conv2d(v.template windows<X>(x), X::float_reshape(weight, v.flat_weight()), bias,
                        options.planes());
    return from_frames<X>(y, v.result());
  }

  template <class X = Bk>
  static FloatOf<X> float_conv3d_input_grad(const FloatOf<X>& weight, const FloatOf<X>& g,
                                            const Shape& x_shape, const Conv3dOptions& options) {
    const Volume v(x_shape, X::shape(weight), options);
    const FloatOf<X> wide = widen<X>(g), w = widen<X>(weight);
    FloatOf<X> out = [&]() -> FloatOf<X> {
      if (v.is_depthwise()) {
        const FloatOf<X> planes =
            X::float_conv2d_input_grad(v.template plane_weight<X>(w), v.template spread<X>(wide),
                                       v.planes_shape(), v.each_plane());
        return v.template without_padding<X>(
            X::float_reshape(planes, Shape{v.batch, v.in, v.padded, v.height, v.width}));
      }
      if (v.is_pointwise()) {
        return X::float_reshape(
            X::float_conv2d_input_grad(X::float_reshape(w, v.flat_weight()),
                                       X::float_reshape(wide, v.as_plane(v.out)), v.as_plane(v.in),
                                       options.planes()),
            x_shape);
      }
      const Shape frames{v.batch * v.depth, v.in * v.kernel, v.height, v.width};
      const FloatOf<X> met = X::float_conv2d_input_grad(
          X::float_reshape(w, v.flat_weight()), as_frames<X>(wide), frames, options.planes());
      // What each frame gives to the depths of its window is added there.
      const FloatOf<X> apart = X::float_permute(
          X::float_reshape(met, Shape{v.batch, v.depth, v.in, v.kernel, v.height, v.width}),
          Dims{0, 1, 3, 2, 4, 5});
      const FloatOf<X> zero = X::float_full(Shape{v.batch, v.padded, v.in, v.height, v.width}, 0.0,
                                            X::dtype(wide), X::device(g));
      const FloatOf<X> sum = X::float_index_add(
          zero, 1, X::int_from_data(v.places(), X::device(g)),
          X::float_reshape(apart, Shape{v.batch, v.depth * v.kernel, v.in, v.height, v.width}));
      return v.template without_padding<X>(X::float_permute(sum, Dims{0, 2, 1, 3, 4}));
    }();
    return narrow<X>(std::move(out), X::dtype(g));
  }

  template <class X = Bk>
  static FloatOf<X> float_conv3d_weight_grad(const FloatOf<X>& x, const FloatOf<X>& g,
                                             const Shape& weight_shape,
                                             const Conv3dOptions& options) {
    const Volume v(X::shape(x), weight_shape, options);
    if (v.is_depthwise()) {
      const Shape each{v.in, v.padded, v.each() * v.kernel, weight_shape[3], weight_shape[4]};
      const Shape all{each[0] * each[1] * each[2], 1, each[3], each[4]};
      const FloatOf<X> planes =
          X::float_conv2d_weight_grad(v.template planes<X>(widen<X>(x)),
                                      v.template spread<X>(widen<X>(g)), all, v.each_plane());
      const FloatOf<X> sum = X::float_sum(X::float_reshape(planes, each), Dims{1}, false);
      return narrow<X>(X::float_reshape(sum, weight_shape), X::dtype(g));
    }
    if (v.is_pointwise()) {
      return X::float_reshape(X::float_conv2d_weight_grad(X::float_reshape(x, v.as_plane(v.in)),
                                                          X::float_reshape(g, v.as_plane(v.out)),
                                                          v.flat_weight(), options.planes()),
                              weight_shape);
    }
    return X::float_reshape(X::float_conv2d_weight_grad(v.template windows<X>(x), as_frames<X>(g),
                                                        v.flat_weight(), options.planes()),
                            weight_shape);
  }

 private:
  // [N, C, D, H, W] -> [N D, C, H, W]
  template <class X>
  static FloatOf<X> as_frames(const FloatOf<X>& x) {
    const Shape s = X::shape(x);
    return X::float_reshape(X::float_permute(x, Dims{0, 2, 1, 3, 4}),
                            Shape{s[0] * s[2], s[1], s[3], s[4]});
  }
  // And back.
  template <class X>
  static FloatOf<X> from_frames(const FloatOf<X>& x, const Shape& s) {
    const FloatOf<X> frames = X::float_reshape(x, Shape{s[0], s[2], s[1], s[3], s[4]});
    return X::float_contiguous(X::float_permute(frames, Dims{0, 2, 1, 3, 4}));
  }

  // The sizes of one convolution. `kernel`, `stride` and so on are those in depth.
  struct Volume {
    Volume(const Shape& x, const Shape& weight, const Conv3dOptions& o)
        : batch(x[0]),
          in(x[1]),
          out(weight[0]),
          size(x[2]),
          height(x[3]),
          width(x[4]),
          kernel(weight[2]),
          stride(o.stride[0]),
          padding(o.padding[0]),
          dilation(o.dilation[0]),
          padded(x[2] + 2 * o.padding[0]),
          depth(conv_output_size(x[2], kernel, stride, padding, dilation)),
          out_height(conv_output_size(x[3], weight[3], o.stride[1], o.padding[1], o.dilation[1])),
          out_width(conv_output_size(x[4], weight[4], o.stride[2], o.padding[2], o.dilation[2])),
          weight_(weight),
          options_(o) {}

    // Whether every channel has kernels of its own: planes by themselves, then sums of them.
    bool is_depthwise() const { return weight_[1] == 1 && options_.groups > 1; }
    // Whether each output element sees one element of each channel, at its own place.
    bool is_pointwise() const {
      return weight_[2] == 1 && weight_[3] == 1 && weight_[4] == 1 &&
             options_.stride == IntTriple{1, 1, 1} && options_.padding == IntTriple{0, 0, 0};
    }
    Shape result() const { return {batch, out, depth, out_height, out_width}; }
    Shape flat_weight() const { return {out, weight_[1] * kernel, weight_[3], weight_[4]}; }
    Shape as_plane(int64_t channels) const { return {batch, channels, size * height, width}; }

    template <class X>
    FloatOf<X> with_padding(const FloatOf<X>& x) const {
      if (padding == 0) return x;
      Shape shape = X::shape(x);
      shape[2] = padding;
      const FloatOf<X> zeros = X::float_full(shape, 0.0, X::dtype(x), X::device(x));
      const FloatOf<X> parts[] = {zeros, x, zeros};
      return X::float_cat(std::span<const FloatOf<X>>(parts), 2);
    }
    template <class X>
    FloatOf<X> without_padding(const FloatOf<X>& x) const {
      return X::float_contiguous(
          padding == 0 ? x : FloatOf<X>(X::float_slice(x, 2, Range{padding, padding + size, 1})));
    }
    Range met_by(int64_t k) const { return window_range(k, dilation, stride, depth); }

    // A frame for each output depth: [N, C, D, H, W] -> [N OD, C KD, H, W].
    template <class X>
    FloatOf<X> windows(const FloatOf<X>& x) const {
      const FloatOf<X> frames = X::float_permute(with_padding<X>(x), Dims{0, 2, 1, 3, 4});
      std::vector<FloatOf<X>> met;
      for (int64_t k = 0; k < kernel; ++k) {
        met.push_back(X::float_reshape(X::float_slice(frames, 1, met_by(k)),
                                       Shape{batch, depth, in, 1, height, width}));
      }
      return X::float_reshape(X::float_cat(std::span<const FloatOf<X>>(met), 3),
                              Shape{batch * depth, in * kernel, height, width});
    }
    // The padded depth of each element of a window, for all windows.
    TensorData places() const {
      std::vector<int64_t> out_places;
      for (int64_t d = 0; d < depth; ++d) {
        for (int64_t k = 0; k < kernel; ++k) out_places.push_back(d * stride + k * dilation);
      }
      return TensorData(out_places, Shape{depth * kernel});
    }

    // ---- Of depthwise ones: each plane of x meets each depth of its kernels

    int64_t each() const { return out / std::max<int64_t>(in, 1); }
    Shape planes_shape() const { return {batch, in * padded, height, width}; }
    Shape met() const { return {batch, in, padded, each(), kernel, out_height, out_width}; }
    ConvOptions each_plane() const {
      ConvOptions o = options_.planes();
      o.groups = in * padded;
      return o;
    }
    template <class X>
    FloatOf<X> planes(const FloatOf<X>& x) const {
      return X::float_reshape(with_padding<X>(x), planes_shape());
    }
    template <class X>
    FloatOf<X> plane_weight(const FloatOf<X>& weight) const {
      const int64_t n = each() * kernel;
      const FloatOf<X> one = X::float_reshape(weight, Shape{in, 1, n, weight_[3], weight_[4]});
      return X::float_reshape(X::float_expand(one, Shape{in, padded, n, weight_[3], weight_[4]}),
                              Shape{in * padded * n, 1, weight_[3], weight_[4]});
    }
    // What depth k of the kernel gives: [N, C, OD, each, OH, OW].
    template <class X>
    FloatOf<X> met_at(const FloatOf<X>& all, int64_t k) const {
      const FloatOf<X> part =
          X::float_slice(X::float_slice(all, 2, met_by(k)), 4, Range{k, k + 1, 1});
      return X::float_reshape(part, Shape{batch, in, depth, each(), out_height, out_width});
    }
    // The transpose of all of them: g [N, O, OD, OH, OW] at each plane and depth of the kernel that
    // gave to it, zeros elsewhere. -> [N, C padded each KD, OH, OW]
    template <class X>
    FloatOf<X> spread(const FloatOf<X>& g) const {
      std::vector<int64_t> from;
      for (int64_t d = 0; d < padded; ++d) {
        for (int64_t k = 0; k < kernel; ++k) {
          const int64_t first = d - k * dilation;
          const bool is_met = first >= 0 && first % stride == 0 && first / stride < depth;
          from.push_back(is_met ? first / stride : depth);
        }
      }
      const FloatOf<X> zeros = X::float_full(Shape{batch, out, 1, out_height, out_width}, 0.0,
                                             X::dtype(g), X::device(g));
      const FloatOf<X> parts[] = {g, zeros};
      const FloatOf<X> taken = X::float_index_select(
          X::float_cat(std::span<const FloatOf<X>>(parts), 2), 2,
          X::int_from_data(TensorData(from, Shape{padded * kernel}), X::device(g)));
      const FloatOf<X> apart = X::float_permute(
          X::float_reshape(taken, Shape{batch, in, each(), padded, kernel, out_height, out_width}),
          Dims{0, 1, 3, 2, 4, 5, 6});
      return X::float_reshape(apart,
                              Shape{batch, in * padded * each() * kernel, out_height, out_width});
    }

    int64_t batch, in, out;
    int64_t size, height, width;
    int64_t kernel, stride, padding, dilation, padded;
    int64_t depth, out_height, out_width;

   private:
    Shape weight_;
    Conv3dOptions options_;
  };
};

}  // namespace kiln::defaults
