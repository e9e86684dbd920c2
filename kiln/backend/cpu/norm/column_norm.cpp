#include "kiln/backend/cpu/norm/column_norm.h"

#include <algorithm>
#include <cmath>

#include "kiln/backend/cpu/norm/column_norm_kernels.h"
#include "kiln/backend/cpu/norm/norm_kernels.h"
#include "kiln/backend/cpu/rounding.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu {
namespace {

// Rows whose sums are taken in T, and columns of them that stay in the cache for that. Both are the
// same however many threads there are, and so are the sums.
constexpr int64_t kRows = 256, kColumns = 256;

template <class T>
double as_double(T v) {
  return static_cast<double>(v);
}

// Calls f(piece, first row, rows, first column, columns) for all pieces.
template <class F>
void for_each_piece(const ChannelRows& p, const F& f) {
  const int64_t strips = ceil_div(p.channels, kColumns), pieces = ceil_div(p.rows, kRows);
  const int64_t work = std::min(p.rows, kRows) * std::min(p.channels, kColumns);
  parallel_for(pieces * strips, std::max<int64_t>(kGrain / std::max<int64_t>(work, 1), 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t row = i / strips * kRows, column = i % strips * kColumns;
                   f(i / strips, row, std::min(kRows, p.rows - row), column,
                     std::min(kColumns, p.channels - column));
                 }
               });
}

int64_t pieces_of(const ChannelRows& p) { return ceil_div(p.rows, kRows); }

// Calls f(begin, end) for rows.
template <class F>
void for_each_row(const ChannelRows& p, const F& f) {
  parallel_for(p.rows, std::max<int64_t>(kGrain / p.channels, 1), f);
}

template <class T>
double at_or(const T* values, int64_t c, double otherwise) {
  return values == nullptr ? otherwise : as_double(values[c]);
}

}  // namespace

template <class T>
void batch_norm_of_rows(const ChannelRows& p, const T* x, const T* weight, const T* bias,
                        double eps, T* y, T* mean, T* var) {
  const auto& kernels = column_norm_kernels<T>();
  const int64_t channels = p.channels, pieces = pieces_of(p);
  const Scratch<T> sums(3 * pieces * channels);
  T* const about = sums.get();
  T* const above = about + pieces * channels;
  T* const squares = above + pieces * channels;
  for_each_piece(p, [&](int64_t piece, int64_t row, int64_t rows, int64_t column, int64_t columns) {
    const int64_t to = piece * channels + column;
    kernels.moments(x + row * channels + column, rows, columns, channels, about + to, above + to,
                    squares + to);
  });
  const Scratch<T> of_channels(2 * channels);
  T* const scale = of_channels.get();
  T* const shift = scale + channels;
  for (int64_t c = 0; c < channels; ++c) {
    Moments all;
    for (int64_t piece = 0; piece < pieces; ++piece) {
      const int64_t at = piece * channels + c;
      const auto count = static_cast<double>(std::min(kRows, p.rows - piece * kRows));
      const double gap = as_double(above[at]) / count;
      all.add({count, as_double(about[at]) + gap,
               std::max(as_double(squares[at]) - gap * gap * count, 0.0)});
    }
    const double variance = all.squares / all.count;
    mean[c] = static_cast<T>(all.mean);
    var[c] = static_cast<T>(variance);
    const double factor = at_or(weight, c, 1.0) / std::sqrt(variance + eps);
    scale[c] = static_cast<T>(factor);
    shift[c] = static_cast<T>(at_or(bias, c, 0.0) + (as_double(mean[c]) - all.mean) * factor);
  }
  for_each_row(p, [&](int64_t begin, int64_t end) {
    kernels.normalize(x + begin * channels, mean, scale, shift, end - begin, channels,
                      y + begin * channels);
  });
}

template <class T>
void batch_norm_of_rows_backward(const ChannelRows& p, const T* g, const T* x, const T* weight,
                                 const T* mean, const T* var, double eps, T* dx, T* weight_grad,
                                 T* bias_grad) {
  const auto& kernels = column_norm_kernels<T>();
  const int64_t channels = p.channels, pieces = pieces_of(p);
  const Scratch<T> sums(2 * pieces * channels);
  T* const of_g = sums.get();
  T* const of_gx = of_g + pieces * channels;
  for_each_piece(p, [&](int64_t piece, int64_t row, int64_t rows, int64_t column, int64_t columns) {
    const int64_t from = row * channels + column, to = piece * channels + column;
    kernels.gradient_sums(g + from, x + from, mean + column, rows, columns, channels, of_g + to,
                          of_gx + to);
  });
  const Scratch<T> of_channels(3 * channels);
  T* const a = of_channels.get();
  T* const b = a + channels;
  T* const shift = b + channels;
  const auto count = static_cast<double>(p.rows);
  for (int64_t c = 0; c < channels; ++c) {
    double sum_g = 0.0, sum_gx = 0.0;
    for (int64_t piece = 0; piece < pieces; ++piece) {
      sum_g += as_double(of_g[piece * channels + c]);
      sum_gx += as_double(of_gx[piece * channels + c]);
    }
    const double rstd = 1.0 / std::sqrt(as_double(var[c]) + eps);
    weight_grad[c] = static_cast<T>(sum_gx * rstd);
    bias_grad[c] = static_cast<T>(sum_g);
    // rstd w (g - mean(g) - x' mean(g x')) with x' = (x - mean) rstd.
    const double factor = rstd * at_or(weight, c, 1.0);
    a[c] = static_cast<T>(factor);
    b[c] = static_cast<T>(-factor * rstd * rstd * sum_gx / count);
    shift[c] = static_cast<T>(-factor * sum_g / count);
  }
  for_each_row(p, [&](int64_t begin, int64_t end) {
    const int64_t from = begin * channels;
    kernels.normalize_backward(g + from, x + from, mean, a, b, shift, end - begin, channels,
                               dx + from);
  });
}

template <class T>
void batch_norm_of_rows_inference(const ChannelRows& p, const T* x, const T* mean, const T* var,
                                  const T* weight, const T* bias, double eps, T* y) {
  const Scratch<T> of_channels(2 * p.channels);
  T* const scale = of_channels.get();
  T* const shift = scale + p.channels;
  for (int64_t c = 0; c < p.channels; ++c) {
    scale[c] = static_cast<T>(at_or(weight, c, 1.0) / std::sqrt(as_double(var[c]) + eps));
    shift[c] = bias == nullptr ? T(0) : bias[c];
  }
  for_each_row(p, [&](int64_t begin, int64_t end) {
    column_norm_kernels<T>().normalize(x + begin * p.channels, mean, scale, shift, end - begin,
                                       p.channels, y + begin * p.channels);
  });
}

#define KILN_COLUMN_NORM(T)                                                                      \
  template void batch_norm_of_rows(const ChannelRows&, const T*, const T*, const T*, double, T*, \
                                   T*, T*);                                                      \
  template void batch_norm_of_rows_backward(const ChannelRows&, const T*, const T*, const T*,    \
                                            const T*, const T*, double, T*, T*, T*);             \
  template void batch_norm_of_rows_inference(const ChannelRows&, const T*, const T*, const T*,   \
                                             const T*, const T*, double, T*);
KILN_COLUMN_NORM(float)
KILN_COLUMN_NORM(double)
#undef KILN_COLUMN_NORM

}  // namespace kiln::cpu
