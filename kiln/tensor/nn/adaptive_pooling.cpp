// Adaptive pooling: means one dim after the other, since every window is a box.
#include <algorithm>

#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/memory_check.h"
#include "kiln/tensor/nn/functional_support.h"
#include "kiln/tensor/nn/largest_places.h"
#include "kiln/tensor/nn/pooling.h"
#include "kiln/tensor/nn/resampling.h"

namespace kiln::functional {

using namespace detail;

namespace {

// The windows that divide `in` elements into `out` parts, which may overlap by one.
struct Division {
  int64_t in, out;

  int64_t start(int64_t i) const { return i * in / out; }
  int64_t length(int64_t i) const { return ((i + 1) * in + out - 1) / out - start(i); }

  // Each output as the mean of its window.
  LineMap means() const {
    LineMap map(in);
    for (int64_t i = 0; i < out; ++i) {
      map.begin_output();
      const int64_t n = length(i);
      for (int64_t j = 0; j < n; ++j) map.put(start(i) + j, 1.0 / static_cast<double>(n));
    }
    return map;
  }
};

Triple sizes_of(const char* op, const Planes& planes, const Sizes& output_size) {
  Triple out = triple_of(op, "output_size", output_size, planes.spatial, -1, -1);
  for (size_t i = 0; i < 3; ++i) {
    const int64_t in = planes.x.size(static_cast<int64_t>(i) + 2);
    if (out[i] == -1) out[i] = in;
    if (in < 1) {
      throw_error<ShapeError>(op, ": a spatial dim is empty; got ", planes.x.shape());
    }
    if (out[i] >= int64_t{1} << 31 || in >= int64_t{1} << 31) {
      throw_error<ShapeError>(op, ": a size is too large; got ", in, " to ", out[i]);
    }
    if (out[i] < 0) {
      throw_error<ShapeError>(op, ": a size is negative; got ", out[i]);
    }
    // The elements of all windows of a dim, which are listed one by one.
    check_memory(op, Shape{std::max<int64_t>(in, 2 * out[i])}, i64);
  }
  check_memory(op, Shape{planes.x.size(0), planes.x.size(1), out[0], out[1], out[2]}, f64);
  return out;
}

// The window of the pooling that this one is, where all windows of all dims are equal and meet no
// other.
std::optional<Shape> common_window(const Tensor& x, const Triple& sizes, int spatial) {
  Shape window;
  for (int i = 3 - spatial; i < 3; ++i) {
    const int64_t out = sizes[static_cast<size_t>(i)], in = x.size(2 + i);
    if (out == 0 || in % out != 0) return std::nullopt;
    window.push_back(in / out);
  }
  return window;
}

Tensor adaptive_avg_pool(const char* op, int spatial, const Tensor& input,
                         const Sizes& output_size) {
  if (spatial == 3) KILN_AUTOCAST(f32, adaptive_avg_pool, op, spatial, input, output_size);
  require_floating(op, input);
  const Planes planes(op, input, spatial);
  const Triple sizes = sizes_of(op, planes, output_size);
  Tensor x = planes.x;
  const bool everything = sizes == Triple{1, 1, 1};
  if (everything) return planes.restored(x.mean({2, 3, 4}, true));
  if (const std::optional<Shape> window = common_window(x, sizes, spatial)) {
    return spatial == 1   ? avg_pool1d(input, *window)
           : spatial == 2 ? avg_pool2d(input, Sizes(*window))
                          : avg_pool3d(input, *window);
  }
  std::vector<DimMap> maps;
  for (int i = 2; i >= 0; --i) {
    const Division d{x.size(i + 2), sizes[static_cast<size_t>(i)]};
    if (d.out == 0) {
      x = x.narrow(i + 2, 0, 0);
    } else if (d.in != d.out) {
      maps.push_back({i + 2, d.means()});
    }
  }
  if (maps.empty()) return planes.restored(x);
  const bool is_half = size_of(x.dtype()) == 2;  // sums of 16-bit numbers are rounded once
  const Tensor means = resampled(is_half ? x.to(f32) : x, std::move(maps));
  return planes.restored(is_half ? means.to(x.dtype()) : means);
}

// Where each window's largest element lies in its plane of x [N, C, D, H, W]: [N, C, windows].
Tensor places_of_largest(const Tensor& x, const Triple& sizes) {
  std::vector<int64_t> starts, lengths;
  Shape out, longest;
  for (int i = 0; i < 3; ++i) {
    const Division d{x.shape()[i + 2], sizes[static_cast<size_t>(i)]};
    int64_t most = 0;
    for (int64_t k = 0; k < d.out; ++k) {
      starts.push_back(d.start(k));
      lengths.push_back(d.length(k));
      most = std::max(most, d.length(k));
    }
    out.push_back(d.out);
    longest.push_back(most);
  }
  return largest_places(x, beside(x, starts).unsqueeze(0), beside(x, lengths), out, longest);
}

std::pair<Tensor, Tensor> adaptive_max_pool(const char* op, int spatial, const Tensor& input,
                                            const Sizes& output_size) {
  if (spatial == 3) KILN_AUTOCAST(f32, adaptive_max_pool, op, spatial, input, output_size);
  require_floating(op, input);
  const Planes planes(op, input, spatial);
  const Triple sizes = sizes_of(op, planes, output_size);
  const Shape s = planes.x.shape();
  const Tensor& x = planes.x;
  if (const std::optional<Shape> window = common_window(x, sizes, spatial)) {
    return spatial == 1   ? max_pool1d_with_indices(input, *window)
           : spatial == 2 ? max_pool2d_with_indices(input, Sizes(*window))
                          : max_pool3d_with_indices(input, *window);
  }
  const Tensor index = places_of_largest(x, sizes);
  const Shape flat{s[0], s[1], s[2] * s[3] * s[4]};
  const Shape out{s[0], s[1], sizes[0], sizes[1], sizes[2]};
  const Tensor best = x.reshape(flat).gather(2, index).reshape(out);
  return {planes.restored(best), planes.restored(index.reshape(out))};
}

}  // namespace

#define KILN_ADAPTIVE(n)                                                                     \
  Tensor adaptive_avg_pool##n##d(const Tensor& x, const Sizes& output_size) {                \
    return adaptive_avg_pool("adaptive_avg_pool" #n "d", n, x, output_size);                 \
  }                                                                                          \
  Tensor adaptive_max_pool##n##d(const Tensor& x, const Sizes& output_size) {                \
    return adaptive_max_pool("adaptive_max_pool" #n "d", n, x, output_size).first;           \
  }                                                                                          \
  std::pair<Tensor, Tensor> adaptive_max_pool##n##d_with_indices(const Tensor& x,            \
                                                                 const Sizes& output_size) { \
    return adaptive_max_pool("adaptive_max_pool" #n "d", n, x, output_size);                 \
  }
KILN_ADAPTIVE(1)
KILN_ADAPTIVE(2)
KILN_ADAPTIVE(3)
#undef KILN_ADAPTIVE

}  // namespace kiln::functional
