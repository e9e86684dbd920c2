// Images and volumes in other sizes, read at other places, and with channels traded for pixels.
#pragma once

#include <optional>
#include <string>

#include "kiln/core/optional_field.h"
#include "kiln/tensor/nn/sizes.h"
#include "kiln/tensor/tensor.h"

namespace kiln::functional {

struct InterpolateOptions {
  // One of the two: the spatial sizes wanted (one number for all, or one each), or by what the
  // input's are multiplied (floor): .size = 4, .size = {4, 6}, .scale_factor = 2.0.
  OptionalField<Sizes> size = {};
  ScaleFactors scale_factor = {};
  // nearest, nearest-exact, linear (3 dims), bilinear, bicubic, lanczos (4 dims), trilinear (5
  // dims), area.
  std::string mode = "nearest";
  // Whether the corners of input and output are the same points, rather than their outer edges.
  std::optional<bool> align_corners = {};
  // Whether positions follow from the sizes even when scale_factor is given.
  bool recompute_scale_factor = false;
  // Widens the filter when sizes shrink (bilinear, bicubic, lanczos), as image libraries do.
  bool antialias = false;
};
// x [N, C, L], [N, C, H, W] or [N, C, D, H, W] -> the same with other spatial sizes. u8 is legal
// (the result is rounded and limited to 0..255); other integers with nearest only. lanczos without
// antialias takes the 6 nearest pixels whatever the sizes. Throws ValueError, ShapeError,
// DTypeError, NotImplementedError for a mode that does not fit the dims.
Tensor interpolate(const Tensor& x, const InterpolateOptions& options);

// The values of x [N, C, H, W] at the points of grid [N, OH, OW, 2], (x, y) with -1 and 1 at the
// edges (with align_corners: at the centers of the pixels at the edges) -> [N, C, OH, OW]; or x
// [N, C, D, H, W] and grid [N, OD, OH, OW, 3]. mode: bilinear, nearest, bicubic (4 dims only).
// padding_mode, outside of x: zeros, border, reflection. Points that are NaN read 0 or the border.
Tensor grid_sample(const Tensor& x, const Tensor& grid, const std::string& mode = "bilinear",
                   const std::string& padding_mode = "zeros", bool align_corners = false);
// The grid that samples an image after these affine maps: theta [N, 2, 3] and size {N, C, H, W} ->
// [N, H, W, 2]; theta [N, 3, 4] and size {N, C, D, H, W} -> [N, D, H, W, 3].
Tensor affine_grid(const Tensor& theta, const Shape& size, bool align_corners = false);

// [.., C r^2, H, W] -> [.., C, H r, W r] (Shi et al., 2016), and back. Any dtype.
Tensor pixel_shuffle(const Tensor& x, int64_t upscale_factor);
Tensor pixel_unshuffle(const Tensor& x, int64_t downscale_factor);
// Channels (dim 1) c of `groups` groups in the order of their place in the group: [N, C, ..] (Zhang
// et al., 2018). Any dtype.
Tensor channel_shuffle(const Tensor& x, int64_t groups);

}  // namespace kiln::functional
