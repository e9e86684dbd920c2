// Reading images at computed points (grid_sample), forward and backward, over host memory.
#pragma once

#include <cstdint>

#include "kiln/backend/options.h"

namespace kiln::cpu {

// How points along one dim of an image are read. A point p stands at element
// ((p + shift) * scale - offset) * half.
struct GridDim {
  int64_t size = 1;
  int64_t stride = 1;  // of the image, in elements
  double shift = 0.0;
  double scale = 1.0;
  double offset = 0.0;
  double half = 1.0;
};

struct GridSpec {
  int dims = 0;  // 2 or 3
  GridDim dim[3];
  GridOutside outside = GridOutside::zeros;
  GridBetween between = GridBetween::linear;
  bool align_corners = false;
};

// Points that a kernel takes at once, at most.
inline constexpr int64_t kGridBlock = 128;

// A point is `dims` numbers, the last dim's first. Images are [channels, places], results and their
// gradients [channels, points] with rows `row` elements apart.
template <class T>
struct GridKernels {
  void (*read)(const GridSpec& spec, const T* points, int64_t n, const T* image, int64_t channels,
               int64_t places, T* out, int64_t row);
  // Adds to grad_image.
  void (*scatter)(const GridSpec& spec, const T* points, int64_t n, const T* grad, int64_t channels,
                  int64_t row, T* grad_image, int64_t places);
  // Writes grad_points.
  void (*slopes)(const GridSpec& spec, const T* points, int64_t n, const T* image, int64_t channels,
                 int64_t places, const T* grad, int64_t row, T* grad_points);
};

template <class T>
const GridKernels<T>& grid_kernels();

}  // namespace kiln::cpu
