// The inner loops of Fourier transforms, over real and imaginary parts in arrays of their own.
#pragma once

#include <cstdint>

namespace kiln::cpu {

// The largest radix that a pass has; longer prime factors go Bluestein's way.
inline constexpr int64_t kLargestRadix = 31;

template <class T>
struct FftKernels {
  // A pass of Stockham's algorithm: s interleaved transforms of length radix * m become radix * s
  // of length m. For p < m and q < s, out[q + s (radix p + k)] = w^(p k) sum_j in[q + s (p + m j)]
  // e^(-2 pi i j k / radix). Twiddle factors w^(p k) stand at [(k - 1) m + p].
  void (*pass)(int64_t radix, int64_t m, int64_t s, const T* re, const T* im, T* out_re, T* out_im,
               const T* twiddle_re, const T* twiddle_im);
  // Interleaved numbers into two arrays, and back, scaled.
  void (*split)(const T* z, T* re, T* im, int64_t n);
  void (*join)(const T* re, const T* im, T* z, int64_t n, T scale);
  // (re, im) times w times the number (c, d), elementwise.
  void (*twist)(const T* re, const T* im, const T* w_re, const T* w_im, T c, T d, T* out_re,
                T* out_im, int64_t n);
  // The spectrum of 2 n real numbers, [n + 1] complex ones in place, from that of n complex ones
  // made of pairs of them (twice as large), whose first also stands last. w: e^(-2 pi i k / 2 n).
  void (*untangle)(T* z, const T* w, int64_t n);
  // And back, without the factor: [n + 1] numbers to n. Neither has an imaginary part that counts
  // at its ends.
  void (*tangle)(const T* z, const T* w, int64_t n, T* out);
  // Numbers k of `lanes` sequences side by side, each times w[k], which is interleaved.
  void (*twist_lanes)(const T* re, const T* im, const T* w, int64_t n, int64_t lanes, T* out_re,
                      T* out_im);
  // untangle and tangle of `lanes` spectra side by side, number k of each at [k * lanes], whose
  // real and imaginary parts are in arrays of their own: [n] to [n + 1] numbers, and back.
  void (*untangle_lanes)(const T* re, const T* im, const T* w, int64_t n, int64_t lanes, T* out_re,
                         T* out_im);
  void (*tangle_lanes)(const T* re, const T* im, const T* w, int64_t n, int64_t lanes, T* out_re,
                       T* out_im);
};

// For the best instruction set of this machine.
template <class T>
const FftKernels<T>& fft_kernels();

}  // namespace kiln::cpu
