// Images: reading what a user has, writing what the demo shows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kiln/core/budget.h"
#include "kiln/core/tensor_data.h"

namespace kiln::io {

// The most pixels that read_gray_image accepts.
inline constexpr int64_t kMaxImagePixels = int64_t{64} << 20;

// Reads a PNG of any colour type and bit depth, colours turned to gray and transparent pixels laid
// on white, or a raw file of exactly 784 bytes, taken as 28x28. u8 [H, W]. Throws IoError when the
// file is missing, malformed, of another kind, or has more than kMaxImagePixels pixels, or more
// than `max_ratio` for each of its bytes beside 16 Mi (see Budget).
TensorData read_gray_image(const std::string& path, uint64_t max_ratio = Budget::kRatio);

// A PNG of any colour type and bit depth as u8 [3, H, W], or [1, H, W] when `gray`; transparent
// pixels are laid on white. What a file says of its size is compared with its bytes before any
// memory is taken for it. Throws IoError as above; decode_image names `name` in messages.
TensorData read_image(const std::string& path, bool gray = false,
                      uint64_t max_ratio = Budget::kRatio);
TensorData decode_image(std::string_view bytes, const std::string& name, bool gray = false,
                        uint64_t max_ratio = Budget::kRatio);

// The bytes of a gray PNG. `image` is u8 [H, W], neither side 0. Throws ShapeError, DTypeError.
std::string encode_png_gray(const TensorData& image);
// The same in colours, `image` is u8 [H, W, 3].
std::string encode_png_rgb(const TensorData& image);

// Writes `image` as a gray PNG, atomically. Throws ShapeError, DTypeError, and IoError when it
// cannot be written.
void write_png_gray(const std::string& path, const TensorData& image);

// `image`, u8 [H, W], at another size: each new pixel is the mean of the area it covers where the
// image shrinks, and linear between neighbours where it grows. Throws ShapeError, DTypeError, and
// ValueError for a size below 1.
TensorData resize_gray(const TensorData& image, int64_t height, int64_t width);

}  // namespace kiln::io
