// The formats of images, a source file each: what io/image.h chooses among.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kiln/core/budget.h"
#include "kiln/core/tensor_data.h"

namespace kiln::io {

struct ImageSize;
class ImageResampler;

// An image's bytes, and what is asked of them. `op` and `name` stand in messages.
struct EncodedImage {
  const char* op;
  const std::string& name;
  std::string_view bytes;
  bool gray;
  Budget& budget;
};

// Throws IoError: `name` is no usable `format` ("PNG"); got `got`.
[[noreturn]] void refuse_image(const EncodedImage& image, const char* format,
                               const std::string& got);
// Throws IoError: this build has no reader of `format`, which CMake's `option` gives.
[[noreturn]] void refuse_format(const EncodedImage& image, const char* format, const char* option);
// Refuses what is larger than any image may be.
void check_pixels(const EncodedImage& image, const char* format, uint64_t width, uint64_t height);

// Throws ShapeError, DTypeError unless it is u8 [H, W], neither of them 0.
void check_gray_image(const char* op, const TensorData& image);

// u8 [H, W, 3] as [3, H, W].
TensorData planes_of(const TensorData& rows, Budget& budget);
// The luma of 8-bit colours by ITU-R 601, as JPEG has it.
inline uint8_t luma(unsigned red, unsigned green, unsigned blue) {
  return static_cast<uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
}

bool is_png(std::string_view bytes);
bool is_jpeg(std::string_view bytes);
bool is_webp(std::string_view bytes);
// u8 [3, H, W], or [1, H, W] where gray is asked for. Throw IoError.
TensorData decode_png(const EncodedImage& image);
TensorData decode_jpeg(const EncodedImage& image);
TensorData decode_webp(const EncodedImage& image);
// Of any of these kinds.
TensorData decode_any_image(const EncodedImage& image);

// What a JPEG's header says of its size, checked against its bytes.
ImageSize jpeg_size(const EncodedImage& image);
// Gives a resampler the pixels that it needs.
void decode_jpeg_part(const EncodedImage& image, ImageResampler& out);

}  // namespace kiln::io
