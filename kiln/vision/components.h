// Connected components: which pixels that are not 0 hang together.
#pragma once

#include "kiln/tensor/tensor.h"

namespace kiln::vision {

// x [.., H, W] of any real dtype or bool -> labels i64 of its shape: 0 where x is 0, else the
// number of the component, from 1, in the order of each one's first pixel, row by row. Pixels hang
// together over edges (connectivity 4), or over corners, too (8). Each image by itself. Throws
// ShapeError, ValueError for another connectivity.
Tensor connected_components(const Tensor& x, int64_t connectivity = 8);

// What is known of each component; entry 0 is the background. Where images of a batch have fewer
// components than the most, entries are 0.
struct ComponentStats {
  Tensor labels;  // as above
  Tensor count;   // [..] i64, components of each image
  Tensor area;    // [.., most + 1] i64, pixels
  Tensor left;    // [.., most + 1] i64, the first column, and so on; both ends are within
  Tensor top;
  Tensor right;
  Tensor bottom;
  Tensor centroid;  // [.., most + 1, 2] f64, mean column and row
};
ComponentStats connected_components_with_stats(const Tensor& x, int64_t connectivity = 8);

}  // namespace kiln::vision
