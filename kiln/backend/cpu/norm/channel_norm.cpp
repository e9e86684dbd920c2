// Group normalization, and the gradient of a normalization with given statistics.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/norm/norm_kernels.h"
#include "kiln/backend/cpu/operand.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/parallel.h"

namespace kiln {
namespace cpu {
namespace {

// [batch, groups * channels, plane]: a group of an image are `channels` planes, one after another.
struct ChannelGroups {
  ChannelGroups(const Shape& shape, int64_t of_groups)
      : batch(shape[0]), groups(of_groups), channels(shape[1] / of_groups), plane(1) {
    for (int d = 2; d < shape.rank(); ++d) plane *= shape[d];
  }
  int64_t all_channels() const { return groups * channels; }
  int64_t batch, groups, channels, plane;
};

int64_t pieces_of(int64_t elements) {
  return std::max<int64_t>(kGrain / std::max<int64_t>(elements, 1), 1);
}

template <class T>
double weight_of(const T* w, int64_t c) {
  return w == nullptr ? 1.0 : static_cast<double>(w[c]);
}

// y = (x - mean) rstd w + b with the statistics [batch, groups] of each group. w and b
// [groups * channels] may be null.
template <class T>
void group_norm(const ChannelGroups& s, const T* x, const T* w, const T* b, double eps, T* y,
                T* mean, T* rstd) {
  const auto& kernels = norm_kernels<T>();
  const int64_t size = s.channels * s.plane;
  parallel_for(s.batch * s.groups, pieces_of(size), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Moments all = kernels.moments(x + i * size, size);
      const double scale = 1.0 / std::sqrt(all.squares / all.count + eps);
      mean[i] = static_cast<T>(all.mean);
      rstd[i] = static_cast<T>(scale);
      const double rest = static_cast<double>(mean[i]) - all.mean;
      for (int64_t c = 0; c < s.channels; ++c) {
        const int64_t channel = i % s.groups * s.channels + c;
        const int64_t at = i * size + c * s.plane;
        const double by = scale * weight_of(w, channel);
        const double shift = b == nullptr ? 0.0 : static_cast<double>(b[channel]);
        kernels.normalize(x + at, mean[i], static_cast<T>(by), static_cast<T>(shift + rest * by),
                          y + at, s.plane);
      }
    }
  });
}

template <class T>
void group_norm_backward(const ChannelGroups& s, const T* g, const T* x, const T* w, const T* mean,
                         const T* rstd, T* dx, T* dw, T* db) {
  const auto& kernels = norm_kernels<T>();
  const int64_t size = s.channels * s.plane;
  const int64_t planes = s.batch * s.all_channels();
  const Scratch<double> sums(2 * planes);
  double* const sums_g = sums.get();
  double* const sums_gx = sums_g + planes;
  std::fill_n(sums_g, 2 * planes, 0.0);
  parallel_for(s.batch * s.groups, pieces_of(size), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % s.groups * s.channels;
      double sum_g = 0.0, sum_gx = 0.0;
      for (int64_t c = 0; c < s.channels; ++c) {
        const int64_t plane = i * s.channels + c;
        const int64_t at = plane * s.plane;
        kernels.gradient_sums(g + at, x + at, mean[i], s.plane, sums_g + plane, sums_gx + plane);
        sum_g += weight_of(w, first + c) * sums_g[plane];
        sum_gx += weight_of(w, first + c) * sums_gx[plane];
      }
      // rstd (w g - mean(w g) - x' mean(w g x')) with x' = (x - mean) rstd.
      const auto scale = static_cast<double>(rstd[i]);
      const auto count = static_cast<double>(size);
      const auto by_x = static_cast<T>(-scale * scale * scale * sum_gx / count);
      const auto shift = static_cast<T>(-scale * sum_g / count);
      for (int64_t c = 0; c < s.channels; ++c) {
        const int64_t at = (i * s.channels + c) * s.plane;
        kernels.normalize_backward(g + at, x + at, mean[i],
                                   static_cast<T>(scale * weight_of(w, first + c)), by_x, shift,
                                   dx + at, s.plane);
      }
    }
  });
  for (int64_t c = 0; c < s.all_channels(); ++c) {
    double of_w = 0.0, of_b = 0.0;
    for (int64_t n = 0; n < s.batch; ++n) {
      const int64_t plane = n * s.all_channels() + c;
      of_w += sums_gx[plane] * static_cast<double>(rstd[n * s.groups + c / s.channels]);
      of_b += sums_g[plane];
    }
    dw[c] = static_cast<T>(of_w);
    db[c] = static_cast<T>(of_b);
  }
}

// Of y = (x - mean) rsqrt(var + eps) w + b with statistics [channels] (one group) that are no
// function of x.
template <class T>
void affine_norm_backward(const ChannelGroups& s, const T* g, const T* x, const T* mean,
                          const T* var, const T* w, double eps, T* dx, T* dw, T* db) {
  const auto& kernels = norm_kernels<T>();
  const int64_t channels = s.all_channels();
  parallel_for(channels, pieces_of(s.batch * s.plane), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const double rstd = 1.0 / std::sqrt(static_cast<double>(var[c]) + eps);
      const auto scale = static_cast<T>(rstd * weight_of(w, c));
      double sum_g = 0.0, sum_gx = 0.0;
      for (int64_t n = 0; n < s.batch; ++n) {
        const int64_t at = (n * channels + c) * s.plane;
        kernels.gradient_sums(g + at, x + at, mean[c], s.plane, &sum_g, &sum_gx);
        kernels.normalize(g + at, T(0), scale, T(0), dx + at, s.plane);
      }
      dw[c] = static_cast<T>(sum_gx * rstd);
      db[c] = static_cast<T>(sum_g);
    }
  });
}

template <class F>
void visit(DType dtype, F f) {
  dtype == DType::f64 ? f.template operator()<double>() : f.template operator()<float>();
}

using Three = std::tuple<HostHandle, HostHandle, HostHandle>;

Three all_narrowed(Three wide, DType dtype) {
  auto& [a, b, c] = wide;
  return {narrowed(std::move(a), dtype), narrowed(std::move(b), dtype),
          narrowed(std::move(c), dtype)};
}

}  // namespace
}  // namespace cpu

cpu::Three CpuOps::float_group_norm(Arg<HostHandle> x, const HostHandle* weight,
                                    const HostHandle* bias, int64_t groups, double eps) {
  const DType dtype = x->dtype();
  if (cpu::is_half(dtype)) {
    const cpu::OptionalOperand w(weight, cpu::widened);
    const cpu::OptionalOperand b(bias, cpu::widened);
    return cpu::all_narrowed(float_group_norm(cpu::widened(x), w.get(), b.get(), groups, eps),
                             dtype);
  }
  const cpu::OptionalOperand w(weight, cpu::contiguous);
  const cpu::OptionalOperand b(bias, cpu::contiguous);
  const cpu::ReusableOperand in(x);
  HostHandle y = in.result();
  const Shape kept{y->shape()[0], groups};
  HostHandle mean = host::empty(kept, dtype, y->device());
  HostHandle rstd = host::empty(kept, dtype, y->device());
  cpu::visit(dtype, [&]<class T>() {
    cpu::group_norm<T>(cpu::ChannelGroups(y->shape(), groups), in.tensor().data_as<const T>(),
                       w.data<T>(), b.data<T>(), eps, y->data_as<T>(), mean->data_as<T>(),
                       rstd->data_as<T>());
  });
  return {std::move(y), std::move(mean), std::move(rstd)};
}

cpu::Three CpuOps::float_group_norm_backward(Arg<HostHandle> g, Arg<HostHandle> x,
                                             const HostHandle* weight, Arg<HostHandle> mean,
                                             Arg<HostHandle> rstd, int64_t groups, double eps) {
  const DType dtype = x->dtype();
  if (cpu::is_half(dtype)) {
    const cpu::OptionalOperand w(weight, cpu::widened);
    return cpu::all_narrowed(
        float_group_norm_backward(cpu::widened(g), cpu::widened(x), w.get(), cpu::widened(mean),
                                  cpu::widened(rstd), groups, eps),
        dtype);
  }
  const cpu::OptionalOperand w(weight, cpu::contiguous);
  const HostHandle in = cpu::contiguous(x.get());
  const HostHandle m = cpu::contiguous(mean.get());
  const HostHandle r = cpu::contiguous(rstd.get());
  const cpu::ReusableOperand grad(g);
  HostHandle dx = grad.result();
  HostHandle dw = host::empty(Shape{in->shape()[1]}, dtype, dx->device());
  HostHandle db = host::empty(Shape{in->shape()[1]}, dtype, dx->device());
  cpu::visit(dtype, [&]<class T>() {
    cpu::group_norm_backward<T>(cpu::ChannelGroups(in->shape(), groups),
                                grad.tensor().data_as<const T>(), in->data_as<const T>(),
                                w.data<T>(), m->data_as<const T>(), r->data_as<const T>(),
                                dx->data_as<T>(), dw->data_as<T>(), db->data_as<T>());
  });
  return {std::move(dx), std::move(dw), std::move(db)};
}

cpu::Three CpuOps::float_batch_norm_inference_backward(Arg<HostHandle> g, Arg<HostHandle> x,
                                                       Arg<HostHandle> mean, Arg<HostHandle> var,
                                                       const HostHandle* weight, double eps) {
  const DType dtype = x->dtype();
  if (cpu::is_half(dtype)) {
    const cpu::OptionalOperand w(weight, cpu::widened);
    const DType sums = mean->dtype();
    auto [dx, dw, db] = float_batch_norm_inference_backward(
        cpu::widened(g), cpu::widened(x), cpu::widened(mean), cpu::widened(var), w.get(), eps);
    return {cpu::narrowed(std::move(dx), dtype), cpu::narrowed(std::move(dw), sums),
            cpu::narrowed(std::move(db), sums)};
  }
  const cpu::OptionalOperand w(weight, cpu::contiguous);
  const HostHandle in = cpu::contiguous(x.get());
  const HostHandle m = cpu::contiguous(mean.get());
  const HostHandle v = cpu::contiguous(var.get());
  const cpu::ReusableOperand grad(g);
  HostHandle dx = grad.result();
  HostHandle dw = host::empty(Shape{in->shape()[1]}, dtype, dx->device());
  HostHandle db = host::empty(Shape{in->shape()[1]}, dtype, dx->device());
  cpu::visit(dtype, [&]<class T>() {
    cpu::affine_norm_backward<T>(cpu::ChannelGroups(in->shape(), 1),
                                 grad.tensor().data_as<const T>(), in->data_as<const T>(),
                                 m->data_as<const T>(), v->data_as<const T>(), w.data<T>(), eps,
                                 dx->data_as<T>(), dw->data_as<T>(), db->data_as<T>());
  });
  return {std::move(dx), std::move(dw), std::move(db)};
}

}  // namespace kiln
