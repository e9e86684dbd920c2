// Fourier transforms: float_fft, float_fft_real, float_rfft, float_irfft.
#include <algorithm>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/fft/fft_plan.h"
#include "kiln/backend/cpu/operand.h"
#include "kiln/backend/cpu/rounding.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/parallel.h"

namespace kiln {
namespace cpu {
namespace {

// f(begin, end) over the rows of a batch: one by one where a row is spread over the threads itself;
// in whole blocks of those that are transformed together.
template <class Plan, class F>
void over_rows(const Plan& plan, int64_t rows, int64_t n, F f) {
  if (plan.is_parallel() && rows < 2 * max_num_threads()) {
    f(0, rows);
  } else {
    const int64_t least = std::max<int64_t>(1, kGrain / 4 / n);
    parallel_for(rows, plan.is_short() ? round_up(least, kFftRows) : least, f);
  }
}

template <class F>
void visit_precision(DType dtype, F f) {
  dtype == DType::f64 ? f.template operator()<double>() : f.template operator()<float>();
}

// The dims around dim d of a shape of complex numbers.
struct Around {
  int64_t outer = 1, inner = 1;
  Around(const Shape& shape, int d, int rank) {
    for (int i = 0; i < d; ++i) outer *= shape[i];
    for (int i = d + 1; i < rank; ++i) inner *= shape[i];
  }
};

template <class T>
void transform_all(const T* from, T* to, const Around& around, int64_t n, bool inverse, T scale) {
  const auto planned = FftPlan<T>::of(n);
  const FftPlan<T>& plan = *planned;
  const int64_t inner = around.inner;
  if (inner == 1) {
    over_rows(plan, around.outer, n, [&](int64_t begin, int64_t end) {
      plan.transform_rows(from + 2 * begin * n, to + 2 * begin * n, end - begin, inverse, scale);
    });
    return;
  }
  // Columns side by side, whole vectors of them; the last block takes what is left over.
  const int64_t width = std::clamp<int64_t>(2048 / n / 16 * 16, 16, 64);
  const int64_t blocks = std::max<int64_t>(inner / width, 1);
  const int64_t least = std::max<int64_t>(1, kGrain / 4 / (n * width));
  const bool spread = plan.is_parallel() && around.outer * blocks < 2 * max_num_threads();
  parallel_for(around.outer * blocks, spread ? around.outer * blocks : least,
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t column = i % blocks * width;
                   const int64_t end_column = i % blocks + 1 == blocks ? inner : column + width;
                   const int64_t at = 2 * (i / blocks * n * inner + column);
                   plan.transform_columns(from + at, to + at, inner, end_column - column, inverse,
                                          scale);
                 }
               });
}

// Multiplies what stands for one number of the whole spectrum, not for two.
template <class T>
void scale_ends(T* z, int64_t n, double by) {
  if (by == 1.0) return;
  const auto scale = [&](int64_t k) {
    z[2 * k] *= static_cast<T>(by);
    z[2 * k + 1] *= static_cast<T>(by);
  };
  scale(0);
  if (n % 2 == 0) scale(n / 2);
}

// Half the spectrum of each of `rows` rows of n real numbers.
template <class T>
void real_rows(const T* from, T* to, int64_t rows, int64_t n, T scale, double ends) {
  const auto plan = RealFftPlan<T>::of(n);
  over_rows(*plan, rows, n, [&](int64_t begin, int64_t end) {
    const int64_t half = n / 2 + 1;
    plan->forward_rows(from + begin * n, to + 2 * begin * half, end - begin, half, scale);
    for (int64_t r = begin; r < end; ++r) scale_ends(to + 2 * r * half, n, ends);
  });
}

template <class T>
void hermitian_rows(const T* from, T* to, int64_t rows, int64_t n, T scale, double ends) {
  const auto plan = RealFftPlan<T>::of(n);
  over_rows(*plan, rows, n, [&](int64_t begin, int64_t end) {
    const int64_t half = n / 2 + 1;
    const int64_t some = ends == 1.0 ? end - begin : kFftRows;
    const Scratch<T> copy(ends == 1.0 ? 0 : 2 * some * half);
    for (int64_t r = begin; r < end; r += some) {
      const int64_t count = std::min(some, end - r);
      const T* spectra = from + 2 * r * half;
      if (ends != 1.0) {
        std::copy_n(spectra, 2 * count * half, copy.get());
        for (int64_t i = 0; i < count; ++i) scale_ends(copy.get() + 2 * i * half, n, ends);
        spectra = copy.get();
      }
      plan->backward_rows(spectra, to + r * n, count, half, scale);
    }
  });
}

// to[k] = from[n - k] conjugated for the second half of a spectrum, [n / 2 + 1, n).
template <class T>
void mirror(const T* from, T* to, int64_t n) {
  for (int64_t k = n / 2 + 1; k < n; ++k) {
    to[2 * k] = from[2 * (n - k)];
    to[2 * k + 1] = -from[2 * (n - k) + 1];
  }
}

// The row (all dims but the last) at the negative places of `dims`.
int64_t mirrored_row(int64_t row, const Shape& shape, const Dims& dims) {
  int64_t out = row, step = 1;
  for (int d = shape.rank() - 2; d >= 0; --d) {
    const int64_t n = shape[d];
    const int64_t i = row % n;
    row /= n;
    if (i != 0 && dims.contains(d)) out += (n - 2 * i) * step;
    step *= n;
  }
  return out;
}

// The sum with the other sign is the conjugate, of real numbers.
template <class T>
void conjugate(T* row, int64_t n) {
  for (int64_t k = 0; k < n; ++k) row[2 * k + 1] = -row[2 * k + 1];
}

// Half of the spectrum is computed, the other half is its mirror image.
template <class T>
void full_spectrum(const T* from, T* to, const Shape& shape, const Dims& dims, bool inverse,
                   T scale) {
  const int64_t n = shape.back();
  const int64_t rows = shape.numel() / n;
  if (dims.rank() == 1) {
    const auto plan = RealFftPlan<T>::of(n);
    over_rows(*plan, rows, n, [&](int64_t begin, int64_t end) {
      plan->forward_rows(from + begin * n, to + 2 * begin * n, end - begin, n, scale);
      for (int64_t r = begin; r < end; ++r) {
        T* row = to + 2 * r * n;
        mirror(row, row, n);
        if (inverse) conjugate(row, n);
      }
    });
    return;
  }
  const int64_t half = n / 2 + 1;
  const Scratch<T> halves(2 * rows * half);
  real_rows(from, halves.get(), rows, n, scale, 1.0);
  Shape half_shape = shape;
  half_shape.back() = half;
  for (const int64_t d : dims) {
    const int dim = static_cast<int>(d);
    if (dim == shape.rank() - 1) continue;
    transform_all<T>(halves.get(), halves.get(), Around(half_shape, dim, shape.rank()), shape[dim],
                     false, T(1));
  }
  parallel_for(rows, std::max<int64_t>(1, kGrain / n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      T* row = to + 2 * r * n;
      std::copy_n(halves.get() + 2 * r * half, 2 * half, row);
      mirror(halves.get() + 2 * mirrored_row(r, shape, dims) * half, row, n);
      if (inverse) conjugate(row, n);
    }
  });
}

}  // namespace
}  // namespace cpu

HostHandle CpuOps::float_fft(Arg<HostHandle> x, int dim, bool inverse, double scale) {
  const cpu::ReusableOperand in(x);
  HostHandle out = in.result();
  if (out->numel() == 0) return out;
  const Shape& shape = out->shape();
  cpu::visit_precision(out->dtype(), [&]<class T>() {
    cpu::transform_all<T>(in.tensor().data_as<const T>(), out->data_as<T>(),
                          cpu::Around(shape, dim, shape.rank() - 1), shape[dim], inverse,
                          static_cast<T>(scale));
  });
  return out;
}

HostHandle CpuOps::float_fft_real(Arg<HostHandle> x, const Dims& dims, bool inverse, double scale) {
  const HostHandle in = cpu::contiguous(x);
  Shape shape = in->shape();
  shape.push_back(2);
  HostHandle out = host::empty(shape, in->dtype(), in->device());
  if (out->numel() == 0) return out;
  cpu::visit_precision(in->dtype(), [&]<class T>() {
    cpu::full_spectrum<T>(in->data_as<const T>(), out->data_as<T>(), in->shape(), dims, inverse,
                          static_cast<T>(scale));
  });
  return out;
}

HostHandle CpuOps::float_rfft(Arg<HostHandle> x, double scale, double ends) {
  const HostHandle in = cpu::contiguous(x);
  const int64_t n = in->shape().back();
  Shape shape = in->shape();
  shape.back() = n / 2 + 1;
  shape.push_back(2);
  HostHandle out = host::empty(shape, in->dtype(), in->device());
  if (out->numel() == 0) return out;
  cpu::visit_precision(in->dtype(), [&]<class T>() {
    cpu::real_rows<T>(in->data_as<const T>(), out->data_as<T>(), in->numel() / n, n,
                      static_cast<T>(scale), ends);
  });
  return out;
}

HostHandle CpuOps::float_irfft(Arg<HostHandle> x, int64_t n, double scale, double ends) {
  const HostHandle in = cpu::contiguous(x);
  Shape shape = in->shape();
  shape.erase(shape.rank() - 1);
  shape.back() = n;
  HostHandle out = host::empty(shape, in->dtype(), in->device());
  if (out->numel() == 0) return out;
  cpu::visit_precision(in->dtype(), [&]<class T>() {
    cpu::hermitian_rows<T>(in->data_as<const T>(), out->data_as<T>(), out->numel() / n, n,
                           static_cast<T>(scale), ends);
  });
  return out;
}

}  // namespace kiln
