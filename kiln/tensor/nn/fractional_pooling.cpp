#include "kiln/tensor/nn/fractional_pooling.h"

#include <algorithm>
#include <cmath>

#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/index/advanced_index.h"
#include "kiln/tensor/nn/functional_support.h"
#include "kiln/tensor/nn/largest_places.h"
#include "kiln/tensor/random/random_ops.h"

namespace kiln::functional {

using namespace detail;

namespace {

// Everything about the three spatial dims; 2-d ops have a depth of 1 in front.
struct PoolGeometry {
  Triple in, out, kernel;
  int spatial;
};

// Where the windows of dim d begin, [N C, out], from the planes' samples [N C, spatial]. Computed
// in the dtype of x, as PyTorch does.
Tensor starts_of(const Tensor& samples, const PoolGeometry& g, size_t d) {
  const int64_t room = g.in[d] - g.kernel[d], out = g.out[d];
  const TensorOptions options{samples.dtype(), samples.device()};
  const int64_t planes = samples.size(0);
  if (out == 1) return full({planes, 1}, room, {i64, samples.device()});
  const bool is_double = samples.dtype() == f64;
  const double wide = static_cast<double>(room) / static_cast<double>(out - 1);
  const double step =
      is_double ? wide
                : static_cast<double>(static_cast<float>(room) / static_cast<float>(out - 1));
  // In 2-d the width's sample comes first, in 3-d the depth's.
  const auto which = static_cast<int64_t>(g.spatial == 3 ? d : 2 - d);
  const Tensor sample = samples.select(1, which).unsqueeze(1);
  const Tensor first = sample.mul(step).to(i64);
  const Tensor moved = sample.add(arange(0, out - 1, 1, options)).mul(step).to(i64);
  const Tensor starts = moved.sub(first).clamp({}, static_cast<double>(room)).to(i64);
  return cat({starts, full({planes, 1}, room, {i64, samples.device()})}, 1);
}

void check_samples(const Tensor& samples) {
  if (samples.numel() == 0) return;
  const Tensor fits = samples.ge(0).logical_and(samples.lt(1));
  if (fits.all().item() != 0.0) return;
  const Tensor wrong = kiln::masked_select(samples, fits.logical_not());
  throw_error<ValueError>("fractional_max_pool: a random sample is out of range; got ",
                          wrong.select(0, 0).item(), "; expected 0 <= sample < 1");
}

Triple output_of(const char* op, const FractionalPoolOptions& options, const Triple& in,
                 int spatial) {
  if (options.output_size.has_value() != options.output_ratio.empty()) {
    throw_error<ValueError>(op, ": expected either output_size or output_ratio; got ",
                            options.output_size ? "both" : "neither");
  }
  if (options.output_size) {
    return triple_of(op, "output_size", *options.output_size, spatial, 1, 1);
  }
  const std::vector<double>& ratio = options.output_ratio;
  Triple out{1, 1, 1};
  if (ratio.size() != 1 && ratio.size() != static_cast<size_t>(spatial)) {
    throw_error<ValueError>(op, ": expected one output_ratio or ", spatial, "; got ", ratio.size());
  }
  for (size_t i = 0; i < static_cast<size_t>(spatial); ++i) {
    const double r = ratio[ratio.size() == 1 ? 0 : i];
    if (!(r > 0.0 && r < 1.0)) {
      throw_error<ValueError>(op, ": expected 0 < output_ratio < 1; got ", r);
    }
    const size_t d = 3 - static_cast<size_t>(spatial) + i;
    out[d] = static_cast<int64_t>(static_cast<double>(in[d]) * r);
  }
  return out;
}

std::pair<Tensor, Tensor> pooled(const char* op, int spatial, const Tensor& input,
                                 const Sizes& kernel_size, const FractionalPoolOptions& options) {
  require_floating(op, input);
  const Planes planes(op, input, spatial);
  const Shape s = planes.x.shape();
  PoolGeometry g;
  g.spatial = spatial;
  g.in = {s[2], s[3], s[4]};
  g.kernel = triple_of(op, "kernel_size", kernel_size, spatial, 1, 1);
  g.out = output_of(op, options, g.in, spatial);
  for (size_t d = 0; d < 3; ++d) {
    if (g.out[d] < 1 || g.out[d] + g.kernel[d] - 1 > g.in[d]) {
      throw_error<ShapeError>(op, ": the windows do not fit; got an input of ",
                              text_of(g.in, spatial), ", kernel_size ", text_of(g.kernel, spatial),
                              " and output_size ", text_of(g.out, spatial),
                              "; expected output_size + kernel_size - 1 <= the input's size");
    }
  }
  const DType wide = wide_dtype(input.dtype());
  const Shape wanted{s[0], s[1], spatial};
  Tensor samples = options.random_samples;
  if (!samples.defined()) {
    samples = rand(wanted, {input.dtype(), input.device()});
  } else {
    require_alike(op, input, samples, "random_samples");
    if (!(samples.shape() == wanted)) {
      throw_error<ShapeError>(op, ": the random samples do not fit; got ", samples.shape(),
                              "; expected ", wanted);
    }
  }
  // Those that were drawn here are in range.
  if (options.random_samples.defined()) check_samples(samples.detach());
  samples = samples.detach().to(wide).reshape({s[0] * s[1], spatial});
  std::vector<Tensor> starts;
  std::vector<int64_t> lengths;
  Shape out, longest;
  for (size_t d = 0; d < 3; ++d) {
    starts.push_back(starts_of(samples, g, d));
    lengths.insert(lengths.end(), static_cast<size_t>(g.out[d]), g.kernel[d]);
    out.push_back(g.out[d]);
    longest.push_back(g.kernel[d]);
  }
  const Tensor index = largest_places(planes.x, cat(std::span<const Tensor>(starts), 1),
                                      beside(planes.x, lengths), out, longest);
  const Tensor flat = planes.x.reshape({s[0], s[1], s[2] * s[3] * s[4]});
  const Shape shape{s[0], s[1], g.out[0], g.out[1], g.out[2]};
  return {planes.restored(flat.gather(2, index).reshape(shape)),
          planes.restored(index.reshape(shape))};
}

FractionalPoolOptions cast_samples(const FractionalPoolOptions& options) {
  return amp::detail::cast_member(options, &FractionalPoolOptions::random_samples, f32);
}

}  // namespace

Tensor fractional_max_pool2d(const Tensor& x, const Sizes& kernel_size,
                             const FractionalPoolOptions& options) {
  KILN_AUTOCAST(f32, fractional_max_pool2d, x, kernel_size, cast_samples(options));
  return pooled("fractional_max_pool2d", 2, x, kernel_size, options).first;
}
Tensor fractional_max_pool3d(const Tensor& x, const Sizes& kernel_size,
                             const FractionalPoolOptions& options) {
  KILN_AUTOCAST(f32, fractional_max_pool3d, x, kernel_size, cast_samples(options));
  return pooled("fractional_max_pool3d", 3, x, kernel_size, options).first;
}
std::pair<Tensor, Tensor> fractional_max_pool2d_with_indices(const Tensor& x,
                                                             const Sizes& kernel_size,
                                                             const FractionalPoolOptions& options) {
  KILN_AUTOCAST(f32, fractional_max_pool2d_with_indices, x, kernel_size, cast_samples(options));
  return pooled("fractional_max_pool2d", 2, x, kernel_size, options);
}
std::pair<Tensor, Tensor> fractional_max_pool3d_with_indices(const Tensor& x,
                                                             const Sizes& kernel_size,
                                                             const FractionalPoolOptions& options) {
  KILN_AUTOCAST(f32, fractional_max_pool3d_with_indices, x, kernel_size, cast_samples(options));
  return pooled("fractional_max_pool3d", 3, x, kernel_size, options);
}

}  // namespace kiln::functional
