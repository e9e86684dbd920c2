// Pooling over one, two and three spatial dims.
//
// Inputs are [N, C, L], [N, C, H, W] or [N, C, D, H, W], or the same without N; sizes are one
// number for all spatial dims or one for each; a stride that is left out is kernel_size. Throws
// ShapeError, DTypeError, ValueError.
#pragma once

#include <optional>
#include <utility>

#include "kiln/tensor/nn/sizes.h"
#include "kiln/tensor/tensor.h"

namespace kiln::functional {

// The largest element of each window; padding never wins, NaN does. The gradient goes to the first
// of equal elements. *_with_indices also give the positions in the flattened spatial dims (i64).
Tensor max_pool1d(const Tensor& x, const Sizes& kernel_size,
                  const std::optional<Sizes>& stride = {}, const Sizes& padding = 0,
                  const Sizes& dilation = 1, bool ceil_mode = false);
Tensor max_pool2d(const Tensor& x, const Sizes& kernel_size,
                  const std::optional<Sizes>& stride = {}, const Sizes& padding = 0,
                  const Sizes& dilation = 1, bool ceil_mode = false);
Tensor max_pool3d(const Tensor& x, const Sizes& kernel_size,
                  const std::optional<Sizes>& stride = {}, const Sizes& padding = 0,
                  const Sizes& dilation = 1, bool ceil_mode = false);
std::pair<Tensor, Tensor> max_pool1d_with_indices(const Tensor& x, const Sizes& kernel_size,
                                                  const std::optional<Sizes>& stride = {},
                                                  const Sizes& padding = 0,
                                                  const Sizes& dilation = 1,
                                                  bool ceil_mode = false);
std::pair<Tensor, Tensor> max_pool2d_with_indices(const Tensor& x, const Sizes& kernel_size,
                                                  const std::optional<Sizes>& stride = {},
                                                  const Sizes& padding = 0,
                                                  const Sizes& dilation = 1,
                                                  bool ceil_mode = false);
std::pair<Tensor, Tensor> max_pool3d_with_indices(const Tensor& x, const Sizes& kernel_size,
                                                  const std::optional<Sizes>& stride = {},
                                                  const Sizes& padding = 0,
                                                  const Sizes& dilation = 1,
                                                  bool ceil_mode = false);

// The mean of each window: its sum over its size, without the padding unless count_include_pad, or
// over divisor_override.
Tensor avg_pool1d(const Tensor& x, const Sizes& kernel_size,
                  const std::optional<Sizes>& stride = {}, const Sizes& padding = 0,
                  bool ceil_mode = false, bool count_include_pad = true);
Tensor avg_pool2d(const Tensor& x, const Sizes& kernel_size,
                  const std::optional<Sizes>& stride = {}, const Sizes& padding = 0,
                  bool ceil_mode = false, bool count_include_pad = true,
                  std::optional<int64_t> divisor_override = {});
Tensor avg_pool3d(const Tensor& x, const Sizes& kernel_size,
                  const std::optional<Sizes>& stride = {}, const Sizes& padding = 0,
                  bool ceil_mode = false, bool count_include_pad = true,
                  std::optional<int64_t> divisor_override = {});

// (sum over the window of x^norm_type)^(1 / norm_type).
Tensor lp_pool1d(const Tensor& x, double norm_type, const Sizes& kernel_size,
                 const std::optional<Sizes>& stride = {}, bool ceil_mode = false);
Tensor lp_pool2d(const Tensor& x, double norm_type, const Sizes& kernel_size,
                 const std::optional<Sizes>& stride = {}, bool ceil_mode = false);
Tensor lp_pool3d(const Tensor& x, double norm_type, const Sizes& kernel_size,
                 const std::optional<Sizes>& stride = {}, bool ceil_mode = false);

// Puts each element where max pooling with indices took it from, and 0 elsewhere. output_size: the
// spatial sizes, where they are not those that the pooling's arguments give. Throws IndexError.
Tensor max_unpool1d(const Tensor& x, const Tensor& indices, const Sizes& kernel_size,
                    const std::optional<Sizes>& stride = {}, const Sizes& padding = 0,
                    const std::optional<Shape>& output_size = {});
Tensor max_unpool2d(const Tensor& x, const Tensor& indices, const Sizes& kernel_size,
                    const std::optional<Sizes>& stride = {}, const Sizes& padding = 0,
                    const std::optional<Shape>& output_size = {});
Tensor max_unpool3d(const Tensor& x, const Tensor& indices, const Sizes& kernel_size,
                    const std::optional<Sizes>& stride = {}, const Sizes& padding = 0,
                    const std::optional<Shape>& output_size = {});

// Window i of a dim covers [floor(i in / out), ceil((i + 1) in / out)). A size of -1 keeps that of
// the input.
Tensor adaptive_avg_pool1d(const Tensor& x, const Sizes& output_size);
Tensor adaptive_avg_pool2d(const Tensor& x, const Sizes& output_size);
Tensor adaptive_avg_pool3d(const Tensor& x, const Sizes& output_size);
Tensor adaptive_max_pool1d(const Tensor& x, const Sizes& output_size);
Tensor adaptive_max_pool2d(const Tensor& x, const Sizes& output_size);
Tensor adaptive_max_pool3d(const Tensor& x, const Sizes& output_size);
std::pair<Tensor, Tensor> adaptive_max_pool1d_with_indices(const Tensor& x,
                                                           const Sizes& output_size);
std::pair<Tensor, Tensor> adaptive_max_pool2d_with_indices(const Tensor& x,
                                                           const Sizes& output_size);
std::pair<Tensor, Tensor> adaptive_max_pool3d_with_indices(const Tensor& x,
                                                           const Sizes& output_size);

}  // namespace kiln::functional
