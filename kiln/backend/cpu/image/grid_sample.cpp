// Images read at points: float_grid_sample and its gradients.
#include <algorithm>
#include <limits>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/image/grid_kernels.h"
#include "kiln/core/parallel.h"

namespace kiln {
namespace cpu {
namespace {

// One pass over an image's points, forward and backward.
class Sampler {
 public:
  Sampler(const Shape& x, int64_t points, const GridOptions& how)
      : images_(x[0]), channels_(x[1]), points_(points) {
    spec_.dims = x.rank() - 2;
    spec_.outside = how.outside;
    spec_.between = how.between;
    spec_.align_corners = how.align_corners;
    for (int i = spec_.dims; i-- > 0;) {
      GridDim& dim = spec_.dim[i];
      dim.size = x[i + 2];
      dim.stride = places_;
      places_ *= dim.size;
      if (!how.normalized) continue;
      const auto n = static_cast<double>(dim.size);
      dim.shift = 1.0;
      dim.scale = how.align_corners ? (n - 1.0) / 2.0 : n;
      dim.offset = how.align_corners ? 0.0 : 1.0;
      dim.half = how.align_corners ? 1.0 : 0.5;
    }
  }

  // Whether the kernels can count the elements of an image.
  bool fits() const { return places_ < std::numeric_limits<int32_t>::max(); }

  template <class T>
  void read(const T* x, const T* points, T* out) const {
    for_blocks([&](int64_t image, int64_t first, int64_t n) {
      grid_kernels<T>().read(spec_, points + (image * points_ + first) * spec_.dims, n,
                             x + image * channels_ * places_, channels_, places_,
                             out + image * channels_ * points_ + first, points_);
    });
  }

  template <class T>
  void slopes(const T* x, const T* points, const T* grad, T* grad_points) const {
    for_blocks([&](int64_t image, int64_t first, int64_t n) {
      const int64_t at = (image * points_ + first) * spec_.dims;
      grid_kernels<T>().slopes(spec_, points + at, n, x + image * channels_ * places_, channels_,
                               places_, grad + image * channels_ * points_ + first, points_,
                               grad_points + at);
    });
  }

  // Adds to grad_x. A few channels at a time, which no two threads share.
  template <class T>
  void scatter(const T* points, const T* grad, T* grad_x) const {
    constexpr int64_t kChannels = 8;
    const int64_t groups = (channels_ + kChannels - 1) / kChannels;
    parallel_for(images_ * groups, 1, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t image = k / groups, channel = k % groups * kChannels;
        const int64_t row = image * channels_ + channel;
        for (int64_t first = 0; first < points_; first += kGridBlock) {
          grid_kernels<T>().scatter(
              spec_, points + (image * points_ + first) * spec_.dims,
              std::min(kGridBlock, points_ - first), grad + row * points_ + first,
              std::min(kChannels, channels_ - channel), points_, grad_x + row * places_, places_);
        }
      }
    });
  }

 private:
  // f(image, first point, number of points).
  template <class F>
  void for_blocks(F&& f) const {
    const int64_t blocks = (points_ + kGridBlock - 1) / kGridBlock;
    parallel_for(images_ * blocks, 4, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t first = k % blocks * kGridBlock;
        f(k / blocks, first, std::min(kGridBlock, points_ - first));
      }
    });
  }

  GridSpec spec_;
  int64_t images_, channels_, points_;
  int64_t places_ = 1;
};

template <class F>
void visit_wide(DType dtype, F f) {
  dtype == DType::f64 ? f.template operator()<double>() : f.template operator()<float>();
}

}  // namespace
}  // namespace cpu

HostHandle CpuOps::float_grid_sample(Arg<HostHandle> x, Arg<HostHandle> points,
                                     const GridOptions& options) {
  const Shape s = x->shape();
  const cpu::Sampler sampler(s, points->shape()[1], options);
  if (!sampler.fits()) return BackendDefaults<Cpu>::float_grid_sample(x, points, options);
  const HostHandle image = cpu::contiguous(x);
  const HostHandle places = cpu::contiguous(points);
  HostHandle out =
      host::empty(Shape{s[0], s[1], points->shape()[1]}, image->dtype(), image->device());
  cpu::visit_wide(image->dtype(), [&]<class T>() {
    sampler.read(image->data_as<const T>(), places->data_as<const T>(), out->data_as<T>());
  });
  return out;
}

HostHandle CpuOps::float_grid_sample_input_grad(Arg<HostHandle> g, Arg<HostHandle> points,
                                                const Shape& x_shape, const GridOptions& options) {
  const cpu::Sampler sampler(x_shape, points->shape()[1], options);
  if (!sampler.fits()) {
    return BackendDefaults<Cpu>::float_grid_sample_input_grad(g, points, x_shape, options);
  }
  const HostHandle grad = cpu::contiguous(g);
  const HostHandle places = cpu::contiguous(points);
  HostHandle out = Cpu::float_full(x_shape, Scalar(0.0), grad->dtype(), grad->device());
  cpu::visit_wide(grad->dtype(), [&]<class T>() {
    sampler.scatter(places->data_as<const T>(), grad->data_as<const T>(), out->data_as<T>());
  });
  return out;
}

HostHandle CpuOps::float_grid_sample_points_grad(Arg<HostHandle> g, Arg<HostHandle> x,
                                                 Arg<HostHandle> points,
                                                 const GridOptions& options) {
  const cpu::Sampler sampler(x->shape(), points->shape()[1], options);
  if (!sampler.fits()) {
    return BackendDefaults<Cpu>::float_grid_sample_points_grad(g, x, points, options);
  }
  const HostHandle grad = cpu::contiguous(g);
  const HostHandle image = cpu::contiguous(x);
  const HostHandle places = cpu::contiguous(points);
  HostHandle out = host::empty(places->shape(), places->dtype(), places->device());
  cpu::visit_wide(image->dtype(), [&]<class T>() {
    sampler.slopes(image->data_as<const T>(), places->data_as<const T>(), grad->data_as<const T>(),
                   out->data_as<T>());
  });
  return out;
}

}  // namespace kiln
