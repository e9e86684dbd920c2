// Layer normalization: rows of adjacent elements, each by itself.
#include <algorithm>
#include <tuple>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise/convert_kernels.h"
#include "kiln/backend/cpu/norm/norm_kernels.h"
#include "kiln/backend/cpu/operand.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/parallel.h"

namespace kiln {
namespace {

using cpu::norm_kernels;

// Parts of the rows that sum the gradients of weight and bias on their own.
constexpr int64_t kParts = 32;
// Floats that stay in the first-level cache.
constexpr int64_t kHalfBlock = 4096;

// [rows, n]: what the last `dims` dims hold, and how often.
struct Rows {
  int64_t rows = 1, n = 1;

  Rows(const Shape& shape, int dims) {
    for (int d = 0; d < shape.rank(); ++d) (d < shape.rank() - dims ? rows : n) *= shape[d];
  }
};

Shape statistics_shape(const Shape& shape, int dims) {
  Shape out = shape;
  for (int d = shape.rank() - dims; d < shape.rank(); ++d) out[d] = 1;
  return out;
}

Shape weight_shape(const Shape& shape, int dims) {
  Shape out;
  for (int d = shape.rank() - dims; d < shape.rank(); ++d) out.push_back(shape[d]);
  return out;
}

template <class T>
void run_layer_norm(const Rows& r, const T* x, const T* weight, const T* bias, double eps, T* y,
                    T* mean, T* rstd) {
  const auto& kernels = norm_kernels<T>();
  parallel_for(r.rows, std::max<int64_t>(kGrain / 2 / std::max<int64_t>(r.n, 1), 1),
               [&](int64_t begin, int64_t end) {
                 kernels.layer_norm(x + begin * r.n, weight, bias, eps, end - begin, r.n,
                                    y + begin * r.n, mean + begin, rstd + begin);
               });
}

// Of 16-bit floats, a few rows at a time in float.
void run_half_layer_norm(const Rows& r, cpu::Convert convert, const uint16_t* x,
                         const float* weight, const float* bias, double eps, uint16_t* y,
                         uint16_t* mean, uint16_t* rstd) {
  const auto& kernels = norm_kernels<float>();
  const cpu::ConvertKernels& conversion = cpu::convert_kernels();
  const int64_t block = std::max<int64_t>(kHalfBlock / std::max<int64_t>(r.n, 1), 1);
  parallel_for(r.rows, std::max<int64_t>(kGrain / 2 / std::max<int64_t>(r.n, 1), 1),
               [&](int64_t begin, int64_t end) {
                 const int64_t most = std::min(block, end - begin);
                 const cpu::Scratch<float> part(most * r.n);
                 const cpu::Scratch<float> statistics(2 * most);
                 float* means = statistics.get();
                 float* rstds = means + most;
                 for (int64_t i = begin; i < end; i += most) {
                   const int64_t rows = std::min(most, end - i);
                   conversion.to_float(convert, x + i * r.n, part.get(), rows * r.n);
                   kernels.layer_norm(part.get(), weight, bias, eps, rows, r.n, part.get(), means,
                                      rstds);
                   conversion.from_float(convert, part.get(), y + i * r.n, rows * r.n);
                   conversion.from_float(convert, means, mean + i, rows);
                   conversion.from_float(convert, rstds, rstd + i, rows);
                 }
               });
}

template <class T>
void run_layer_norm_backward(const Rows& r, const T* g, const T* x, const T* weight, const T* mean,
                             const T* rstd, T* dx, T* weight_grad, T* bias_grad) {
  if (r.n == 0) return;
  const auto& kernels = norm_kernels<T>();
  const int64_t per_part = std::max({(r.rows + kParts - 1) / kParts, kGrain / 4 / r.n, int64_t{1}});
  const int64_t parts = (r.rows + per_part - 1) / per_part;
  const cpu::Scratch<T> sums(parts * 2 * r.n);
  parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      T* own = sums.get() + part * 2 * r.n;
      std::fill_n(own, 2 * r.n, T(0));
      const int64_t first = part * per_part;
      kernels.layer_norm_backward(g + first * r.n, x + first * r.n, weight, mean + first,
                                  rstd + first, std::min(per_part, r.rows - first), r.n,
                                  dx + first * r.n, own, own + r.n);
    }
  });
  std::fill_n(weight_grad, r.n, T(0));
  std::fill_n(bias_grad, r.n, T(0));
  for (int64_t part = 0; part < parts; ++part) {
    const T* own = sums.get() + part * 2 * r.n;
    for (int64_t i = 0; i < r.n; ++i) weight_grad[i] += own[i];
    for (int64_t i = 0; i < r.n; ++i) bias_grad[i] += own[r.n + i];
  }
}

}  // namespace

std::tuple<HostHandle, HostHandle, HostHandle> CpuOps::float_layer_norm(Arg<HostHandle> x,
                                                                        const HostHandle* weight,
                                                                        const HostHandle* bias,
                                                                        int n, double eps) {
  const DType dtype = x.get()->dtype();
  const bool half = cpu::is_half(dtype);
  const auto prepare = [=](const HostHandle& operand) {
    return cpu::contiguous(half ? cpu::widened(operand) : operand);
  };
  const cpu::OptionalOperand w(weight, prepare);
  const cpu::OptionalOperand b(bias, prepare);
  const cpu::ReusableOperand in(x);
  HostHandle y = in.result();
  const Rows rows(y->shape(), n);
  const Shape statistics = statistics_shape(y->shape(), n);
  HostHandle mean = host::empty(statistics, dtype, y->device());
  HostHandle rstd = host::empty(statistics, dtype, y->device());
  if (half) {
    run_half_layer_norm(rows, cpu::convert_of(dtype), in.tensor().data_as<const uint16_t>(),
                        w.data<float>(), b.data<float>(), eps, y->data_as<uint16_t>(),
                        mean->data_as<uint16_t>(), rstd->data_as<uint16_t>());
  } else if (dtype == DType::f64) {
    run_layer_norm(rows, in.tensor().data_as<const double>(), w.data<double>(), b.data<double>(),
                   eps, y->data_as<double>(), mean->data_as<double>(), rstd->data_as<double>());
  } else {
    run_layer_norm(rows, in.tensor().data_as<const float>(), w.data<float>(), b.data<float>(), eps,
                   y->data_as<float>(), mean->data_as<float>(), rstd->data_as<float>());
  }
  return {std::move(y), std::move(mean), std::move(rstd)};
}

std::tuple<HostHandle, HostHandle, HostHandle> CpuOps::float_layer_norm_backward(
    Arg<HostHandle> g, Arg<HostHandle> x, const HostHandle* weight, Arg<HostHandle> mean,
    Arg<HostHandle> rstd, int n) {
  const DType dtype = x.get()->dtype();
  if (cpu::is_half(dtype)) {
    const cpu::OptionalOperand w(weight, cpu::widened);
    auto [dx, dw, db] = float_layer_norm_backward(cpu::widened(g), cpu::widened(x), w.get(),
                                                  cpu::widened(mean), cpu::widened(rstd), n);
    return {cpu::narrowed(std::move(dx), dtype), cpu::narrowed(std::move(dw), dtype),
            cpu::narrowed(std::move(db), dtype)};
  }
  const cpu::OptionalOperand w(weight, cpu::contiguous);
  const HostHandle in = cpu::contiguous(x.get());
  const HostHandle m = cpu::contiguous(mean.get());
  const HostHandle s = cpu::contiguous(rstd.get());
  const cpu::ReusableOperand grad(g);
  HostHandle dx = grad.result();
  const Rows rows(dx->shape(), n);
  HostHandle dw = host::empty(weight_shape(dx->shape(), n), dtype, dx->device());
  HostHandle db = host::empty(weight_shape(dx->shape(), n), dtype, dx->device());
  if (dtype == DType::f64) {
    run_layer_norm_backward(rows, grad.tensor().data_as<const double>(),
                            in->data_as<const double>(), w.data<double>(),
                            m->data_as<const double>(), s->data_as<const double>(),
                            dx->data_as<double>(), dw->data_as<double>(), db->data_as<double>());
  } else {
    run_layer_norm_backward(rows, grad.tensor().data_as<const float>(), in->data_as<const float>(),
                            w.data<float>(), m->data_as<const float>(), s->data_as<const float>(),
                            dx->data_as<float>(), dw->data_as<float>(), db->data_as<float>());
  }
  return {std::move(dx), std::move(dw), std::move(db)};
}

}  // namespace kiln
