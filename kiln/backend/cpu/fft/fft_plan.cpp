#include "kiln/backend/cpu/fft/fft_plan.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <list>
#include <mutex>
#include <numbers>

#include "kiln/backend/cpu/fft/fft_kernels.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/fork.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu {

namespace {

constexpr int64_t kLongestDirect = 16384;  // whose arrays fit the second-level cache
constexpr int64_t kBlock = 16;             // columns or rows that are transformed together

// e^(-2 pi i k / n), with k reduced so that the angle is small and exact.
std::complex<double> unit(int64_t k, int64_t n) {
  k %= n;
  const bool lower = 2 * k > n;  // e^(-i(2 pi - a)) is the conjugate of e^(-i a)
  if (lower) k = n - k;
  double re = 0;
  double im = 0;
  const double turn = 2 * std::numbers::pi / static_cast<double>(n);
  if (8 * k <= n) {
    re = std::cos(turn * static_cast<double>(k));
    im = std::sin(turn * static_cast<double>(k));
  } else if (8 * k <= 3 * n) {  // around a quarter turn
    const double rest =
        std::numbers::pi / 2 * (static_cast<double>(n - 4 * k) / static_cast<double>(n));
    re = std::sin(rest);
    im = std::cos(rest);
  } else {
    const double rest =
        std::numbers::pi * (static_cast<double>(n - 2 * k) / static_cast<double>(n));
    re = -std::cos(rest);
    im = std::sin(rest);
  }
  return {re, lower ? im : -im};
}

std::vector<int64_t> factors_of(int64_t n) {
  std::vector<int64_t> out;
  for (const int64_t radix : {4, 2, 3, 5}) {
    while (n % radix == 0) {
      out.push_back(radix);
      n /= radix;
    }
  }
  for (int64_t radix = 7; radix * radix <= n || radix <= kLargestRadix; radix += 2) {
    while (n % radix == 0) {
      out.push_back(radix);
      n /= radix;
    }
  }
  if (n > 1) out.push_back(n);
  return out;
}

// The most recent plans.
template <class Plan>
class PlanCache {
 public:
  std::shared_ptr<const Plan> get(int64_t n) {
    {
      const std::lock_guard lock(mutex_);
      for (auto it = plans_.begin(); it != plans_.end(); ++it) {
        if (it->first != n) continue;
        plans_.splice(plans_.begin(), plans_, it);
        return plans_.front().second;
      }
    }
    auto plan = std::make_shared<const Plan>(n);  // plans ask for other plans: without the lock
    const std::lock_guard lock(mutex_);
    plans_.emplace_front(n, plan);
    numbers_ += n;
    while (plans_.size() > 1 && (plans_.size() > kPlans || numbers_ > kNumbers)) {
      numbers_ -= plans_.back().first;
      plans_.pop_back();
    }
    return plan;
  }

 private:
  static constexpr size_t kPlans = 64;
  static constexpr int64_t kNumbers = int64_t{1} << 23;
  kiln::detail::ForkSafeMutex mutex_{kiln::detail::ForkOrder::fft_plans};
  std::list<std::pair<int64_t, std::shared_ptr<const Plan>>> plans_;
  int64_t numbers_ = 0;
};

}  // namespace

template <class T>
std::shared_ptr<const FftPlan<T>> FftPlan<T>::of(int64_t n) {
  static PlanCache<FftPlan<T>> cache;
  return cache.get(n);
}

template <class T>
FftPlan<T>::FftPlan(int64_t n) : n_(n) {
  const std::vector<int64_t> factors = factors_of(n);
  if (!factors.empty() && factors.back() > kLargestRadix) {
    plan_convolution();
  } else if (n > kLongestDirect) {
    plan_rows();
    if (!rows_) plan_passes(factors);
  } else {
    plan_passes(factors);
  }
}

template <class T>
void FftPlan<T>::plan_passes(std::vector<int64_t> factors) {
  int64_t length = n_;
  int64_t s = 1;
  for (const int64_t radix : factors) {
    const int64_t m = length / radix;
    passes_.push_back({radix, m, s, twiddle_re_.size()});
    for (int64_t k = 1; k < radix; ++k) {
      for (int64_t p = 0; p < m; ++p) {
        const std::complex<double> w = unit(p * k, length);
        twiddle_re_.push_back(static_cast<T>(w.real()));
        twiddle_im_.push_back(static_cast<T>(w.imag()));
      }
    }
    length = m;
    s *= radix;
  }
}

template <class T>
void FftPlan<T>::plan_rows() {
  // The divisor nearest below the root.
  int64_t columns = 1;
  for (auto d = static_cast<int64_t>(std::sqrt(static_cast<double>(n_))); d > 1; --d) {
    if (n_ % d == 0) {
      columns = d;
      break;
    }
  }
  if (columns < kBlock || n_ / columns > kLongestDirect) return;  // one long transform, then
  columns_ = of(columns);
  rows_ = of(n_ / columns);
  for (int64_t k = 0; k < columns; ++k) {
    for (int64_t l = 0; l < kBlock; ++l) {
      const std::complex<double> w = unit(k * l, n_);
      step_re_.push_back(static_cast<T>(w.real()));
      step_im_.push_back(static_cast<T>(w.imag()));
    }
  }
}

template <class T>
void FftPlan<T>::plan_convolution() {
  int64_t padded = 1;
  while (padded < 2 * n_ - 1) padded *= 2;
  padded_ = of(padded);
  chirp_.resize(static_cast<size_t>(2 * n_));
  // In double precision: its transform is used again and again.
  std::vector<double> filter(static_cast<size_t>(2 * padded), 0.0);
  for (int64_t j = 0; j < n_; ++j) {
    const auto square =
        static_cast<int64_t>(static_cast<unsigned __int128>(j) * static_cast<uint64_t>(j) %
                             static_cast<uint64_t>(2 * n_));
    const std::complex<double> w = unit(square, 2 * n_);
    chirp_[static_cast<size_t>(2 * j)] = static_cast<T>(w.real());
    chirp_[static_cast<size_t>(2 * j + 1)] = static_cast<T>(w.imag());
    for (const int64_t at : {j, j == 0 ? 0 : padded - j}) {
      filter[static_cast<size_t>(2 * at)] = w.real();
      filter[static_cast<size_t>(2 * at + 1)] = -w.imag();
    }
  }
  FftPlan<double>::of(padded)->transform(filter.data(), filter.data(), false, 1.0);
  filter_.assign(filter.begin(), filter.end());
}

template <class T>
void FftPlan<T>::transform(const T* in, T* out, bool inverse, T scale) const {
  if (padded_) {
    by_convolution(in, out, inverse, scale);
  } else if (rows_) {
    by_rows(in, out, inverse, scale);
  } else {
    direct(in, out, inverse, scale);
  }
}

template <class T>
bool FftPlan<T>::run_passes(const T* from_re, const T* from_im, T* a_re, T* a_im, T* b_re, T* b_im,
                            int64_t lanes) const {
  const FftKernels<T>& kernels = fft_kernels<T>();
  const T* re = from_re;
  const T* im = from_im;
  bool in_b = false;
  for (const Pass& pass : passes_) {
    T* to_re = in_b ? a_re : b_re;
    T* to_im = in_b ? a_im : b_im;
    kernels.pass(pass.radix, pass.m, pass.s * lanes, re, im, to_re, to_im,
                 twiddle_re_.data() + pass.twiddles, twiddle_im_.data() + pass.twiddles);
    re = to_re;
    im = to_im;
    in_b = !in_b;
  }
  return in_b;
}

// The inverse transform is the transform with real and imaginary parts exchanged, before and after.
template <class T>
void FftPlan<T>::direct(const T* in, T* out, bool inverse, T scale) const {
  const FftKernels<T>& kernels = fft_kernels<T>();
  const Scratch<T> scratch(4 * n_);
  T* a = scratch.get();
  T* b = a + 2 * n_;
  T* re = inverse ? a + n_ : a;
  T* im = inverse ? a : a + n_;
  kernels.split(in, re, im, n_);
  const bool in_b = run_passes(a, a + n_, a, a + n_, b, b + n_, 1);
  const T* done = in_b ? b : a;
  kernels.join(inverse ? done + n_ : done, inverse ? done : done + n_, out, n_, scale);
}

template <class T>
void FftPlan<T>::transform_columns(const T* in, T* out, int64_t step, int64_t width, bool inverse,
                                   T scale) const {
  if (padded_ || rows_) {
    const Scratch<T> column(2 * n_);
    for (int64_t l = 0; l < width; ++l) {
      for (int64_t j = 0; j < n_; ++j) {
        std::copy_n(in + 2 * (j * step + l), 2, column.get() + 2 * j);
      }
      transform(column.get(), column.get(), inverse, scale);
      for (int64_t j = 0; j < n_; ++j) {
        std::copy_n(column.get() + 2 * j, 2, out + 2 * (j * step + l));
      }
    }
    return;
  }
  const FftKernels<T>& kernels = fft_kernels<T>();
  const int64_t count = n_ * width;
  const Scratch<T> scratch(4 * count);
  T* a = scratch.get();
  T* b = a + 2 * count;
  T* re = inverse ? a + count : a;
  T* im = inverse ? a : a + count;
  for (int64_t j = 0; j < n_; ++j) {
    kernels.split(in + 2 * j * step, re + j * width, im + j * width, width);
  }
  const bool in_b = run_passes(a, a + count, a, a + count, b, b + count, width);
  const T* done_re = (in_b ? b : a) + (inverse ? count : 0);
  const T* done_im = (in_b ? b : a) + (inverse ? 0 : count);
  for (int64_t j = 0; j < n_; ++j) {
    kernels.join(done_re + j * width, done_im + j * width, out + 2 * j * step, width, scale);
  }
}

// Note [Long transforms]. With j = j1 n2 + j2 and k = k1 + n1 k2 the transform is one of the
// columns (over j1), a factor w^(j2 k1), and one of the rows (over j2). Blocks of columns are
// transformed in the lanes of vectors; so are no rows, whose results are then written across.
template <class T>
void FftPlan<T>::by_rows(const T* in, T* out, bool inverse, T scale) const {
  const FftKernels<T>& kernels = fft_kernels<T>();
  const int64_t n1 = columns_->n_;
  const int64_t n2 = rows_->n_;
  const Scratch<T> turned(2 * n_);
  T* turned_re = turned.get();
  T* turned_im = turned_re + n_;
  const int64_t column_blocks = (n2 + kBlock - 1) / kBlock;
  parallel_for(
      column_blocks, std::max<int64_t>(1, kGrain / (n1 * kBlock)), [&](int64_t begin, int64_t end) {
        const Scratch<T> scratch(4 * n1 * kBlock);
        T* a = scratch.get();
        T* b = a + 2 * n1 * kBlock;
        for (int64_t block = begin; block < end; ++block) {
          const int64_t first = block * kBlock;
          const int64_t width = std::min(kBlock, n2 - first);
          const int64_t count = n1 * width;
          T* re = inverse ? a + count : a;
          T* im = inverse ? a : a + count;
          for (int64_t j = 0; j < n1; ++j) {
            kernels.split(in + 2 * (j * n2 + first), re + j * width, im + j * width, width);
          }
          const bool in_b = columns_->run_passes(a, a + count, a, a + count, b, b + count, width);
          const T* done = in_b ? b : a;
          for (int64_t k = 0; k < n1; ++k) {
            const std::complex<double> start = unit(k * first, n_);
            kernels.twist(done + k * width, done + count + k * width, step_re_.data() + k * kBlock,
                          step_im_.data() + k * kBlock, static_cast<T>(start.real()),
                          static_cast<T>(start.imag()), turned_re + k * n2 + first,
                          turned_im + k * n2 + first, width);
          }
        }
      });
  const int64_t row_blocks = (n1 + kBlock - 1) / kBlock;
  parallel_for(row_blocks, std::max<int64_t>(1, kGrain / (n2 * kBlock)),
               [&](int64_t begin, int64_t end) {
                 const Scratch<T> scratch(2 * n2 * kBlock + 2 * n2);
                 T* results = scratch.get();
                 T* spare = results + 2 * n2 * kBlock;
                 for (int64_t block = begin; block < end; ++block) {
                   const int64_t first = block * kBlock;
                   const int64_t height = std::min(kBlock, n1 - first);
                   for (int64_t l = 0; l < height; ++l) {
                     T* row = results + 2 * n2 * l;
                     const T* re = turned_re + (first + l) * n2;
                     const T* im = turned_im + (first + l) * n2;
                     // The result has to end up in `row`.
                     const bool odd = rows_->passes_.size() % 2 != 0;
                     T* a = odd ? spare : row;
                     T* b = odd ? row : spare;
                     rows_->run_passes(re, im, a, a + n2, b, b + n2, 1);
                   }
                   const T* re = inverse ? results + n2 : results;
                   const T* im = inverse ? results : results + n2;
                   for (int64_t k = 0; k < n2; ++k) {
                     T* to = out + 2 * (first + n1 * k);
                     for (int64_t l = 0; l < height; ++l) {
                       to[2 * l] = re[2 * n2 * l + k] * scale;
                       to[2 * l + 1] = im[2 * n2 * l + k] * scale;
                     }
                   }
                 }
               });
}

template <class T>
void FftPlan<T>::by_convolution(const T* in, T* out, bool inverse, T scale) const {
  const int64_t padded = padded_->n_;
  const Scratch<T> scratch(2 * padded);
  auto* z = reinterpret_cast<std::complex<T>*>(scratch.get());
  const auto* chirp = reinterpret_cast<const std::complex<T>*>(chirp_.data());
  const auto* filter = reinterpret_cast<const std::complex<T>*>(filter_.data());
  const auto* from = reinterpret_cast<const std::complex<T>*>(in);
  auto* to = reinterpret_cast<std::complex<T>*>(out);
  const auto times = [](std::complex<T> x, std::complex<T> y) {
    return std::complex<T>(x.real() * y.real() - x.imag() * y.imag(),
                           x.real() * y.imag() + x.imag() * y.real());
  };
  const auto turned = [inverse](std::complex<T> x) {
    return inverse ? std::complex<T>(x.imag(), x.real()) : x;
  };
  for (int64_t j = 0; j < n_; ++j) z[j] = times(turned(from[j]), chirp[j]);
  std::fill(z + n_, z + padded, std::complex<T>());
  padded_->transform(scratch.get(), scratch.get(), false, T(1));
  for (int64_t j = 0; j < padded; ++j) z[j] = times(z[j], filter[j]);
  padded_->transform(scratch.get(), scratch.get(), true, scale / static_cast<T>(padded));
  for (int64_t j = 0; j < n_; ++j) to[j] = turned(times(z[j], chirp[j]));
}

// ---- Real input

template <class T>
std::shared_ptr<const RealFftPlan<T>> RealFftPlan<T>::of(int64_t n) {
  static PlanCache<RealFftPlan<T>> cache;
  return cache.get(n);
}

template <class T>
RealFftPlan<T>::RealFftPlan(int64_t n) : n_(n), plan_(FftPlan<T>::of(n % 2 == 0 ? n / 2 : n)) {
  if (n % 2 != 0) return;
  for (int64_t k = 0; k <= n / 2; ++k) {
    const std::complex<double> w = unit(k, n);
    twiddle_.push_back(static_cast<T>(w.real()));
    twiddle_.push_back(static_cast<T>(w.imag()));
  }
}

template <class T>
void RealFftPlan<T>::forward(const T* in, T* out, T scale) const {
  if (n_ % 2 != 0) {
    const Scratch<T> scratch(2 * n_);
    T* z = scratch.get();
    for (int64_t j = 0; j < n_; ++j) {
      z[2 * j] = in[j];
      z[2 * j + 1] = T(0);
    }
    plan_->transform(z, z, false, scale);
    std::copy(z, z + 2 * (n_ / 2 + 1), out);
    return;
  }
  // The even numbers as real parts, the odd ones as imaginary parts of half as many.
  const int64_t half = n_ / 2;
  plan_->transform(in, out, false, scale / 2);
  out[2 * half] = out[0];
  out[2 * half + 1] = out[1];
  fft_kernels<T>().untangle(out, twiddle_.data(), half);
}

template <class T>
void RealFftPlan<T>::backward(const T* in, T* out, T scale) const {
  const int64_t half = n_ / 2;
  if (n_ % 2 != 0) {
    const Scratch<T> scratch(2 * n_);
    T* z = scratch.get();
    z[0] = in[0];
    z[1] = T(0);
    for (int64_t k = 1; k <= half; ++k) {
      z[2 * k] = in[2 * k];
      z[2 * k + 1] = in[2 * k + 1];
      z[2 * (n_ - k)] = in[2 * k];
      z[2 * (n_ - k) + 1] = -in[2 * k + 1];
    }
    plan_->transform(z, z, true, scale);
    for (int64_t j = 0; j < n_; ++j) out[j] = z[2 * j];
    return;
  }
  fft_kernels<T>().tangle(in, twiddle_.data(), half, out);
  plan_->transform(out, out, true, scale);
}

template class FftPlan<float>;
template class FftPlan<double>;
template class RealFftPlan<float>;
template class RealFftPlan<double>;

}  // namespace kiln::cpu
