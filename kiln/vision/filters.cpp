#include "kiln/vision/filters.h"

#include <cmath>
#include <vector>

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/nn/convolution.h"
#include "kiln/tensor/ops.h"

namespace kiln::vision {

namespace {

// Windows of more pixels hold too many copies of the image.
constexpr int64_t kWidestWindow = 31;

void check_size(const char* op, int64_t size, int64_t most = 4095) {
  if (size < 1 || size % 2 == 0 || size > most) {
    throw_error<ValueError>(op, ": size must be odd and from 1 to ", most, "; got ", size);
  }
}

Tensor numbers(const Tensor& like, const std::vector<double>& values, const Shape& shape) {
  return from_vector(values, shape, {like.dtype(), like.device()});
}

// The image shifted by each place of a window, in order of the places; f(image, row, column).
template <class F>
void for_each_shift(const Tensor& x, int64_t size, const Border& border, F&& f) {
  const int64_t half = size / 2, row = x.dim() - 2;
  const Tensor wide = pad_border(x, half, half, half, half, border);
  for (int64_t r = 0; r < size; ++r) {
    for (int64_t c = 0; c < size; ++c) {
      f(wide.narrow(row, r, x.size(row)).narrow(row + 1, c, x.size(row + 1)), r - half, c - half);
    }
  }
}

}  // namespace

Tensor filter2d(const Tensor& x, const Tensor& kernel, const Border& border) {
  constexpr const char* op = "filter2d";
  detail::require_float_image(op, x);
  if (kernel.dim() != 2 || kernel.numel() == 0) {
    throw_error<ShapeError>(op, ": the kernel is [rows, columns] and not empty; got ",
                            kernel.shape());
  }
  if (kernel.dtype() != x.dtype()) {
    throw_error<DTypeError>(op, ": image and kernel have one dtype; got ", x.dtype(), " and ",
                            kernel.dtype());
  }
  const int64_t rows = kernel.size(0), columns = kernel.size(1);
  const Tensor wide =
      pad_border(x, rows / 2, rows - 1 - rows / 2, columns / 2, columns - 1 - columns / 2, border);
  const Tensor planes = wide.reshape({-1, 1, wide.size(-2), wide.size(-1)});
  return functional::conv2d(planes, kernel.reshape({1, 1, rows, columns})).reshape(x.shape());
}

Tensor separable_filter2d(const Tensor& x, const Tensor& column, const Tensor& row,
                          const Border& border) {
  if (column.dim() != 1 || row.dim() != 1) {
    throw_error<ShapeError>("separable_filter2d: column and row have one dim; got ", column.shape(),
                            " and ", row.shape());
  }
  return filter2d(filter2d(x, column.unsqueeze(1), border), row.unsqueeze(0), border);
}

Tensor gaussian_kernel(int64_t size, std::optional<double> sigma) {
  constexpr const char* op = "gaussian_kernel";
  check_size(op, size);
  const double deviation = sigma.value_or(0.3 * (static_cast<double>(size - 1) * 0.5 - 1.0) + 0.8);
  if (!(deviation > 0) || !std::isfinite(deviation)) {
    throw_error<ValueError>(op, ": sigma must be positive; got ", deviation);
  }
  std::vector<double> out(static_cast<size_t>(size));
  double sum = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const double off = (static_cast<double>(i) - static_cast<double>(size / 2)) / deviation;
    sum += out[i] = std::exp(-0.5 * off * off);
  }
  for (double& x : out) x /= sum;
  return tensor(out, {.dtype = f64});
}

Tensor gaussian_blur(const Tensor& x, int64_t size, std::optional<double> sigma,
                     const Border& border) {
  detail::require_float_image("gaussian_blur", x);
  const Tensor kernel = gaussian_kernel(size, sigma).to(x.device(), x.dtype());
  return separable_filter2d(x, kernel, kernel, border);
}

Tensor box_blur(const Tensor& x, int64_t size, const Border& border) {
  detail::require_float_image("box_blur", x);
  check_size("box_blur", size);
  const Tensor kernel = full({size}, 1.0 / static_cast<double>(size), {x.dtype(), x.device()});
  return separable_filter2d(x, kernel, kernel, border);
}

Tensor median_blur(const Tensor& x, int64_t size, const Border& border) {
  detail::require_image("median_blur", x);
  check_size("median_blur", size, kWidestWindow);
  if (x.dtype() == bool_ || x.is_complex()) {
    throw_error<DTypeError>("median_blur: expected real numbers; got ", x.dtype());
  }
  std::vector<Tensor> shifts;
  for_each_shift(x, size, border,
                 [&](const Tensor& part, int64_t, int64_t) { shifts.push_back(part); });
  return stack(shifts).median(0).first;
}

Derivatives sobel(const Tensor& x, const Border& border) {
  detail::require_float_image("sobel", x);
  const Tensor smooth = numbers(x, {1, 2, 1}, {3}), slope = numbers(x, {-1, 0, 1}, {3});
  return {separable_filter2d(x, smooth, slope, border),
          separable_filter2d(x, slope, smooth, border)};
}

Tensor sobel_magnitude(const Tensor& x, const Border& border) {
  const auto [dx, dy] = sobel(x, border);
  return (dx * dx + dy * dy).sqrt();
}

Tensor laplacian(const Tensor& x, const Border& border) {
  detail::require_float_image("laplacian", x);
  return filter2d(x, numbers(x, {0, 1, 0, 1, -4, 1, 0, 1, 0}, {3, 3}), border);
}

Tensor unsharp_mask(const Tensor& x, int64_t size, std::optional<double> sigma, double amount,
                    const Border& border) {
  return x + (x - gaussian_blur(x, size, sigma, border)) * amount;
}

Tensor bilateral_filter(const Tensor& x, int64_t size, double sigma_value, double sigma_space,
                        const Border& border) {
  constexpr const char* op = "bilateral_filter";
  detail::require_float_image(op, x);
  check_size(op, size, kWidestWindow);
  for (const double sigma : {sigma_value, sigma_space}) {
    if (!(sigma > 0) || !std::isfinite(sigma)) {
      throw_error<ValueError>(op, ": sigmas must be positive; got ", sigma);
    }
  }
  Tensor sum, weights;
  for_each_shift(x, size, border, [&](const Tensor& part, int64_t r, int64_t c) {
    const double distance = static_cast<double>(r * r + c * c) / (sigma_space * sigma_space);
    const Tensor off = (part - x) / sigma_value;
    const Tensor weight = ((off * off + distance) * -0.5).exp();
    sum = sum.defined() ? sum + weight * part : weight * part;
    weights = weights.defined() ? weights + weight : weight;
  });
  return sum / weights;
}

}  // namespace kiln::vision
