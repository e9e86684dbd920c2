// Batch normalization. One channel is one piece of work: its planes are read once from memory, for
// the statistics, and again from the cache, to normalize them. (Rows of channels: column_norm.h.)
#include <algorithm>
#include <cmath>
#include <tuple>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/norm/column_norm.h"
#include "kiln/backend/cpu/norm/norm_kernels.h"
#include "kiln/backend/cpu/operand.h"
#include "kiln/core/parallel.h"

namespace kiln {
namespace {

using cpu::norm_kernels;

// Planes shorter than this, but for those of one element, are gathered channel by channel first.
constexpr int64_t kShortPlane = 16;

// A row-major [N, C, ...] as planes: plane (n, c) starts at (n * C + c) * plane.
struct Planes {
  int64_t batch, channels, plane;

  explicit Planes(const Shape& shape) : batch(shape[0]), channels(shape[1]), plane(1) {
    for (int d = 2; d < shape.rank(); ++d) plane *= shape[d];
  }
  int64_t count() const { return batch * plane; }  // elements of a channel
  bool has_rows_of_channels() const { return plane == 1 && batch > 0 && channels > 0; }
  cpu::ChannelRows rows() const { return {batch, channels}; }
  int64_t channels_per_piece() const {
    return std::max<int64_t>(kGrain / std::max<int64_t>(count(), 1), 1);
  }
  // Calls f(first element of each plane of `channel`).
  template <class F>
  void for_each(int64_t channel, F&& f) const {
    for (int64_t n = 0; n < batch; ++n) f((n * channels + channel) * plane);
  }
};

// [N, C, ...] <-> [1, C, N, ...]: the same channels, in planes N times as long.
bool has_short_planes(const Shape& shape) {
  const Planes planes(shape);
  return planes.plane < kShortPlane && planes.batch > 1 && !planes.has_rows_of_channels();
}

HostHandle swap_first_two(const HostHandle& x) {
  Dims order = all_dims(x->shape().rank());
  order[0] = 1;
  order[1] = 0;
  return cpu::contiguous(host::permute(x, order));
}

HostHandle gather_channels(const HostHandle& x) {
  HostHandle swapped = swap_first_two(x);
  Shape shape = swapped->shape();
  shape.insert(0, 1);
  return host::view(swapped, shape, contiguous_strides(shape), swapped->offset());
}

HostHandle scatter_channels(const HostHandle& x) {
  Shape shape = x->shape();
  shape.erase(0);
  return swap_first_two(host::view(x, shape, contiguous_strides(shape), x->offset()));
}

template <class T>
void run_batch_norm(const Planes& p, const T* x, const T* weight, const T* bias, double eps, T* y,
                    T* mean, T* var) {
  if (p.has_rows_of_channels()) {
    return cpu::batch_norm_of_rows(p.rows(), x, weight, bias, eps, y, mean, var);
  }
  const auto& kernels = norm_kernels<T>();
  parallel_for(p.channels, p.channels_per_piece(), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      cpu::Moments all;
      p.for_each(c, [&](int64_t at) { all.add(kernels.moments(x + at, p.plane)); });
      const double variance = all.squares / all.count;  // NaN when there is nothing
      mean[c] = static_cast<T>(all.count == 0.0 ? NAN : all.mean);
      var[c] = static_cast<T>(variance);
      double scale = 1.0 / std::sqrt(variance + eps);
      if (weight != nullptr) scale *= static_cast<double>(weight[c]);
      const double rest = static_cast<double>(mean[c]) - all.mean;
      const double shift = bias == nullptr ? 0.0 : static_cast<double>(bias[c]);
      p.for_each(c, [&](int64_t at) {
        kernels.normalize(x + at, mean[c], static_cast<T>(scale),
                          static_cast<T>(shift + rest * scale), y + at, p.plane);
      });
    }
  });
}

template <class T>
void run_batch_norm_backward(const Planes& p, const T* g, const T* x, const T* weight,
                             const T* mean, const T* var, double eps, T* dx, T* weight_grad,
                             T* bias_grad) {
  if (p.has_rows_of_channels()) {
    return cpu::batch_norm_of_rows_backward(p.rows(), g, x, weight, mean, var, eps, dx, weight_grad,
                                            bias_grad);
  }
  const auto& kernels = norm_kernels<T>();
  const auto count = static_cast<double>(p.count());
  parallel_for(p.channels, p.channels_per_piece(), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      double sum_g = 0.0, sum_gx = 0.0;
      p.for_each(c, [&](int64_t at) {
        kernels.gradient_sums(g + at, x + at, mean[c], p.plane, &sum_g, &sum_gx);
      });
      const double rstd = 1.0 / std::sqrt(static_cast<double>(var[c]) + eps);
      weight_grad[c] = static_cast<T>(sum_gx * rstd);
      bias_grad[c] = static_cast<T>(sum_g);
      // rstd w (g - mean(g) - x' mean(g x')) with x' = (x - mean) rstd.
      const double a = weight == nullptr ? rstd : rstd * static_cast<double>(weight[c]);
      const double b = -a * rstd * rstd * sum_gx / count;
      const double shift = -a * sum_g / count;
      p.for_each(c, [&](int64_t at) {
        kernels.normalize_backward(g + at, x + at, mean[c], static_cast<T>(a), static_cast<T>(b),
                                   static_cast<T>(shift), dx + at, p.plane);
      });
    }
  });
}

template <class T>
void run_batch_norm_inference(const Planes& p, const T* x, const T* mean, const T* var,
                              const T* weight, const T* bias, double eps, T* y) {
  if (p.has_rows_of_channels()) {
    return cpu::batch_norm_of_rows_inference(p.rows(), x, mean, var, weight, bias, eps, y);
  }
  const auto& kernels = norm_kernels<T>();
  const int64_t planes = p.batch * p.channels;
  parallel_for(planes, std::max<int64_t>(kGrain / std::max<int64_t>(p.plane, 1), 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t c = i % p.channels;
                   double scale = 1.0 / std::sqrt(static_cast<double>(var[c]) + eps);
                   if (weight != nullptr) scale *= static_cast<double>(weight[c]);
                   kernels.normalize(x + i * p.plane, mean[c], static_cast<T>(scale),
                                     bias == nullptr ? T(0) : bias[c], y + i * p.plane, p.plane);
                 }
               });
}

}  // namespace

std::tuple<HostHandle, HostHandle, HostHandle> CpuOps::float_batch_norm(Arg<HostHandle> x,
                                                                        const HostHandle* weight,
                                                                        const HostHandle* bias,
                                                                        double eps) {
  const DType dtype = x.get()->dtype();
  if (cpu::is_half(dtype)) {
    const cpu::OptionalOperand w(weight, cpu::widened);
    const cpu::OptionalOperand b(bias, cpu::widened);
    auto [y, mean, var] = float_batch_norm(cpu::widened(x), w.get(), b.get(), eps);
    return {cpu::narrowed(std::move(y), dtype), std::move(mean), std::move(var)};
  }
  if (has_short_planes(x.get()->shape())) {
    auto [y, mean, var] = float_batch_norm(gather_channels(x), weight, bias, eps);
    return {scatter_channels(y), std::move(mean), std::move(var)};
  }
  const cpu::OptionalOperand w(weight, cpu::contiguous);
  const cpu::OptionalOperand b(bias, cpu::contiguous);
  const cpu::ReusableOperand in(x);
  HostHandle y = in.result();
  const Planes planes(y->shape());
  HostHandle mean = host::empty(Shape{planes.channels}, dtype, y->device());
  HostHandle var = host::empty(Shape{planes.channels}, dtype, y->device());
  if (dtype == DType::f64) {
    run_batch_norm(planes, in.tensor().data_as<const double>(), w.data<double>(), b.data<double>(),
                   eps, y->data_as<double>(), mean->data_as<double>(), var->data_as<double>());
  } else {
    run_batch_norm(planes, in.tensor().data_as<const float>(), w.data<float>(), b.data<float>(),
                   eps, y->data_as<float>(), mean->data_as<float>(), var->data_as<float>());
  }
  return {std::move(y), std::move(mean), std::move(var)};
}

std::tuple<HostHandle, HostHandle, HostHandle> CpuOps::float_batch_norm_backward(
    Arg<HostHandle> g, Arg<HostHandle> x, const HostHandle* weight, Arg<HostHandle> mean,
    Arg<HostHandle> var, double eps) {
  const DType dtype = x.get()->dtype();
  if (cpu::is_half(dtype)) {
    const cpu::OptionalOperand w(weight, cpu::widened);
    const DType sums = mean.get()->dtype();
    auto [dx, dw, db] = float_batch_norm_backward(cpu::widened(g), cpu::widened(x), w.get(),
                                                  cpu::widened(mean), cpu::widened(var), eps);
    return {cpu::narrowed(std::move(dx), dtype), cpu::narrowed(std::move(dw), sums),
            cpu::narrowed(std::move(db), sums)};
  }
  if (has_short_planes(x.get()->shape())) {
    auto [dx, dw, db] =
        float_batch_norm_backward(gather_channels(g), gather_channels(x), weight, mean, var, eps);
    return {scatter_channels(dx), std::move(dw), std::move(db)};
  }
  const cpu::OptionalOperand w(weight, cpu::contiguous);
  const HostHandle in = cpu::contiguous(x.get());
  const HostHandle m = cpu::contiguous(mean.get());
  const HostHandle v = cpu::contiguous(var.get());
  const cpu::ReusableOperand grad(g);
  HostHandle dx = grad.result();
  const Planes planes(dx->shape());
  HostHandle dw = host::empty(Shape{planes.channels}, dtype, dx->device());
  HostHandle db = host::empty(Shape{planes.channels}, dtype, dx->device());
  if (dtype == DType::f64) {
    run_batch_norm_backward(planes, grad.tensor().data_as<const double>(),
                            in->data_as<const double>(), w.data<double>(),
                            m->data_as<const double>(), v->data_as<const double>(), eps,
                            dx->data_as<double>(), dw->data_as<double>(), db->data_as<double>());
  } else {
    run_batch_norm_backward(planes, grad.tensor().data_as<const float>(),
                            in->data_as<const float>(), w.data<float>(), m->data_as<const float>(),
                            v->data_as<const float>(), eps, dx->data_as<float>(),
                            dw->data_as<float>(), db->data_as<float>());
  }
  return {std::move(dx), std::move(dw), std::move(db)};
}

HostHandle CpuOps::float_batch_norm_inference(Arg<HostHandle> x, Arg<HostHandle> mean,
                                              Arg<HostHandle> var, const HostHandle* weight,
                                              const HostHandle* bias, double eps) {
  const DType dtype = x.get()->dtype();
  if (cpu::is_half(dtype)) {
    const cpu::OptionalOperand w(weight, cpu::widened);
    const cpu::OptionalOperand b(bias, cpu::widened);
    return cpu::narrowed(float_batch_norm_inference(cpu::widened(x), cpu::widened(mean),
                                                    cpu::widened(var), w.get(), b.get(), eps),
                         dtype);
  }
  if (has_short_planes(x.get()->shape())) {
    return scatter_channels(
        float_batch_norm_inference(gather_channels(x), mean, var, weight, bias, eps));
  }
  const cpu::OptionalOperand w(weight, cpu::contiguous);
  const cpu::OptionalOperand b(bias, cpu::contiguous);
  const HostHandle m = cpu::contiguous(mean.get());
  const HostHandle v = cpu::contiguous(var.get());
  const cpu::ReusableOperand in(x);
  HostHandle y = in.result();
  const Planes planes(y->shape());
  if (dtype == DType::f64) {
    run_batch_norm_inference(planes, in.tensor().data_as<const double>(),
                             m->data_as<const double>(), v->data_as<const double>(),
                             w.data<double>(), b.data<double>(), eps, y->data_as<double>());
  } else {
    run_batch_norm_inference(planes, in.tensor().data_as<const float>(), m->data_as<const float>(),
                             v->data_as<const float>(), w.data<float>(), b.data<float>(), eps,
                             y->data_as<float>());
  }
  return y;
}

}  // namespace kiln
