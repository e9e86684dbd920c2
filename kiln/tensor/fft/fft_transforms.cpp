#include "kiln/tensor/fft/fft_transforms.h"

#include <algorithm>

#include "kiln/backend/cpu/fft/fft_plan.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/parallel.h"
#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/interop.h"
#include "kiln/tensor/ops.h"

namespace kiln::fft::detail {

using namespace kiln::detail;

namespace {

// f(begin, end) over the rows of a batch: one by one where a row is spread over the threads itself.
template <class F>
void over_rows(int64_t rows, int64_t n, bool row_is_parallel, F f) {
  if (row_is_parallel && rows < 2 * max_num_threads()) {
    f(0, rows);
  } else {
    parallel_for(rows, std::max<int64_t>(1, kGrain / 4 / n), f);
  }
}

int64_t rows_of(const Tensor& x) { return x.numel() / std::max<int64_t>(1, x.shape().back()); }

template <class F>
Tensor visit_precision(DType dtype, F f) {
  return real_dtype(dtype) == f32 ? f.template operator()<float>()
                                  : f.template operator()<double>();
}

template <class T>
void transform_all(const cpu::FftPlan<T>& plan, const T* from, T* to, int64_t outer, int64_t n,
                   int64_t inner, bool inverse, T scale) {
  if (inner == 1) {
    over_rows(outer, n, plan.is_parallel(), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        plan.transform(from + 2 * r * n, to + 2 * r * n, inverse, scale);
      }
    });
    return;
  }
  // Columns side by side, whole vectors of them; the last block takes what is left over.
  const int64_t width = std::clamp<int64_t>(2048 / n / 16 * 16, 16, 64);
  const int64_t blocks = std::max<int64_t>(inner / width, 1);
  over_rows(outer * blocks, n * width, plan.is_parallel(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i % blocks * width;
      const int64_t end_column = i % blocks + 1 == blocks ? inner : column + width;
      const int64_t at = 2 * (i / blocks * n * inner + column);
      plan.transform_columns(from + at, to + at, inner, end_column - column, inverse, scale);
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

// The dims around dim d.
struct Around {
  int64_t outer = 1, inner = 1;
  Around(const Shape& shape, int d) {
    for (int i = 0; i < d; ++i) outer *= shape[i];
    for (int i = d + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
};

// to[k] = from[n - k] conjugated for the second half of a spectrum, [n / 2 + 1, n).
template <class T>
void mirror(const T* from, T* to, int64_t n) {
  for (int64_t k = n / 2 + 1; k < n; ++k) {
    to[2 * k] = from[2 * (n - k)];
    to[2 * k + 1] = -from[2 * (n - k) + 1];
  }
}

// The row (all dims but the last) at the negative places of `dims`.
int64_t mirrored_row(int64_t row, const Shape& shape, const std::vector<int>& dims) {
  int64_t out = row, step = 1;
  for (int d = shape.rank() - 2; d >= 0; --d) {
    const int64_t n = shape[d];
    const int64_t i = row % n;
    row /= n;
    if (i != 0 && std::find(dims.begin(), dims.end(), d) != dims.end()) out += (n - 2 * i) * step;
    step *= n;
  }
  return out;
}

}  // namespace

Tensor transform(const Tensor& x, int d, bool inverse, double scale) {
  const Tensor z = x.detach().to(Device(kCpu)).contiguous();
  const int64_t n = z.shape()[d];
  const Tensor out = empty(z.shape(), {z.dtype()});
  if (z.numel() == 0) return out.to(x.device());
  const Around around(z.shape(), d);
  return visit_precision(z.dtype(),
                         [&]<class T>() {
                           transform_all<T>(*cpu::FftPlan<T>::of(n),
                                            static_cast<const T*>(interop::data(z)),
                                            static_cast<T*>(interop::data(out)), around.outer, n,
                                            around.inner, inverse, static_cast<T>(scale));
                           return out;
                         })
      .to(x.device());
}

Tensor real_rows(const Tensor& x, double scale, double ends) {
  const Tensor z = x.detach().to(Device(kCpu)).contiguous();
  const int64_t n = z.shape().back();
  Shape shape = z.shape();
  shape.back() = n / 2 + 1;
  const Tensor out = empty(shape, {complex_dtype(z.dtype())});
  if (out.numel() == 0) return out.to(x.device());
  return visit_precision(z.dtype(),
                         [&]<class T>() {
                           const auto plan = cpu::RealFftPlan<T>::of(n);
                           const T* from = static_cast<const T*>(interop::data(z));
                           T* to = static_cast<T*>(interop::data(out));
                           over_rows(rows_of(z), n, plan->is_parallel(),
                                     [&](int64_t begin, int64_t end) {
                                       for (int64_t r = begin; r < end; ++r) {
                                         T* row = to + 2 * r * (n / 2 + 1);
                                         plan->forward(from + r * n, row, static_cast<T>(scale));
                                         scale_ends(row, n, ends);
                                       }
                                     });
                           return out;
                         })
      .to(x.device());
}

Tensor hermitian_rows(const Tensor& x, int64_t n, double scale, double ends) {
  const Tensor z = x.detach().to(Device(kCpu)).contiguous();
  Shape shape = z.shape();
  shape.back() = n;
  const Tensor out = empty(shape, {real_dtype(z.dtype())});
  if (out.numel() == 0) return out.to(x.device());
  return visit_precision(z.dtype(),
                         [&]<class T>() {
                           const auto plan = cpu::RealFftPlan<T>::of(n);
                           const T* from = static_cast<const T*>(interop::data(z));
                           T* to = static_cast<T*>(interop::data(out));
                           over_rows(rows_of(out), n, plan->is_parallel(),
                                     [&](int64_t begin, int64_t end) {
                                       const int64_t half = 2 * (n / 2 + 1);
                                       const cpu::Scratch<T> copy(ends == 1.0 ? 0 : half);
                                       for (int64_t r = begin; r < end; ++r) {
                                         const T* row = from + r * half;
                                         if (ends != 1.0) {
                                           std::copy_n(row, half, copy.get());
                                           scale_ends(copy.get(), n, ends);
                                           row = copy.get();
                                         }
                                         plan->backward(row, to + r * n, static_cast<T>(scale));
                                       }
                                     });
                           return out;
                         })
      .to(x.device());
}

// Half of the spectrum is computed, the other half is its mirror image.
Tensor full_spectrum(const Tensor& x, const std::vector<int>& dims, bool inverse, double scale) {
  const Tensor z = x.detach().to(Device(kCpu)).contiguous();
  const Shape shape = z.shape();
  const int64_t n = shape.back();
  const Tensor out = empty(shape, {complex_dtype(z.dtype())});
  if (out.numel() == 0) return out.to(x.device());
  const int64_t half = n / 2 + 1;
  const int64_t rows = rows_of(z);
  return visit_precision(
             z.dtype(),
             [&]<class T>() {
               T* to = static_cast<T*>(interop::data(out));
               // The sum with the other sign is the conjugate, of real numbers.
               const auto finish = [&](T* row) {
                 if (!inverse) return;
                 for (int64_t k = 0; k < n; ++k) row[2 * k + 1] = -row[2 * k + 1];
               };
               if (dims.size() == 1) {
                 const auto plan = cpu::RealFftPlan<T>::of(n);
                 const T* from = static_cast<const T*>(interop::data(z));
                 over_rows(rows, n, plan->is_parallel(), [&](int64_t begin, int64_t end) {
                   for (int64_t r = begin; r < end; ++r) {
                     T* row = to + 2 * r * n;
                     // An even length's transform has no more room than n / 2 + 1 numbers.
                     plan->forward(from + r * n, row, static_cast<T>(scale));
                     mirror(row, row, n);
                     finish(row);
                   }
                 });
                 return out;
               }
               const Tensor halves = real_rows(z, scale, 1.0);
               T* from = static_cast<T*>(interop::data(halves));
               for (const int d : dims) {
                 if (d == shape.rank() - 1) continue;
                 const Around around(halves.shape(), d);
                 transform_all<T>(*cpu::FftPlan<T>::of(shape[d]), from, from, around.outer,
                                  shape[d], around.inner, false, T(1));
               }
               parallel_for(rows, std::max<int64_t>(1, kGrain / n),
                            [&](int64_t begin, int64_t end) {
                              for (int64_t r = begin; r < end; ++r) {
                                T* row = to + 2 * r * n;
                                std::copy_n(from + 2 * r * half, 2 * half, row);
                                mirror(from + 2 * mirrored_row(r, shape, dims) * half, row, n);
                                finish(row);
                              }
                            });
               return out;
             })
      .to(x.device());
}

}  // namespace kiln::fft::detail
