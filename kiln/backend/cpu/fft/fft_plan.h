// Fourier transforms of any length in host memory.
//
// A length is factored into 4, 2, 3, 5 and primes up to 31, one pass of Stockham's algorithm each;
// a longer prime factor makes it a convolution (Bluestein). Long transforms are cut into rows and
// columns that fit the cache, which the threads share.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace kiln::cpu {

template <class T>
class RealFftPlan;

// How many short rows are transformed together, in the lanes of vectors.
inline constexpr int64_t kFftRows = 16;

template <class T>
class FftPlan {
 public:
  explicit FftPlan(int64_t n);

  // The plan for n >= 1, from a bounded cache.
  static std::shared_ptr<const FftPlan> of(int64_t n);

  int64_t size() const { return n_; }
  // Whether one transform is spread over the threads.
  bool is_parallel() const { return rows_ != nullptr; }
  // Whether so few numbers are better transformed together with those of other rows. Multiples of
  // 16 fill vectors by themselves.
  bool is_short() const {
    if (padded_ != nullptr) return padded_->rows_ == nullptr && padded_->n_ <= 1024;
    const int64_t most = n_ % 16 == 0 ? 256 : 512;
    return rows_ == nullptr && n_ >= 2 && n_ <= most;
  }

  // out[k] = scale sum_j in[j] e^(-+ 2 pi i j k / n) over interleaved numbers; - unless `inverse`.
  // `out` may be `in`.
  void transform(const T* in, T* out, bool inverse, T scale) const;
  // The same of `rows` rows of n numbers, one after another.
  void transform_rows(const T* in, T* out, int64_t rows, bool inverse, T scale) const;
  // The same of `width` columns that lie side by side, number j of each at in[2 j step].
  void transform_columns(const T* in, T* out, int64_t step, int64_t width, bool inverse,
                         T scale) const;

 private:
  friend class RealFftPlan<T>;

  struct Pass {
    int64_t radix;
    int64_t m;
    int64_t s;
    size_t twiddles;  // where they begin
  };

  void plan_passes(std::vector<int64_t> factors);
  void plan_rows();
  void plan_convolution();
  // Transforms `lanes` interleaved sequences from a to b or back; returns whether the result is in
  // b. `from` may be a itself.
  bool run_passes(const T* from_re, const T* from_im, T* a_re, T* a_im, T* b_re, T* b_im,
                  int64_t lanes) const;
  // The same of any short transform.
  bool run_short(T* a_re, T* a_im, T* b_re, T* b_im, int64_t lanes) const;
  void direct(const T* in, T* out, bool inverse, T scale) const;
  void by_rows(const T* in, T* out, bool inverse, T scale) const;
  void by_convolution(const T* in, T* out, bool inverse, T scale) const;

  int64_t n_;
  std::vector<Pass> passes_;
  std::vector<T> twiddle_re_;
  std::vector<T> twiddle_im_;
  // By rows: n = columns.n * rows.n.
  std::shared_ptr<const FftPlan> columns_;
  std::shared_ptr<const FftPlan> rows_;
  std::vector<T> step_re_;  // w^(k1 l) for l below a block's width
  std::vector<T> step_im_;
  // By convolution, interleaved: the chirp, and the transform of its conjugate.
  std::shared_ptr<const FftPlan> padded_;
  std::vector<T> chirp_;
  std::vector<T> filter_;
};

// Real input, n numbers -> n / 2 + 1; and back (the imaginary parts of numbers 0 and n / 2 do not
// matter). No batch.
template <class T>
class RealFftPlan {
 public:
  explicit RealFftPlan(int64_t n);
  static std::shared_ptr<const RealFftPlan> of(int64_t n);
  bool is_parallel() const { return plan_->is_parallel(); }
  bool is_short() const { return plan_->is_short(); }

  void forward(const T* in, T* out, T scale) const;
  void backward(const T* in, T* out, T scale) const;
  // The same of `rows` rows, of which the spectra begin `step` numbers apart.
  void forward_rows(const T* in, T* out, int64_t rows, int64_t step, T scale) const;
  void backward_rows(const T* in, T* out, int64_t rows, int64_t step, T scale) const;

 private:
  void forward_together(const T* in, T* out, int64_t rows, int64_t step, T scale) const;
  void backward_together(const T* in, T* out, int64_t rows, int64_t step, T scale) const;

  int64_t n_;
  std::shared_ptr<const FftPlan<T>> plan_;  // of n / 2 numbers when n is even, else of n
  std::vector<T> twiddle_;                  // e^(-2 pi i k / n), interleaved
};

}  // namespace kiln::cpu
