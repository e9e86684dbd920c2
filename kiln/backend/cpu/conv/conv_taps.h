// Which taps of a convolution see more than padding. Internal to the Cpu backend.
#pragma once

#include <algorithm>
#include <utility>

#include "kiln/backend/cpu/conv/conv.h"
#include "kiln/backend/cpu/rounding.h"

namespace kiln::cpu {

// One dim of a convolution.
struct TapsOfDim {
  int64_t out, size, kernel, stride, padding, dilation;

  // The taps [first, second) of output element o that see more than padding; without any, first is
  // the kernel's size and second 0.
  std::pair<int64_t, int64_t> taps(int64_t o) const {
    const int64_t first = o * stride - padding;
    const int64_t begin = first < 0 ? std::min(ceil_div(-first, dilation), kernel) : 0;
    const int64_t end =
        first < size ? std::min(ceil_div(size - first, dilation), kernel) : int64_t{0};
    return begin < end ? std::pair(begin, end) : std::pair(kernel, int64_t{0});
  }
  // The part of all taps that see more than padding.
  double seen() const {
    const int64_t reach = dilation * (kernel - 1);
    // The first that sees no padding before it. (A gradient's padding may be negative.)
    const int64_t low = std::clamp<int64_t>(ceil_div(padding, stride), 0, out);
    int64_t lost = 0;
    const auto lose = [&](int64_t o) {
      const auto [begin, end] = taps(o);
      lost += kernel - std::max<int64_t>(end - begin, 0);
    };
    for (int64_t o = 0; o < low; ++o) lose(o);
    for (int64_t o = out - 1; o >= low && o * stride - padding + reach >= size; --o) lose(o);
    return 1.0 -
           static_cast<double>(lost) / static_cast<double>(std::max<int64_t>(out * kernel, 1));
  }
};

struct TapsOfDims {
  TapsOfDim depths, rows, columns;

  explicit TapsOfDims(const ConvSizes& s)
      : depths{s.depths.out,    s.depths.size,    std::max<int64_t>(s.depths.kernel, 1),
               s.depths.stride, s.depths.padding, s.depths.dilation},
        rows{s.out_height,          s.height,
             s.geometry.kernel[0],  s.geometry.stride[0],
             s.geometry.padding[0], s.geometry.dilation[0]},
        columns{s.out_width,           s.width,
                s.geometry.kernel[1],  s.geometry.stride[1],
                s.geometry.padding[1], s.geometry.dilation[1]} {}
  double seen() const { return depths.seen() * rows.seen() * columns.seen(); }
};

}  // namespace kiln::cpu
