// Images: reading what a user has, writing what the demo shows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/core/budget.h"
#include "kiln/core/tensor_data.h"

namespace kiln::io {

// The most pixels that read_gray_image accepts.
inline constexpr int64_t kMaxImagePixels = int64_t{64} << 20;

struct ReadImageOptions {
  bool gray = false;
  // Turns the picture as its EXIF says; otherwise it stays as it is stored, as Pillow leaves it.
  bool apply_exif_orientation = false;
  // Bytes of memory for each byte of the file, beside 16 Mi (see Budget).
  uint64_t max_ratio = Budget::kRatio;
};

// A PNG, JPEG or WebP as u8 [3, H, W], or [1, H, W] when `gray`. The bytes say which it is, not the
// name.
//   PNG: any colour type and bit depth; 16 bits become 8. Gray is its luminance.
//   JPEG: baseline and progressive, 8 bits; gray, YCbCr, RGB, CMYK and YCCK. Gray is its luma.
//   WebP: with losses and without; no animations. Gray is the luma of its colours.
// Transparent pixels are laid on white. What a file says of its size is compared with its bytes
// before any memory is taken for it.
//
// Throws IoError when the file is missing, damaged or cut short, of another kind, of a kind that
// this build does not read, or has more than kMaxImagePixels pixels or more than options.max_ratio
// allows. Messages name `path`, or `name`.
TensorData read_image(const std::string& path, const ReadImageOptions& options = {});
TensorData decode_image(std::string_view bytes, const std::string& name,
                        const ReadImageOptions& options = {});

// A gray image as u8 [H, W]: of any kind that read_image reads, or a raw file of exactly 784 bytes,
// taken as 28x28. Throws IoError as above.
TensorData read_gray_image(const std::string& path, uint64_t max_ratio = Budget::kRatio);

// What names of images end with: ".jpeg", ".jpg", ".png", ".webp".
const std::vector<std::string>& image_extensions();
// Whether this build reads "png", "jpeg" or "webp".
bool reads_image_format(std::string_view format);

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
