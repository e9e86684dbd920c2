// Colour spaces. x is [.., 3, H, W] of f32 or f64; numbers of RGB are from 0 to 1. All are
// differentiable. Each throws ShapeError and DTypeError for other tensors.
#pragma once

#include "kiln/tensor/tensor.h"

namespace kiln::vision {

// 0.299 R + 0.587 G + 0.114 B -> [.., 1, H, W]; and one channel as three.
Tensor rgb_to_grayscale(const Tensor& x);
Tensor grayscale_to_rgb(const Tensor& x);
// Channels in the other order.
Tensor rgb_to_bgr(const Tensor& x);
// Hue from 0 to 1 (0 red, 1/3 green, 2/3 blue; 0 for greys), saturation, value.
Tensor rgb_to_hsv(const Tensor& x);
Tensor hsv_to_rgb(const Tensor& x);
// Luma and two differences of colour as JPEG has them (BT.601, full range), the differences around
// 0.5.
Tensor rgb_to_ycbcr(const Tensor& x);
Tensor ycbcr_to_rgb(const Tensor& x);
// sRGB with its curve, and light itself (IEC 61966-2-1).
Tensor srgb_to_linear(const Tensor& x);
Tensor linear_to_srgb(const Tensor& x);
// sRGB as CIE XYZ (white D65), and CIE L*a*b* of 1976: L from 0 to 100.
Tensor rgb_to_xyz(const Tensor& x);
Tensor xyz_to_rgb(const Tensor& x);
Tensor rgb_to_lab(const Tensor& x);
Tensor lab_to_rgb(const Tensor& x);

}  // namespace kiln::vision
