// Distances between rows: float_cdist.
#include <algorithm>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/reduce/distance_kernels.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/parallel.h"

namespace kiln {
namespace cpu {
namespace {

// Of p rows of x and r rows of y: those of y are turned, so that lanes are rows.
template <class T>
void distances_of_batch(const T* x, const T* y, int64_t p, int64_t r, int64_t m, bool euclidean,
                        T* to) {
  const DistanceKernels<T>& kernels = distance_kernels<T>();
  const auto row = euclidean ? kernels.euclidean : kernels.absolute;
  const int64_t step = (r + kernels.block - 1) / kernels.block * kernels.block;
  const Scratch<T> turned(m * step);
  std::fill_n(turned.get(), m * step, T(0));
  for (int64_t j = 0; j < r; ++j) {
    for (int64_t k = 0; k < m; ++k) turned[k * step + j] = y[j * m + k];
  }
  parallel_for(p, std::max<int64_t>(1, 16 * kGrain / std::max<int64_t>(1, r * m)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   row(x + i * m, turned.get(), step, m, r, to + i * r);
                 }
               });
}

template <class T>
void distances(const HostTensor& x, const HostTensor& y, bool euclidean, const HostTensor& out) {
  const int rank = x.shape().rank();
  const int64_t p = x.shape()[rank - 2], r = y.shape()[rank - 2], m = x.shape()[rank - 1];
  for (int64_t i = 0; i < out.numel() / (p * r); ++i) {
    distances_of_batch<T>(x.data_as<const T>() + i * p * m, y.data_as<const T>() + i * r * m, p, r,
                          m, euclidean, out.data_as<T>() + i * p * r);
  }
}

}  // namespace
}  // namespace cpu

HostHandle CpuOps::float_cdist(Arg<HostHandle> x, Arg<HostHandle> y, double norm, bool by_product) {
  const DType dtype = x->dtype();
  const bool has_kernel =
      (norm == 1.0 || norm == 2.0) && cpu::convert_of(dtype) == cpu::Convert::none;
  if (by_product || !has_kernel || x->shape().back() == 0) {
    return BackendDefaults<Cpu>::float_cdist(x, y, norm, by_product);
  }
  const HostHandle a = cpu::contiguous(x);
  const HostHandle b = cpu::contiguous(y);
  Shape shape = a->shape();
  shape.back() = b->shape()[shape.rank() - 2];
  HostHandle out = host::empty(shape, dtype, a->device());
  if (out->numel() == 0) return out;
  if (dtype == DType::f64) {
    cpu::distances<double>(*a, *b, norm == 2.0, *out);
  } else {
    cpu::distances<float>(*a, *b, norm == 2.0, *out);
  }
  return out;
}

}  // namespace kiln
