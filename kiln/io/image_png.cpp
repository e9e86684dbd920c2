// PNG, by libpng.
#ifdef KILN_HAS_PNG
#include <png.h>
#endif

#include "kiln/core/error.h"
#include "kiln/io/image.h"
#include "kiln/io/image_formats.h"

namespace kiln::io {

bool is_png(std::string_view bytes) { return bytes.starts_with("\x89PNG\r\n\x1a\n"); }

#ifdef KILN_HAS_PNG

namespace {

// DEFLATE expands to at most 1032 times its size, and a byte holds at most 8 pixels.
constexpr uint64_t kMostPixelsPerByte = 1032 * 8;

// libpng's simplified interface: it reports errors by return value, so no longjmp crosses C++
// frames.
struct PngImage {
  PngImage() { image.version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(&image); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;

  png_image image{};
};

}  // namespace

TensorData decode_png(const EncodedImage& encoded) {
  PngImage png;
  png_image& image = png.image;
  const std::string_view file = encoded.bytes;
  if (png_image_begin_read_from_memory(&image, file.data(), file.size()) == 0) {
    refuse_image(encoded, "PNG", image.message);
  }
  check_pixels(encoded, "PNG", image.width, image.height);
  const uint64_t pixels = static_cast<uint64_t>(image.width) * image.height;
  if (pixels > file.size() * kMostPixelsPerByte) {
    refuse_image(encoded, "PNG",
                 concat(image.width, "x", image.height, " pixels in ", file.size(), " bytes"));
  }
  const int channels = encoded.gray ? 1 : 3;
  encoded.budget.charge(pixels * static_cast<uint64_t>(channels), "its pixels");
  // 16-bit samples are encoded like 8-bit ones, as every program writes them.
  image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  image.format = encoded.gray ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  TensorData rows(
      encoded.gray ? Shape{1, image.height, image.width} : Shape{image.height, image.width, 3},
      DType::u8);
  const png_color white{255, 255, 255};
  if (png_image_finish_read(&image, &white, rows.mutable_data(),
                            static_cast<png_int_32>(image.width) * channels, nullptr) == 0) {
    refuse_image(encoded, "PNG", image.message);
  }
  return encoded.gray ? rows : planes_of(rows, encoded.budget);
}

namespace {

std::string encode_png(const char* op, const TensorData& image, int channels) {
  const int64_t height = image.shape()[0];
  const int64_t width = image.shape()[1];
  if (height > kMaxImagePixels / width) {
    throw_error<ShapeError>(op, ": the image is too large; got shape ", image.shape(),
                            "; expected at most ", kMaxImagePixels, " pixels");
  }
  PngImage png;
  png.image.width = static_cast<png_uint_32>(width);
  png.image.height = static_cast<png_uint_32>(height);
  png.image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  std::string bytes(PNG_IMAGE_PNG_SIZE_MAX(png.image), '\0');
  png_alloc_size_t size = bytes.size();
  if (png_image_write_to_memory(&png.image, bytes.data(), &size, 0, image.data(),
                                static_cast<png_int_32>(width * channels), nullptr) == 0) {
    throw_error<IoError>(op, ": libpng failed; got ", png.image.message, "; expected a PNG of ",
                         image.shape());
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace

#else

TensorData decode_png(const EncodedImage& image) { refuse_format(image, "PNG", "KILN_PNG"); }

namespace {

std::string encode_png(const char* op, const TensorData&, int) {
  throw_error<NotImplementedError>(
      op, ": this build of Kiln has no libpng; expected one configured with -DKILN_PNG=ON");
}

}  // namespace

#endif

std::string encode_png_gray(const TensorData& image) {
  check_gray_image("encode_png_gray", image);
  return encode_png("encode_png_gray", image, 1);
}

std::string encode_png_rgb(const TensorData& image) {
  if (image.shape().size() != 3 || image.shape()[2] != 3 || image.numel() == 0) {
    throw_error<ShapeError>("encode_png_rgb: no image in colours; got shape ", image.shape(),
                            "; expected [H, W, 3], no side 0");
  }
  if (image.dtype() != DType::u8) {
    throw_error<DTypeError>("encode_png_rgb: got ", image.dtype(), "; expected u8");
  }
  return encode_png("encode_png_rgb", image, 3);
}

}  // namespace kiln::io
