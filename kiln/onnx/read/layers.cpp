// Products, convolutions, pools and norms.
#include "kiln/onnx/read/layers.h"

#include <algorithm>
#include <cmath>

#include "kiln/onnx/read/call.h"
#include "kiln/onnx/read/window.h"
#include "kiln/tensor/nn/channel_norm.h"
#include "kiln/tensor/nn/convolution.h"
#include "kiln/tensor/nn/interpolate.h"
#include "kiln/tensor/nn/pooling.h"
#include "kiln/tensor/shape/rearranging.h"

namespace kiln::onnx {

namespace {

void matmul(Call& c) { c.out(c.in(0).matmul(c.in(1))); }
void gemm(Call& c) { c.out(general_product(c)); }
}  // namespace

Tensor general_product(Call& c) {
  Tensor a = c.in(0), b = c.in(1);
  if (a.dim() != 2 || b.dim() != 2) c.fail("expected matrices");
  if (c.i("transA", 0) != 0) a = a.t();
  if (c.i("transB", 0) != 0) b = b.t();
  Tensor y = a.matmul(b);
  const double alpha = c.f("alpha", 1.0), beta = c.f("beta", 1.0);
  if (alpha != 1.0) y = y.mul(alpha).to(a.dtype());
  if (c.has(2)) y = y.add(beta == 1.0 ? c.in(2) : c.in(2).mul(beta).to(a.dtype()));
  return y;
}

namespace {

void einsum_of(Call& c) {
  std::vector<Tensor> xs;
  for (size_t i = 0; i < c.inputs(); ++i) xs.push_back(c.in(i));
  c.out(einsum(c.s("equation", ""), xs));
}
void conv(Call& c) { c.out(convolve(c, c.in(0), c.in(1), c.maybe(2))); }

// Without pads, and then what the pads take away.
void conv_transpose(Call& c) {
  const Tensor x = c.in(0), weight = c.in(1), bias = c.maybe(2);
  Window w = window_of(c, x, behind_channels(weight));
  const auto more = c.ints("output_padding"), wanted = c.ints("output_shape");
  const Sizes stride(w.stride), dilation(w.dilation);
  const int64_t groups = c.i("group", 1);
  Tensor y =
      w.dims == 1   ? functional::conv_transpose1d(x, weight, {}, stride, 0, 0, groups, dilation)
      : w.dims == 2 ? functional::conv_transpose2d(x, weight, {}, stride, 0, 0, groups, dilation)
                    : functional::conv_transpose3d(x, weight, {}, stride, 0, 0, groups, dilation);
  const std::string pad = c.s("auto_pad", "NOTSET");
  Shape ends;
  for (int d = w.dims - 1; d >= 0; --d) {
    const int64_t extra = option(c, more, d, 0), full = y.size(d + 2) + extra;
    int64_t before = w.before[d], after = w.after[d];
    if (!wanted.empty() || pad.starts_with("SAME")) {
      const int64_t out = wanted.empty()
                              ? x.size(d + 2) * w.stride[d]
                              : option(c, wanted, d + static_cast<int>(wanted.size()) - w.dims, 0);
      const int64_t all = std::max<int64_t>(0, full - out);
      before = pad == "SAME_UPPER" ? all / 2 : all - all / 2;
      if (!wanted.empty() && pad == "NOTSET") before = all / 2;
      after = full - out - before;
    }
    ends.push_back(-before);
    ends.push_back(extra - after);
  }
  y = functional::pad(y, ends, "constant", 0.0);
  if (bias.defined()) {
    Shape channel = Shape::filled(w.dims + 1, 1);
    channel[0] = bias.numel();
    y = y.add(bias.reshape(channel));
  }
  c.out(y);
}

// Places in the padded spatial dims as places in the whole unpadded tensor, row-major; or, by
// storage_order, with the spatial dims in the other order.
Tensor whole_places(Call& c, const Tensor& x, const Tensor& padded_x, const Window& w,
                    const Tensor& places) {
  const bool columns = c.i("storage_order", 0) != 0;
  Tensor rest = places, at;
  int64_t step = 1;
  std::vector<Tensor> coordinates(static_cast<size_t>(w.dims));
  for (int d = w.dims - 1; d >= 0; --d) {
    const int64_t n = padded_x.size(d + 2);
    coordinates[static_cast<size_t>(d)] = rest.remainder(n).sub(w.before[d]);
    rest = kiln::div(rest, n, "floor");
  }
  for (int i = 0; i < w.dims; ++i) {
    const int d = columns ? i : w.dims - 1 - i;
    const Tensor part = coordinates[static_cast<size_t>(d)].mul(step);
    at = at.defined() ? at.add(part) : part;
    step *= x.size(d + 2);
  }
  Shape planes = Shape::filled(w.dims + 2, 1);
  planes[0] = x.size(0);
  planes[1] = x.size(1);
  return at.add(arange(0, x.size(0) * x.size(1)).mul(step).reshape(planes));
}

void max_pool(Call& c) {
  const Tensor x = c.in(0);
  const Window w = with_ceil(c, x, window_of(c, x, c.ints("kernel_shape")));
  const bool floats = x.is_floating_point();
  const Tensor given = floats ? x : x.to(DType::f32);
  const Tensor p = padded(given, w, -std::numeric_limits<double>::infinity());
  const Sizes kernel(w.kernel), stride(w.stride), dilation(w.dilation);
  if (c.outputs() > 1) {
    const auto [y, places] =
        w.dims == 1   ? functional::max_pool1d_with_indices(p, kernel, stride, 0, dilation)
        : w.dims == 2 ? functional::max_pool2d_with_indices(p, kernel, stride, 0, dilation)
                      : functional::max_pool3d_with_indices(p, kernel, stride, 0, dilation);
    c.out(floats ? y : y.to(x.dtype()), 0);
    c.out(whole_places(c, x, p, w, places), 1);
    return;
  }
  const Tensor y = w.dims == 1   ? functional::max_pool1d(p, kernel, stride, 0, dilation)
                   : w.dims == 2 ? functional::max_pool2d(p, kernel, stride, 0, dilation)
                                 : functional::max_pool3d(p, kernel, stride, 0, dilation);
  c.out(floats ? y : y.to(x.dtype()));
}

// The mean over the elements that count: sums of windows over how many there are in each.
void average_pool(Call& c) {
  const Tensor x = c.in(0);
  const Window plain = window_of(c, x, c.ints("kernel_shape"));
  const Window w = with_ceil(c, x, plain);
  const bool dilated = w.dilation != Shape::filled(w.dims, 1);
  const Sizes kernel(w.kernel), stride(w.stride);
  const auto pooled = [&](const Tensor& p) {
    if (dilated) return window_sums(p, w);
    return w.dims == 1   ? functional::avg_pool1d(p, kernel, stride)
           : w.dims == 2 ? functional::avg_pool2d(p, kernel, stride)
                         : functional::avg_pool3d(p, kernel, stride);
  };
  Shape one = x.shape();
  one[0] = one[1] = 1;
  Tensor counts = ones(one, {.dtype = x.dtype()});
  Window rest = w;
  if (c.i("count_include_pad", 0) != 0) {
    counts = padded(counts, plain, 1.0);
    for (int d = 0; d < w.dims; ++d) {
      rest.before[d] = 0;
      rest.after[d] = w.after[d] - plain.after[d];
    }
  }
  c.out(pooled(padded(x, w, 0.0)).div(pooled(padded(counts, rest, 0.0))));
}

void lp_pool(Call& c) {
  const Tensor x = c.in(0);
  const auto p = static_cast<double>(c.i("p", 2));
  const Window w = with_ceil(c, x, window_of(c, x, c.ints("kernel_shape")));
  c.out(window_sums(padded(x.abs().pow(p), w, 0.0), w).pow(1.0 / p));
}

template <bool kMax>
void global_pool(Call& c) {
  Dims dims;
  for (int64_t d = 2; d < c.in(0).dim(); ++d) dims.push_back(d);
  c.out(kMax ? c.in(0).amax(dims, true) : c.in(0).mean(dims, true));
}

// Applies f(rows, axis) along an axis. Before opset 13 all dims from the axis on were one.
template <class F>
void along_axis(Call& c, F&& f) {
  const Tensor x = c.in(0);
  const bool old = c.version() < 13;
  const int64_t axis = c.axis_of("axis", old ? 1 : -1, x.dim());
  if (!old) {
    c.out(f(x, axis));
    return;
  }
  int64_t rows = 1;
  for (int64_t d = 0; d < axis; ++d) rows *= x.size(d);
  const Tensor matrix = x.reshape({rows, x.numel() / std::max<int64_t>(1, rows)});
  c.out(f(matrix, 1).reshape(x.shape()));
}
void softmax_of(Call& c) {
  along_axis(c, [](const Tensor& x, int64_t axis) { return x.softmax(axis); });
}
void log_softmax_of(Call& c) {
  along_axis(c, [](const Tensor& x, int64_t axis) { return x.log_softmax(axis); });
}
// 1 at the first of the greatest, 0 elsewhere.
void hardmax(Call& c) {
  along_axis(c, [](const Tensor& x, int64_t axis) {
    Shape along = Shape::filled(static_cast<int>(x.dim()), 1);
    along[static_cast<int>(axis)] = x.size(axis);
    const Tensor place = arange(0, x.size(axis)).reshape(along);
    return x.argmax(axis, true).eq(place).to(x.dtype());
  });
}

Tensor by_channel(const Tensor& x, const Tensor& v) {
  Shape shape = Shape::filled(static_cast<int>(x.dim()) - 1, 1);
  shape[0] = v.numel();
  return v.reshape(shape);
}

void batch_norm_of(Call& c) {
  const Tensor x = c.in(0);
  if (x.dim() < 2) c.fail("expected [N, C, ..]");
  if (c.i("training_mode", 0) != 0) {  // by the batch's mean and variance
    Dims dims{0};
    for (int64_t d = 2; d < x.dim(); ++d) dims.push_back(d);
    const Tensor mean = x.mean(dims);
    const Tensor variance = x.sub(by_channel(x, mean)).square().mean(dims);
    const double old = c.f("momentum", 0.9);
    c.out(functional::batch_norm(x, mean, variance, c.in(1), c.in(2), false, 0.1,
                                 c.f("epsilon", 1e-5)),
          0);
    c.out(c.in(3).mul(old).add(mean.mul(1 - old)), 1);
    c.out(c.in(4).mul(old).add(variance.mul(1 - old)), 2);
    return;
  }
  c.out(functional::batch_norm(x, c.in(3), c.in(4), c.in(1), c.in(2), false, 0.1,
                               c.f("epsilon", 1e-5)));
}
void instance_norm_of(Call& c) {
  const Tensor x = c.in(0);
  if (x.dim() < 3) c.fail("expected [N, C, ..]");
  const Tensor y = functional::group_norm(x, x.size(1), {}, {}, c.f("epsilon", 1e-5));
  c.out(y.mul(by_channel(x, c.in(1))).add(by_channel(x, c.in(2))));
}
void group_norm_of(Call& c) {
  const Tensor x = c.in(0);
  if (x.dim() < 2) c.fail("expected [N, C, ..]");
  const int64_t groups = c.i("num_groups", 1);
  const Tensor y = functional::group_norm(x, groups, {}, {}, c.f("epsilon", 1e-5));
  Tensor scale = c.in(1), bias = c.in(2);
  if (scale.numel() == groups && groups != x.size(1)) {  // before opset 21, one for each group
    scale = repeat_interleave(scale, x.size(1) / groups);
    bias = repeat_interleave(bias, x.size(1) / groups);
  }
  c.out(y.mul(by_channel(x, scale)).add(by_channel(x, bias)));
}
void layer_norm_of(Call& c) {
  const Tensor x = c.in(0);
  const int64_t axis = c.axis_of("axis", -1, x.dim());
  Dims dims;
  for (int64_t d = axis; d < x.dim(); ++d) dims.push_back(d);
  const Tensor mean = x.mean(dims, true), d = x.sub(mean);
  const Tensor rstd = d.square().mean(dims, true).add(c.f("epsilon", 1e-5)).rsqrt();
  Tensor y = d.mul(rstd).mul(c.in(1));
  if (c.has(2)) y = y.add(c.in(2));
  c.out(y, 0);
  c.out(mean, 1);
  c.out(rstd, 2);
}
void rms_norm_of(Call& c) {
  const Tensor x = c.in(0);
  const int64_t axis = c.axis_of("axis", -1, x.dim());
  Dims dims;
  for (int64_t d = axis; d < x.dim(); ++d) dims.push_back(d);
  const Tensor rstd = x.square().mean(dims, true).add(c.f("epsilon", 1e-5)).rsqrt();
  c.out(x.mul(rstd).mul(c.in(1)));
}
void mean_variance_norm(Call& c) {
  const Tensor x = c.in(0);
  std::vector<int64_t> axes = c.ints("axes");
  if (axes.empty()) axes = {0, 2, 3};
  Dims dims;
  for (const int64_t a : axes) dims.push_back(c.axis(a, x.dim()));
  const Tensor mean = x.mean(dims, true);
  const Tensor deviation = x.square().mean(dims, true).sub(mean.square()).sqrt();
  c.out(x.sub(mean).div(deviation.add(1e-9)));
}
// [B, heads, T, D], or [B, T, heads D]: pairs of the first rotary_embedding_dim features are
// turned.
void rotary_embedding(Call& c) {
  Tensor x = c.in(0), cosine = c.in(1), sine = c.in(2);
  const bool flat = x.dim() == 3;
  const int64_t heads = c.i("num_heads", 0);
  if (x.dim() != 4 && !(flat && heads > 0 && x.size(2) % heads == 0)) {
    c.fail("expected [B, heads, T, D], or [B, T, heads D] with num_heads");
  }
  if (flat) x = x.reshape({x.size(0), x.size(1), heads, -1}).transpose(1, 2);
  int64_t turned = c.i("rotary_embedding_dim", 0);
  if (turned == 0) turned = x.size(3);
  if (turned < 0 || turned > x.size(3) || turned % 2 != 0) {
    c.fail(concat("got rotary_embedding_dim ", turned, " of ", x.size(3), " features"));
  }
  if (c.has(3)) {
    cosine = functional::embedding(c.in(3), cosine);
    sine = functional::embedding(c.in(3), sine);
  }
  cosine = cosine.narrow(-1, 0, turned / 2).unsqueeze(1);
  sine = sine.narrow(-1, 0, turned / 2).unsqueeze(1);
  const bool neighbours = c.i("interleaved", 0) != 0;
  const Tensor part = x.narrow(3, 0, turned);
  const Tensor pairs = neighbours ? unflatten(part, 3, {turned / 2, 2})
                                  : unflatten(part, 3, {2, turned / 2}).transpose(3, 4);
  const Tensor a = pairs.select(4, 0), b = pairs.select(4, 1);
  const Tensor first = a.mul(cosine).sub(b.mul(sine)), second = a.mul(sine).add(b.mul(cosine));
  Tensor y = neighbours ? stack({first, second}, 4).flatten(3) : cat({first, second}, 3);
  if (turned < x.size(3)) y = cat({y, x.narrow(3, turned, x.size(3) - turned)}, 3);
  c.out(flat ? y.transpose(1, 2).reshape(c.in(0).shape()) : y);
}
void local_response_norm_of(Call& c) {
  const Tensor x = c.in(0);
  const int64_t size = c.i("size", 1);
  if (size < 1 || size > (1 << 20) || x.dim() < 2) c.fail("expected [N, C, ..] and a size");
  Shape list = Shape::filled(2 * static_cast<int>(x.dim() - 1), 0);
  list[list.rank() - 2] = (size - 1) / 2;
  list[list.rank() - 1] = size / 2;
  const Tensor squares = functional::pad(x.square(), list, "constant", 0.0);
  Tensor sum = squares.narrow(1, 0, x.size(1));
  for (int64_t i = 1; i < size; ++i) sum = sum.add(squares.narrow(1, i, x.size(1)));
  const double by = c.f("alpha", 1e-4) / static_cast<double>(size);
  c.out(x.div(sum.mul(by).add(c.f("bias", 1.0)).pow(c.f("beta", 0.75))));
}
void lp_normalization(Call& c) {
  const Tensor x = c.in(0);
  const int64_t axis = c.axis_of("axis", -1, x.dim());
  const Tensor size = kiln::norm(x, static_cast<double>(c.i("p", 2)), {axis}, true);
  c.out(kiln::where(size.eq(0.0), zeros_like(x), x.div(size)));
}
void dropout_of(Call& c) {
  if (c.has(2) && c.number(2) != 0.0 && (!c.has(1) || c.number(1) != 0.0)) {
    c.refuse("training mode");
  }
  c.out(c.in(0), 0);
  c.out(ones(c.in(0).shape(), {.dtype = DType::boolean}), 1);
}

constexpr Operator kLayersOperators[] = {
    {"MatMul", matmul},
    {"Gemm", gemm},
    {"Einsum", einsum_of},
    {"Conv", conv},
    {"ConvTranspose", conv_transpose},
    {"MaxPool", max_pool},
    {"AveragePool", average_pool},
    {"LpPool", lp_pool},
    {"GlobalAveragePool", global_pool<false>},
    {"GlobalMaxPool", global_pool<true>},
    {"Softmax", softmax_of},
    {"LogSoftmax", log_softmax_of},
    {"Hardmax", hardmax},
    {"BatchNormalization", batch_norm_of},
    {"InstanceNormalization", instance_norm_of},
    {"GroupNormalization", group_norm_of},
    {"LayerNormalization", layer_norm_of},
    {"RMSNormalization", rms_norm_of},
    {"MeanVarianceNormalization", mean_variance_norm},
    {"RotaryEmbedding", rotary_embedding},
    {"LRN", local_response_norm_of},
    {"LpNormalization", lp_normalization},
    {"Dropout", dropout_of},
};

}  // namespace

std::span<const Operator> layer_operators() { return kLayersOperators; }

}  // namespace kiln::onnx
