#include "kiln/tensor/nn/grid_sampling.h"

#include <cmath>
#include <limits>

#include "kiln/core/parallel.h"
#include "kiln/tensor/autograd/custom_function.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/interop.h"
#include "kiln/tensor/nn/functional_support.h"

namespace kiln::detail {

namespace {

using Outside = cpu::GridOutside;
using Between = cpu::GridBetween;
using Sampling = PointSampling;

// One element that a point reads along one dim: its index, and its weight (undefined: 1).
struct Tap {
  Tensor index;
  Tensor weight;
};

// How points [N, L] along one dim of `size` elements read it.
struct Reader {
  int64_t size;
  Outside outside;
  Between between;
  bool align_corners;

  // Mirrored at both ends until it lies inside.
  Tensor reflected(const Tensor& at) const {
    // The mirrors stand at `low` and low + span: pixel centers, or the outer edges of pixels.
    const double low = align_corners ? 0.0 : -0.5;
    const double span = static_cast<double>(align_corners ? size - 1 : size);
    if (span == 0.0) return at * 0.0;
    const Tensor distance = (at - low).abs();
    const Tensor flips = kiln::floor(distance / span).detach();
    const Tensor extra = distance - flips * span;
    const Tensor odd = (flips - kiln::floor(flips / 2.0) * 2.0).gt(0.5);
    return where(odd, span - extra, extra) + low;
  }
  Tensor limited(const Tensor& at) const { return at.clamp(0.0, static_cast<double>(size - 1)); }
  // The coordinate of an element that is read, moved inside. With zeros there is one element of 0
  // at each end, which everything outside comes to lie on.
  Tensor inside(const Tensor& at) const {
    if (outside == Outside::zeros) return at.clamp(-1.0, static_cast<double>(size)) + 1.0;
    return limited(outside == Outside::reflection ? reflected(at) : at);
  }
  Tensor index_of(const Tensor& at) const { return inside(at.detach()).to(i64); }
  int64_t padded_size() const { return outside == Outside::zeros ? size + 2 : size; }

  std::vector<Tap> taps(Tensor at) const {
    // Far outside (or nowhere) is as good as just outside, and stays a number.
    at = at.masked_fill(at.isnan(), -4.0);
    if (between != Between::cubic) {
      if (outside == Outside::reflection) at = limited(reflected(at));
      if (outside == Outside::border) at = limited(at);
    }
    at = at.clamp(outside == Outside::zeros ? -4.0 : -1e9,
                  outside == Outside::zeros ? static_cast<double>(size) + 3.0 : 1e9);
    if (between == Between::nearest) return {{index_of(at.detach().round()), {}}};
    const Tensor first = kiln::floor(at.detach());
    const Tensor t = at - first;
    if (between == Between::linear) {
      return {{index_of(first), 1.0 - t}, {index_of(first + 1.0), t}};
    }
    constexpr double a = -0.75;
    const auto near = [&](const Tensor& x) { return ((a + 2) * x - (a + 3)) * x * x + 1.0; };
    const auto far = [&](const Tensor& x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
    return {{index_of(first - 1.0), far(t + 1.0)},
            {index_of(first), near(t)},
            {index_of(first + 1.0), near(1.0 - t)},
            {index_of(first + 2.0), far(2.0 - t)}};
  }
};

// From [-1, 1] to elements.
Tensor in_elements(const Tensor& at, int64_t size, bool align_corners) {
  const auto n = static_cast<double>(size);
  if (align_corners) return (at + 1.0) * ((n - 1.0) / 2.0);
  return ((at + 1.0) * n - 1.0) / 2.0;
}

// x [N, C, spatial..] read at points [N, L, spatial], the last dim's coordinate first, -> [N, C,
// L]; from ops that have gradients of any order.
Tensor composed(const Tensor& x, const Tensor& points, const Sampling& how) {
  const Shape s = x.shape();
  Tensor padded = x;
  std::vector<std::vector<Tap>> taps;
  std::vector<int64_t> sizes;
  const int64_t spatial = points.size(2);
  for (int64_t i = 0; i < spatial; ++i) {
    const int dim = static_cast<int>(i) + 2;
    const Reader reader{s[dim], how.outside, how.between, how.align_corners};
    Tensor at = points.select(2, spatial - 1 - i);
    if (how.normalized) at = in_elements(at, s[dim], how.align_corners);
    taps.push_back(reader.taps(at));
    sizes.push_back(reader.padded_size());
    if (how.outside == Outside::zeros) padded = padded_dim(padded, dim, 1, 1);
  }
  // A row of channels for each element of each image, so that a point reads rows.
  const int64_t count = points.size(1);
  const Tensor flat = padded.reshape({s[0], s[1], -1}).transpose(1, 2).reshape({-1, s[1]});
  const int64_t places = s[0] == 0 ? 0 : flat.size(0) / s[0];
  const Tensor first_row = arange(s[0], {i64, x.device()}).unsqueeze(1) * places;
  Tensor sum;
  // Every combination of the dims' taps.
  std::vector<size_t> chosen(taps.size(), 0);
  for (bool more = true; more;) {
    Tensor index, weight;
    for (size_t i = 0; i < taps.size(); ++i) {
      const Tap& tap = taps[i][chosen[i]];
      index = i == 0 ? tap.index : index * sizes[i] + tap.index;
      if (tap.weight.defined()) weight = weight.defined() ? weight * tap.weight : tap.weight;
    }
    Tensor part = flat.index_select(0, (index + first_row).reshape({-1}));
    if (weight.defined()) part = std::move(part) * weight.reshape({-1, 1});
    sum = sum.defined() ? std::move(sum) + std::move(part) : std::move(part);
    more = false;
    for (size_t i = taps.size(); i-- > 0;) {
      if (++chosen[i] < taps[i].size()) {
        more = true;
        break;
      }
      chosen[i] = 0;
    }
  }
  return sum.reshape({s[0], count, s[1]}).transpose(1, 2).contiguous();
}

// The same in one pass over host memory, forward and backward.
class Sampler {
 public:
  Sampler(const Shape& x, int64_t points, const Sampling& how)
      : images_(x[0]), channels_(x[1]), points_(points) {
    spec_.dims = x.rank() - 2;
    spec_.outside = how.outside;
    spec_.between = how.between;
    spec_.align_corners = how.align_corners;
    for (int i = spec_.dims; i-- > 0;) {
      cpu::GridDim& dim = spec_.dim[i];
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
      cpu::grid_kernels<T>().read(spec_, points + (image * points_ + first) * spec_.dims, n,
                                  x + image * channels_ * places_, channels_, places_,
                                  out + image * channels_ * points_ + first, points_);
    });
  }

  template <class T>
  void slopes(const T* x, const T* points, const T* grad, T* grad_points) const {
    for_blocks([&](int64_t image, int64_t first, int64_t n) {
      const int64_t at = (image * points_ + first) * spec_.dims;
      cpu::grid_kernels<T>().slopes(spec_, points + at, n, x + image * channels_ * places_,
                                    channels_, places_, grad + image * channels_ * points_ + first,
                                    points_, grad_points + at);
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
        for (int64_t first = 0; first < points_; first += cpu::kGridBlock) {
          cpu::grid_kernels<T>().scatter(
              spec_, points + (image * points_ + first) * spec_.dims,
              std::min(cpu::kGridBlock, points_ - first), grad + row * points_ + first,
              std::min(kChannels, channels_ - channel), points_, grad_x + row * places_, places_);
        }
      }
    });
  }

 private:
  // f(image, first point, number of points).
  template <class F>
  void for_blocks(F&& f) const {
    const int64_t blocks = (points_ + cpu::kGridBlock - 1) / cpu::kGridBlock;
    parallel_for(images_ * blocks, 4, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t first = k % blocks * cpu::kGridBlock;
        f(k / blocks, first, std::min(cpu::kGridBlock, points_ - first));
      }
    });
  }

  cpu::GridSpec spec_;
  int64_t images_, channels_, points_;
  int64_t places_ = 1;
};

Tensor on_host(const Tensor& x) { return x.detach().to(Device(kCpu)).contiguous(); }

// f(T) for a tensor's dtype, f32 or f64.
template <class F>
void visit_wide(const Tensor& x, F&& f) {
  if (x.dtype() == f32) {
    f.template operator()<float>();
  } else {
    f.template operator()<double>();
  }
}
template <class T>
T* data_of(const Tensor& x) {
  return static_cast<T*>(interop::data(x));
}

struct GridSample : Function<GridSample> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x, const Tensor& points,
                        const Sampling& how) {
    ctx.save_for_backward({x, points});
    ctx.saved_data()["how"] = how;
    const Tensor image = on_host(x), places = on_host(points);
    const Tensor out = empty({x.size(0), x.size(1), points.size(1)}, {x.dtype()});
    const Sampler sampler(x.shape(), points.size(1), how);
    visit_wide(x, [&]<class T>() {
      sampler.read(data_of<const T>(image), data_of<const T>(places), data_of<T>(out));
    });
    return out.to(x.device());
  }

  static TensorList backward(FunctionContext& ctx, const TensorList& grads) {
    const auto how = std::any_cast<Sampling>(ctx.saved_data()["how"]);
    const TensorList saved = ctx.saved_tensors();
    if (is_grad_enabled()) {  // a pass that is recorded
      TensorList wanted;
      for (size_t i = 0; i < 2; ++i) {
        if (ctx.needs_input_grad(i)) wanted.push_back(saved[i]);
      }
      const Tensor out = composed(saved[0], saved[1], how);
      TensorList found =
          kiln::grad(std::span<const Tensor>(&out, 1), wanted,
                     {.grad_outputs = {grads[0]}, .create_graph = true, .allow_unused = true});
      TensorList result(3);
      size_t next = 0;
      for (size_t i = 0; i < 2; ++i) {
        if (ctx.needs_input_grad(i)) result[i] = found[next++];
      }
      return result;
    }
    const Tensor image = on_host(saved[0]), points = on_host(saved[1]), grad = on_host(grads[0]);
    const Sampler sampler(image.shape(), points.size(1), how);
    TensorList result(3);
    visit_wide(image, [&]<class T>() {
      if (ctx.needs_input_grad(0)) {
        const Tensor to = zeros(image.shape(), {image.dtype()});
        sampler.scatter(data_of<const T>(points), data_of<const T>(grad), data_of<T>(to));
        result[0] = to.to(saved[0].device());
      }
      if (ctx.needs_input_grad(1)) {
        const Tensor to = empty(points.shape(), {points.dtype()});
        sampler.slopes(data_of<const T>(image), data_of<const T>(points), data_of<const T>(grad),
                       data_of<T>(to));
        result[1] = to.to(saved[1].device());
      }
    });
    return result;
  }
};

}  // namespace

Tensor sampled_points(const Tensor& x, const Tensor& points, const PointSampling& how) {
  if (!Sampler(x.shape(), points.size(1), how).fits()) return composed(x, points, how);
  return GridSample::apply(x, points, how);
}

}  // namespace kiln::detail
