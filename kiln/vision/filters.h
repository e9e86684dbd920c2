// Filters: each pixel from its neighbours. x is [.., H, W] of f32 or f64, where nothing else is
// said; the result has its shape. All are differentiable.
#pragma once

#include <optional>

#include "kiln/vision/border.h"

namespace kiln::vision {

// Correlation with a kernel [rows, columns] of x's dtype, whose middle (rows / 2, columns / 2) lies
// on the pixel. Throws ShapeError, DTypeError.
Tensor filter2d(const Tensor& x, const Tensor& kernel, const Border& border = {});
// The same with the kernel column [rows] times row [columns].
Tensor separable_filter2d(const Tensor& x, const Tensor& column, const Tensor& row,
                          const Border& border = {});

// The kernel [size] e^(-i^2 / (2 sigma^2)), whose sum is 1; f64. Without sigma it is 0.3 ((size -
// 1) / 2 - 1) + 0.8. Throws ValueError unless size is odd and from 1 to 4095, and sigma positive.
Tensor gaussian_kernel(int64_t size, std::optional<double> sigma = {});

// size: of the window, odd. Throw ValueError for another.
Tensor gaussian_blur(const Tensor& x, int64_t size, std::optional<double> sigma = {},
                     const Border& border = {});
Tensor box_blur(const Tensor& x, int64_t size, const Border& border = {});
// The middle value of each window; any real dtype. size at most 31.
Tensor median_blur(const Tensor& x, int64_t size, const Border& border = {.mode = "replicate"});

// Derivatives by Sobel's kernels of 3 x 3: along the columns (dx), along the rows (dy).
struct Derivatives {
  Tensor dx;
  Tensor dy;
};
Derivatives sobel(const Tensor& x, const Border& border = {});
// sqrt(dx^2 + dy^2).
Tensor sobel_magnitude(const Tensor& x, const Border& border = {});
// The sum of second derivatives, by [0 1 0; 1 -4 1; 0 1 0].
Tensor laplacian(const Tensor& x, const Border& border = {});
// x + amount (x - its blur).
Tensor unsharp_mask(const Tensor& x, int64_t size, std::optional<double> sigma = {},
                    double amount = 1.0, const Border& border = {});
// Blurs but where values differ (Tomasi and Manduchi, 1998): weights are e^(-distance^2 / (2
// sigma_space^2) - (difference of values)^2 / (2 sigma_value^2)), each channel by itself. size at
// most 31.
Tensor bilateral_filter(const Tensor& x, int64_t size, double sigma_value, double sigma_space,
                        const Border& border = {});

}  // namespace kiln::vision
