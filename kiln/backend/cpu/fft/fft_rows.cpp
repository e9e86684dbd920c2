// Transforms of many short rows. A pass over one of them fills no vector, so that kFftRows rows are
// turned to lie side by side, and transformed in the lanes of vectors.
#include <algorithm>

#include "kiln/backend/cpu/copy/transpose.h"
#include "kiln/backend/cpu/fft/fft_kernels.h"
#include "kiln/backend/cpu/fft/fft_plan.h"
#include "kiln/backend/cpu/scratch.h"

namespace kiln::cpu {

namespace {

// Fewer rows than this are transformed one by one.
constexpr int64_t kFewestRows = 4;

// Real and imaginary parts of `n` numbers of `rows` rows, those of one number side by side.
template <class T>
struct SideBySide {
  T* re;
  T* im;
};

// Rows of interleaved numbers, which begin `step` numbers apart. spare: as large as the result.
template <class T>
void turn(const T* in, int64_t step, int64_t n, int64_t rows, T* spare, SideBySide<T> to) {
  const FftKernels<T>& kernels = fft_kernels<T>();
  T* const im = spare + n * rows;
  for (int64_t r = 0; r < rows; ++r) {
    kernels.split(in + 2 * r * step, spare + r * n, im + r * n, n);
  }
  transpose(spare, n, to.re, rows, rows, n);
  transpose(im, n, to.im, rows, rows, n);
}

// And back, scaled.
template <class T>
void turn_back(SideBySide<const T> from, int64_t step, int64_t n, int64_t rows, T scale, T* spare,
               T* out) {
  const FftKernels<T>& kernels = fft_kernels<T>();
  T* const im = spare + n * rows;
  transpose(from.re, rows, spare, n, n, rows);
  transpose(from.im, rows, im, n, n, rows);
  for (int64_t r = 0; r < rows; ++r) {
    kernels.join(spare + r * n, im + r * n, out + 2 * r * step, n, scale);
  }
}

// Two places between which passes go, each of `numbers` real and imaginary parts, and a spare one.
template <class T>
struct Places {
  Scratch<T> scratch;
  T* a;
  T* b;
  T* spare;

  explicit Places(int64_t numbers)
      : scratch(6 * numbers), a(scratch.get()), b(a + 2 * numbers), spare(b + 2 * numbers) {}
};

// f(first, count) for blocks of rows; how many rows were done.
template <class F>
int64_t by_blocks(int64_t rows, const F& f) {
  int64_t done = 0;
  while (rows - done >= kFewestRows) {
    const int64_t count = std::min(kFftRows, rows - done);
    f(done, count);
    done += count;
  }
  return done;
}

}  // namespace

template <class T>
bool FftPlan<T>::run_short(T* a_re, T* a_im, T* b_re, T* b_im, int64_t lanes) const {
  if (padded_ == nullptr) return run_passes(a_re, a_im, a_re, a_im, b_re, b_im, lanes);
  // As by_convolution().
  const FftKernels<T>& kernels = fft_kernels<T>();
  const int64_t padded = padded_->n_, size = padded * lanes, own = n_ * lanes;
  const Scratch<T> scratch(4 * size);
  T* const z = scratch.get();
  T* const spare = z + 2 * size;
  kernels.twist_lanes(a_re, a_im, chirp_.data(), n_, lanes, z, z + size);
  std::fill(z + own, z + size, T(0));
  std::fill(z + size + own, z + 2 * size, T(0));
  const bool moved = padded_->run_passes(z, z + size, z, z + size, spare, spare + size, lanes);
  T* const spectrum = moved ? spare : z;
  kernels.twist_lanes(spectrum, spectrum + size, filter_.data(), padded, lanes, spectrum,
                      spectrum + size);
  // The inverse transform, with real and imaginary parts exchanged.
  T* const free = moved ? z : spare;
  const bool in_free = padded_->run_passes(spectrum + size, spectrum, spectrum + size, spectrum,
                                           free + size, free, lanes);
  const T* const done = in_free ? free : spectrum;
  kernels.twist_lanes(done, done + size, chirp_.data(), n_, lanes, a_re, a_im);
  const T scale = T(1) / static_cast<T>(padded);
  for (int64_t i = 0; i < own; ++i) {
    a_re[i] *= scale;
    a_im[i] *= scale;
  }
  return false;
}

template <class T>
void FftPlan<T>::transform_rows(const T* in, T* out, int64_t rows, bool inverse, T scale) const {
  int64_t done = 0;
  if (is_short()) {
    const Places<T> places(n_ * kFftRows);
    T *const a = places.a, *const b = places.b;
    done = by_blocks(rows, [&](int64_t first, int64_t count) {
      // The inverse transform has real and imaginary parts exchanged.
      const int64_t size = n_ * count, re = inverse ? size : 0, im = inverse ? 0 : size;
      turn<T>(in + 2 * first * n_, n_, n_, count, places.spare, {a + re, a + im});
      const T* const z = run_short(a, a + size, b, b + size, count) ? b : a;
      turn_back<T>({z + re, z + im}, n_, n_, count, scale, places.spare, out + 2 * first * n_);
    });
  }
  for (; done < rows; ++done) {
    transform(in + 2 * done * n_, out + 2 * done * n_, inverse, scale);
  }
}

template <class T>
void RealFftPlan<T>::forward_together(const T* in, T* out, int64_t rows, int64_t step,
                                      T scale) const {
  const FftKernels<T>& kernels = fft_kernels<T>();
  const int64_t half = n_ / 2, n = plan_->n_, size = n * rows, room = (n + 1) * rows;
  const Places<T> places(room);
  T *const a = places.a, *const b = places.b, *const spare = places.spare;
  const bool is_even = n_ % 2 == 0;
  if (is_even) {
    turn<T>(in, n, n, rows, spare, {a, a + size});
  } else {
    transpose(in, n, a, rows, rows, n);
    std::fill_n(a + size, size, T(0));
  }
  const bool in_b = plan_->run_short(a, a + size, b, b + size, rows);
  const T* const z = in_b ? b : a;
  if (!is_even) return turn_back<T>({z, z + size}, step, half + 1, rows, scale, spare, out);
  T* const whole = in_b ? a : b;
  kernels.untangle_lanes(z, z + size, twiddle_.data(), half, rows, whole, whole + room);
  turn_back<T>({whole, whole + room}, step, half + 1, rows, scale / 2, spare, out);
}

template <class T>
void RealFftPlan<T>::backward_together(const T* in, T* out, int64_t rows, int64_t step,
                                       T scale) const {
  const FftKernels<T>& kernels = fft_kernels<T>();
  const int64_t half = n_ / 2, n = plan_->n_, size = n * rows, room = (n + 1) * rows;
  const Places<T> places(room);
  T *const a = places.a, *const b = places.b, *const spare = places.spare;
  // The inverse transform has real and imaginary parts exchanged.
  if (n_ % 2 == 0) {
    turn<T>(in, step, half + 1, rows, spare, {b, b + room});
    kernels.tangle_lanes(b, b + room, twiddle_.data(), half, rows, a + size, a);
    const T* const z = plan_->run_short(a, a + size, b, b + size, rows) ? b : a;
    return turn_back<T>({z + size, z}, n, n, rows, scale, spare, out);
  }
  T* const re = a + size;
  T* const im = a;
  turn<T>(in, step, half + 1, rows, spare, {re, im});
  std::fill_n(im, rows, T(0));
  for (int64_t k = 1; k <= half; ++k) {
    std::copy_n(re + k * rows, rows, re + (n - k) * rows);
    for (int64_t r = 0; r < rows; ++r) im[(n - k) * rows + r] = -im[k * rows + r];
  }
  const T* const z = plan_->run_short(a, a + size, b, b + size, rows) ? b : a;
  transpose(z + size, rows, out, n, n, rows);
  for (int64_t i = 0; i < size; ++i) out[i] *= scale;
}

template <class T>
void RealFftPlan<T>::forward_rows(const T* in, T* out, int64_t rows, int64_t step, T scale) const {
  int64_t done = 0;
  if (plan_->is_short()) {
    done = by_blocks(rows, [&](int64_t first, int64_t count) {
      forward_together(in + first * n_, out + 2 * first * step, count, step, scale);
    });
  }
  for (; done < rows; ++done) forward(in + done * n_, out + 2 * done * step, scale);
}

template <class T>
void RealFftPlan<T>::backward_rows(const T* in, T* out, int64_t rows, int64_t step, T scale) const {
  int64_t done = 0;
  if (plan_->is_short()) {
    done = by_blocks(rows, [&](int64_t first, int64_t count) {
      backward_together(in + 2 * first * step, out + first * n_, count, step, scale);
    });
  }
  for (; done < rows; ++done) backward(in + 2 * done * step, out + done * n_, scale);
}

template void FftPlan<float>::transform_rows(const float*, float*, int64_t, bool, float) const;
template void FftPlan<double>::transform_rows(const double*, double*, int64_t, bool, double) const;
template void RealFftPlan<float>::forward_rows(const float*, float*, int64_t, int64_t, float) const;
template void RealFftPlan<double>::forward_rows(const double*, double*, int64_t, int64_t,
                                                double) const;
template void RealFftPlan<float>::backward_rows(const float*, float*, int64_t, int64_t,
                                                float) const;
template void RealFftPlan<double>::backward_rows(const double*, double*, int64_t, int64_t,
                                                 double) const;

}  // namespace kiln::cpu
