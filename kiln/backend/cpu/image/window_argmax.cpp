// The largest elements of windows: float_window_argmax.
#include <algorithm>
#include <cmath>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/image/window_max_kernels.h"
#include "kiln/backend/cpu/operand.h"
#include "kiln/core/parallel.h"

namespace kiln {
namespace cpu {
namespace {

// Rows as short as this are looked at element by element.
constexpr int64_t kShortRow = 4;

struct Windows {
  Shape plane;  // [D, H, W]
  Shape out;    // [OD, OH, OW]
  const int64_t* starts;
  const int64_t* lengths;
  int64_t starts_step;  // between those of two planes; 0 where all have the same
  int64_t per_plane() const { return out[0] + out[1] + out[2]; }
  int64_t area() const { return plane[1] * plane[2]; }
};

template <class T>
bool is_better(T value, T top) {
  return value > top || (std::isnan(value) && !std::isnan(top));
}

// A box at `at` of short rows, without branches, which nobody could predict.
template <class T>
int64_t largest_of_few(const T* x, int64_t at, const int64_t* size, const Windows& w) {
  int64_t best = at;
  T top = x[at];
  for (int64_t i = 0; i < size[0]; ++i) {
    for (int64_t j = 0; j < size[1]; ++j) {
      const int64_t row = at + i * w.area() + j * w.plane[2];
      for (int64_t k = row; k < row + size[2]; ++k) {
        const T value = x[k];
        const bool better = static_cast<int>(value > top) | static_cast<int>(value != value);
        best = better ? k : best;
        top = better ? value : top;
      }
    }
  }
  return best;
}

template <class T>
int64_t largest_of_many(const T* x, int64_t at, const int64_t* size, const Windows& w,
                        WindowMax<T> find) {
  int64_t best = -1;
  for (int64_t i = 0; i < size[0]; ++i) {
    const int64_t slice = at + i * w.area();
    const int64_t found = slice + find(x + slice, size[1], w.plane[2], size[2]);
    if (best < 0 || is_better(x[found], x[best])) best = found;
  }
  return best;
}

template <class T>
void find_in_plane(const T* x, const int64_t* starts, const Windows& w, bool few, int64_t* to) {
  const WindowMax<T> find = window_max<T>();
  const int64_t* const rows = starts + w.out[0];
  const int64_t* const columns = rows + w.out[1];
  const int64_t* const heights = w.lengths + w.out[0];
  const int64_t* const widths = heights + w.out[1];
  for (int64_t i = 0; i < w.out[0]; ++i) {
    for (int64_t j = 0; j < w.out[1]; ++j) {
      for (int64_t k = 0; k < w.out[2]; ++k) {
        const int64_t at = starts[i] * w.area() + rows[j] * w.plane[2] + columns[k];
        const int64_t size[] = {w.lengths[i], heights[j], widths[k]};
        *to++ = few ? largest_of_few(x, at, size, w) : largest_of_many(x, at, size, w, find);
      }
    }
  }
}

template <class T>
void find_all(const T* x, int64_t planes, const Windows& w, int64_t longest_row, int64_t window,
              int64_t* to) {
  const int64_t windows = w.out.numel();
  const int64_t work = std::max<int64_t>(1, windows * window);
  parallel_for(planes, std::max<int64_t>(1, kGrain / work), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      find_in_plane(x + p * w.plane.numel(), w.starts + p * w.starts_step, w,
                    longest_row <= kShortRow, to + p * windows);
    }
  });
}

// A graph from a file may hold any.
void check_windows(const Windows& w, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r) {
    int64_t i = 0;
    for (int d = 0; d < 3; ++d) {
      for (const int64_t end = i + w.out[d]; i < end; ++i) {
        const int64_t start = w.starts[r * w.per_plane() + i], length = w.lengths[i];
        if (start >= 0 && length >= 1 && start < w.plane[d] && length <= w.plane[d] - start) {
          continue;
        }
        throw_error<IndexError>("max_pool: got a window of ", length, " elements at ", start,
                                "; expected one within the ", w.plane[d], " of the dim");
      }
    }
  }
}

}  // namespace
}  // namespace cpu

HostHandle CpuOps::float_window_argmax(Arg<HostHandle> x, Arg<HostHandle> starts,
                                       Arg<HostHandle> lengths, const Shape& out,
                                       const Shape& longest) {
  if (cpu::is_half(x->dtype())) {
    return float_window_argmax(cpu::widened(x), starts, lengths, out, longest);
  }
  const HostHandle in = cpu::contiguous(x.get());
  const HostHandle begins = cpu::contiguous(starts.get());
  const HostHandle sizes = cpu::contiguous(lengths.get());
  const Shape& s = in->shape();
  cpu::Windows w{{s[2], s[3], s[4]},
                 out,
                 begins->data_as<const int64_t>(),
                 sizes->data_as<const int64_t>(),
                 0};
  cpu::check_windows(w, begins->shape()[0]);
  if (begins->shape()[0] > 1) w.starts_step = w.per_plane();
  HostHandle found = host::empty(Shape{s[0], s[1], out.numel()}, DType::i64, in->device());
  const auto run = [&]<class T>() {
    cpu::find_all<T>(in->data_as<const T>(), s[0] * s[1], w, longest[2], longest.numel(),
                     found->data_as<int64_t>());
  };
  in->dtype() == DType::f64 ? run.operator()<double>() : run.operator()<float>();
  return found;
}

}  // namespace kiln
