#include "kiln/tensor/nn/fractional_pooling.h"

#include <algorithm>
#include <cmath>

#include "kiln/core/parallel.h"
#include "kiln/tensor/host_memory.h"
#include "kiln/tensor/nn/functional_support.h"
#include "kiln/tensor/random/random_ops.h"

namespace kiln::functional {

using namespace detail;

namespace {

// Where the windows of one dim of a plane begin. T: what PyTorch computes it in, the dtype of x.
template <class T>
std::vector<int64_t> starts_of(T sample, int64_t in, int64_t out, int64_t kernel) {
  if (!(sample >= T(0) && sample < T(1))) {
    throw_error<ValueError>("fractional_max_pool: a random sample is out of range; got ",
                            static_cast<double>(sample), "; expected 0 <= sample < 1");
  }
  std::vector<int64_t> starts(static_cast<size_t>(out));
  const T step = out > 1 ? static_cast<T>(in - kernel) / static_cast<T>(out - 1) : T(0);
  for (int64_t i = 0; i + 1 < out; ++i) {
    const int64_t start = static_cast<int64_t>((static_cast<T>(i) + sample) * step) -
                          static_cast<int64_t>(sample * step);
    starts[static_cast<size_t>(i)] = std::min(start, in - kernel);
  }
  if (out > 0) starts.back() = in - kernel;
  return starts;
}

// Everything about the three spatial dims; 2-d ops have a depth of 1 in front.
struct Geometry {
  Triple in, out, kernel;
  int spatial;
};

template <class T>
void find_largest(const T* x, const T* samples, int64_t plane, const Geometry& g, int64_t* at) {
  const T* sample = samples + plane * g.spatial;
  std::array<std::vector<int64_t>, 3> starts;
  for (size_t d = 0; d < 3; ++d) {
    // In 2-d the width's sample comes first, in 3-d the depth's.
    const T s = g.spatial == 3 ? sample[d] : d == 0 ? T(0) : sample[2 - d];
    starts[d] = starts_of(s, g.in[d], g.out[d], g.kernel[d]);
  }
  x += plane * g.in[0] * g.in[1] * g.in[2];
  at += plane * g.out[0] * g.out[1] * g.out[2];
  for (const int64_t d : starts[0]) {
    for (const int64_t h : starts[1]) {
      for (const int64_t w : starts[2]) {
        int64_t best = (d * g.in[1] + h) * g.in[2] + w;
        T top = x[best];
        for (int64_t i = d; i < d + g.kernel[0]; ++i) {
          for (int64_t j = h; j < h + g.kernel[1]; ++j) {
            const int64_t row = (i * g.in[1] + j) * g.in[2];
            for (int64_t k = row + w; k < row + w + g.kernel[2]; ++k) {
              // Without a branch, which nobody could predict.
              const T value = x[k];
              const bool better = static_cast<int>(value > top) | static_cast<int>(value != value);
              best = better ? k : best;
              top = better ? value : top;
            }
          }
        }
        *at++ = best;
      }
    }
  }
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
  Geometry g;
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
  const int64_t places = g.out[0] * g.out[1] * g.out[2];
  const int64_t count = s[0] * s[1];
  TensorData found(Shape{s[0], s[1], places}, i64);
  int64_t* at = found.as_mutable<int64_t>().data();
  const TensorData values = shared_data(planes.x.detach().to(wide).to(Device(kCpu)));
  const TensorData chances = shared_data(samples.detach().to(wide).to(Device(kCpu)));
  const int64_t grain = std::max<int64_t>(1, 32768 / (places * g.kernel[0] * g.kernel[1]));
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      if (wide == f64) {
        find_largest(values.as<double>().data(), chances.as<double>().data(), plane, g, at);
      } else {
        find_largest(values.as<float>().data(), chances.as<float>().data(), plane, g, at);
      }
    }
  });
  const Tensor index = Tensor(found, input.device());
  const Tensor flat = planes.x.reshape({s[0], s[1], s[2] * s[3] * s[4]});
  const Shape shape{s[0], s[1], g.out[0], g.out[1], g.out[2]};
  return {planes.restored(flat.gather(2, index).reshape(shape)),
          planes.restored(index.reshape(shape))};
}

}  // namespace

Tensor fractional_max_pool2d(const Tensor& x, const Sizes& kernel_size,
                             const FractionalPoolOptions& options) {
  return pooled("fractional_max_pool2d", 2, x, kernel_size, options).first;
}
Tensor fractional_max_pool3d(const Tensor& x, const Sizes& kernel_size,
                             const FractionalPoolOptions& options) {
  return pooled("fractional_max_pool3d", 3, x, kernel_size, options).first;
}
std::pair<Tensor, Tensor> fractional_max_pool2d_with_indices(const Tensor& x,
                                                             const Sizes& kernel_size,
                                                             const FractionalPoolOptions& options) {
  return pooled("fractional_max_pool2d", 2, x, kernel_size, options);
}
std::pair<Tensor, Tensor> fractional_max_pool3d_with_indices(const Tensor& x,
                                                             const Sizes& kernel_size,
                                                             const FractionalPoolOptions& options) {
  return pooled("fractional_max_pool3d", 3, x, kernel_size, options);
}

}  // namespace kiln::functional
