#include "kiln/tensor/nn/pooling.h"

#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/index/ordered_floats.h"
#include "kiln/tensor/nn/functional_support.h"

namespace kiln::functional {

using namespace detail;

namespace {

// The windows of a pooling, for three spatial dims.
struct Pooling {
  const char* op;
  int spatial;
  Triple kernel, stride, padding, dilation;
  bool ceil_mode;

  Pooling(const char* name, int dims, const Sizes& kernels, const std::optional<Sizes>& strides,
          const Sizes& paddings, const Sizes& dilations, bool ceil)
      : op(name),
        spatial(dims),
        kernel(triple_of(name, "kernel_size", kernels, dims, 1, 1)),
        stride(strides ? triple_of(name, "stride", *strides, dims, 1, 1) : kernel),
        padding(triple_of(name, "padding", paddings, dims, 0, 0)),
        dilation(triple_of(name, "dilation", dilations, dims, 1, 1)),
        ceil_mode(ceil) {}

  // Throws where a window would see nothing but padding. `x` ends in the spatial dims.
  void check(const Tensor& input, const Tensor& x) const {
    for (size_t i = static_cast<size_t>(3 - spatial); i < 3; ++i) {
      const int64_t extent = dilation[i] * (kernel[i] - 1) + 1;
      if (2 * padding[i] > extent) {
        throw_error<ValueError>(op, ": padding may be at most half the kernel; got padding ",
                                text_of(padding, spatial), ", kernel ", text_of(kernel, spatial));
      }
      if (out_size(x, i) < 1) {
        throw_error<ShapeError>(op, ": the window is larger than the padded input; got input ",
                                input.shape(), ", kernel ", text_of(kernel, spatial), ", padding ",
                                text_of(padding, spatial));
      }
    }
  }
  int64_t out_size(const Tensor& x, size_t i) const {
    return pool_output_size(x.size(static_cast<int64_t>(i) - 3), kernel[i], stride[i], padding[i],
                            dilation[i], ceil_mode);
  }
  // Whether the op takes x as it is: [N, C, H, W].
  bool is_direct(const Tensor& x) const { return spatial == 2 && x.dim() == 4; }
  // The two parts that a pooling over three dims falls into: each plane, and then each column of
  // what they give.
  PoolOptions planes() const {
    return {{kernel[1], kernel[2]},
            {stride[1], stride[2]},
            {padding[1], padding[2]},
            {dilation[1], dilation[2]},
            ceil_mode,
            true};
  }
  PoolOptions depths() const {
    return {{kernel[0], 1}, {stride[0], 1}, {padding[0], 0}, {dilation[0], 1}, ceil_mode, true};
  }
};

struct MaxPooled {
  Tensor values, indices;
};

MaxPooled best_of_planes(const char* op, const Tensor& x, const PoolOptions& options,
                         bool wants_indices) {
  const Value& value = value_of(op, x);
  if (!wants_indices) return {wrap(AD::float_max_pool2d_values(value, options)), {}};
  auto [values, positions] = AD::float_max_pool2d(value, options);
  return {wrap(std::move(values)), wrap(std::move(positions))};
}

// A box's first maximum is the first maximum of the first of its planes that has it.
MaxPooled max_pool(const Pooling& p, const Tensor& input, bool wants_indices) {
  if (is_whole(input.dtype())) {
    const OrderedFloats numbers(input);
    MaxPooled result = max_pool(p, numbers.floats, wants_indices);
    result.values = numbers.integers(result.values);
    return result;
  }
  require_floating(p.op, input);
  if (p.is_direct(input)) {
    p.check(input, input);
    return best_of_planes(p.op, input, p.planes(), wants_indices);
  }
  const Planes planes(p.op, input, p.spatial);
  p.check(input, planes.x);
  const Shape s = planes.x.shape();
  const Tensor frames = planes.x.reshape({s[0], s[1] * s[2], s[3], s[4]});
  const auto [in_planes, positions] = best_of_planes(p.op, frames, p.planes(), wants_indices);
  Tensor out = in_planes, index = positions;
  const int64_t height = out.size(2), width = out.size(3);
  if (p.spatial == 3) {
    const Tensor by_depth = out.reshape({s[0], s[1], s[2], height * width});
    const auto [best, at] = best_of_planes(p.op, by_depth, p.depths(), wants_indices);
    out = best;
    if (wants_indices) {  // `at` is depth * (height * width) + column
      const int64_t plane = height * width;
      const Tensor columns_of = at.reshape({s[0], s[1], p.out_size(planes.x, 0) * plane});
      const Tensor in_plane = index.reshape({s[0], s[1], s[2] * plane}).gather(2, columns_of);
      index = columns_of.floor_divide(plane) * (s[3] * s[4]) + in_plane;
    }
  }
  const Shape wanted{s[0], s[1], p.out_size(planes.x, 0), height, width};
  MaxPooled result{planes.restored(out.reshape(wanted)), {}};
  if (wants_indices) result.indices = planes.restored(index.reshape(wanted));
  return result;
}

std::pair<Tensor, Tensor> with_indices(const Pooling& p, const Tensor& x) {
  MaxPooled out = max_pool(p, x, true);
  return {out.values, out.indices};
}

// How many places, padding included, each window along a dim counts.
Tensor window_sizes(const Pooling& p, const Tensor& x, size_t i) {
  std::vector<double> sizes;
  const int dim = static_cast<int>(i) + 2;
  for (int64_t o = 0; o < p.out_size(x, i); ++o) {
    const int64_t start = o * p.stride[i] - p.padding[i];
    const int64_t end = std::min(start + p.kernel[i], x.size(dim) + p.padding[i]);
    sizes.push_back(static_cast<double>(end - start));
  }
  return beside(x, sizes, shape_along(5, dim, static_cast<int64_t>(sizes.size())));
}

Tensor avg_pool(const Pooling& p, const Tensor& input, bool count_include_pad,
                std::optional<int64_t> divisor_override) {
  require_floating(p.op, input);
  if (divisor_override == 0) throw_error<ValueError>(p.op, ": divisor_override must not be 0");
  if (p.is_direct(input) && !divisor_override) {
    p.check(input, input);
    PoolOptions windows = p.planes();
    windows.count_include_pad = count_include_pad;
    return wrap(AD::float_avg_pool2d(value_of(p.op, input), windows));
  }
  const Planes planes(p.op, input, p.spatial);
  p.check(input, planes.x);
  const Shape s = planes.x.shape();
  const bool counts = count_include_pad || divisor_override.has_value();
  PoolOptions flat = p.planes();
  flat.count_include_pad = counts;
  const Tensor frames = planes.x.reshape({s[0], s[1] * s[2], s[3], s[4]});
  Tensor out = wrap(AD::float_avg_pool2d(value_of(p.op, frames), flat));
  const int64_t height = out.size(2), width = out.size(3);
  if (p.spatial == 3) {
    // A box's mean is the mean of the means of its planes, all of which have the same size.
    PoolOptions deep = p.depths();
    deep.count_include_pad = counts;
    const Tensor columns = out.reshape({s[0], s[1], s[2], height * width});
    out = wrap(AD::float_avg_pool2d(value_of(p.op, columns), deep));
  }
  out = out.reshape({s[0], s[1], p.out_size(planes.x, 0), height, width});
  if (divisor_override) {
    const auto divisor = static_cast<double>(*divisor_override);
    if (!p.ceil_mode) {
      const auto size = static_cast<double>(p.kernel[0] * p.kernel[1] * p.kernel[2]);
      out = std::move(out) * (size / divisor);
    } else {
      for (size_t i = 0; i < 3; ++i) out = std::move(out) * window_sizes(p, planes.x, i);
      out = std::move(out) / divisor;
    }
  }
  return planes.restored(out);
}

Tensor lp_pool(const char* op, int spatial, const Tensor& x, double norm_type,
               const Sizes& kernel_size, const std::optional<Sizes>& stride, bool ceil_mode) {
  if (spatial == 3) {
    KILN_AUTOCAST(f32, lp_pool, op, spatial, x, norm_type, kernel_size, stride, ceil_mode);
  }
  const Pooling p(op, spatial, kernel_size, stride, 0, 1, ceil_mode);
  const Tensor mean = avg_pool(p, norm_type == 2.0 ? x.square() : x.pow(norm_type), true, {});
  const auto size = static_cast<double>(p.kernel[0] * p.kernel[1] * p.kernel[2]);
  // The sign of an odd power's sum is dropped, as PyTorch does.
  return (mean.relu() * size).pow(1.0 / norm_type);
}

Tensor max_unpool(const char* op, int spatial, const Tensor& input, const Tensor& indices,
                  const Sizes& kernel_size, const std::optional<Sizes>& strides,
                  const Sizes& paddings, const std::optional<Shape>& output_size) {
  require_floating(op, input);
  const Pooling p(op, spatial, kernel_size, strides, paddings, 1, false);
  if (!(value_of(op, indices).inner->shape() == input.shape())) {
    throw_error<ShapeError>(op, ": the indices must have the input's shape; got ", indices.shape(),
                            "; expected ", input.shape());
  }
  const Planes planes(op, input, spatial);
  const Shape s = planes.x.shape();
  Shape wanted{s[0], s[1], 0, 0, 0};
  for (int i = 0; i < 3; ++i) {
    const auto k = static_cast<size_t>(i);
    wanted[2 + i] = (s[2 + i] - 1) * p.stride[k] - 2 * p.padding[k] + p.kernel[k];
    if (!output_size || i < 3 - spatial) continue;
    // The spatial sizes, or a whole shape that ends in them.
    const int at = output_size->rank() - 3 + i;
    const int64_t given = at >= 0 && output_size->rank() <= spatial + 2 ? (*output_size)[at] : -1;
    if (output_size->rank() < spatial || given <= wanted[2 + i] - p.stride[k] ||
        given >= wanted[2 + i] + p.stride[k]) {
      throw_error<ValueError>(op, ": output_size does not fit the pooling; got ", *output_size,
                              "; expected less than a stride from ", wanted[2 + i], " in dim ", i);
    }
    wanted[2 + i] = given;
  }
  checked_numel(op, wanted);
  const int64_t places = wanted[2] * wanted[3] * wanted[4];
  const Shape flat{s[0], s[1], s[2] * s[3] * s[4]};
  const Tensor zero = zeros({s[0], s[1], places}, {input.dtype(), input.device()});
  const Tensor out = naming<IndexError>(op, [&] {
    return zero.scatter(2, wrap(index_value(op, indices)).reshape(flat), planes.x.reshape(flat));
  });
  return planes.restored(out.reshape(wanted));
}

}  // namespace

#define KILN_POOLS(n)                                                                              \
  Tensor max_pool##n##d(const Tensor& x, const Sizes& kernel_size,                                 \
                        const std::optional<Sizes>& stride, const Sizes& padding,                  \
                        const Sizes& dilation, bool ceil_mode) {                                   \
    if (n == 3) {                                                                                  \
      KILN_AUTOCAST(f32, max_pool##n##d, x, kernel_size, stride, padding, dilation, ceil_mode);    \
    }                                                                                              \
    const Pooling p("max_pool" #n "d", n, kernel_size, stride, padding, dilation, ceil_mode);      \
    return max_pool(p, x, false).values;                                                           \
  }                                                                                                \
  std::pair<Tensor, Tensor> max_pool##n##d_with_indices(                                           \
      const Tensor& x, const Sizes& kernel_size, const std::optional<Sizes>& stride,               \
      const Sizes& padding, const Sizes& dilation, bool ceil_mode) {                               \
    return with_indices({"max_pool" #n "d", n, kernel_size, stride, padding, dilation, ceil_mode}, \
                        x);                                                                        \
  }                                                                                                \
  Tensor lp_pool##n##d(const Tensor& x, double norm_type, const Sizes& kernel_size,                \
                       const std::optional<Sizes>& stride, bool ceil_mode) {                       \
    return lp_pool("lp_pool" #n "d", n, x, norm_type, kernel_size, stride, ceil_mode);             \
  }                                                                                                \
  Tensor max_unpool##n##d(const Tensor& x, const Tensor& indices, const Sizes& kernel_size,        \
                          const std::optional<Sizes>& stride, const Sizes& padding,                \
                          const std::optional<Shape>& output_size) {                               \
    KILN_AUTOCAST(f32, max_unpool##n##d, x, indices, kernel_size, stride, padding, output_size);   \
    return max_unpool("max_unpool" #n "d", n, x, indices, kernel_size, stride, padding,            \
                      output_size);                                                                \
  }
KILN_POOLS(1)
KILN_POOLS(2)
KILN_POOLS(3)
#undef KILN_POOLS

Tensor avg_pool1d(const Tensor& x, const Sizes& kernel_size, const std::optional<Sizes>& stride,
                  const Sizes& padding, bool ceil_mode, bool count_include_pad) {
  return avg_pool({"avg_pool1d", 1, kernel_size, stride, padding, 1, ceil_mode}, x,
                  count_include_pad, {});
}
Tensor avg_pool2d(const Tensor& x, const Sizes& kernel_size, const std::optional<Sizes>& stride,
                  const Sizes& padding, bool ceil_mode, bool count_include_pad,
                  std::optional<int64_t> divisor_override) {
  return avg_pool({"avg_pool2d", 2, kernel_size, stride, padding, 1, ceil_mode}, x,
                  count_include_pad, divisor_override);
}
Tensor avg_pool3d(const Tensor& x, const Sizes& kernel_size, const std::optional<Sizes>& stride,
                  const Sizes& padding, bool ceil_mode, bool count_include_pad,
                  std::optional<int64_t> divisor_override) {
  KILN_AUTOCAST(f32, avg_pool3d, x, kernel_size, stride, padding, ceil_mode, count_include_pad,
                divisor_override);
  return avg_pool({"avg_pool3d", 3, kernel_size, stride, padding, 1, ceil_mode}, x,
                  count_include_pad, divisor_override);
}

}  // namespace kiln::functional
