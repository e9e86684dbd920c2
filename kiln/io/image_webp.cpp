// WebP, by libwebp.
#include "kiln/io/image_formats.h"

#ifdef KILN_HAS_WEBP

#include <webp/decode.h>

#include "kiln/core/error.h"

namespace kiln::io {

namespace {

const char* reason(VP8StatusCode code) {
  switch (code) {
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
      return "a file that ends too early";
    case VP8_STATUS_OUT_OF_MEMORY:
      return "more than there is memory for";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "a feature that is not supported";
    default:
      return "a damaged file";
  }
}

// What shows of a colour that lies on white.
uint8_t on_white(unsigned colour, unsigned alpha) {
  return static_cast<uint8_t>((colour * alpha + 255 * (255 - alpha) + 127) / 255);
}

}  // namespace

TensorData decode_webp(const EncodedImage& image) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(image.bytes.data());
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) refuse_image(image, "WebP", "another libwebp");
  const VP8StatusCode header = WebPGetFeatures(bytes, image.bytes.size(), &config.input);
  if (header != VP8_STATUS_OK) refuse_image(image, "WebP", reason(header));
  if (config.input.has_animation != 0) refuse_image(image, "WebP", "an animation");
  const auto width = static_cast<int64_t>(config.input.width);
  const auto height = static_cast<int64_t>(config.input.height);
  check_pixels(image, "WebP", static_cast<uint64_t>(width), static_cast<uint64_t>(height));
  const bool clear = config.input.has_alpha != 0;
  const int64_t parts = clear ? 4 : 3, channels = image.gray ? 1 : 3;
  const auto pixels = static_cast<uint64_t>(width * height);
  // Of a file without losses the decoder holds all pixels in 4 bytes each, of another its alpha.
  const bool lossy = config.input.format == 1;
  image.budget.charge(pixels * (lossy ? (clear ? 1u : 0u) : 4u), "its decoder");
  image.budget.charge(pixels * static_cast<uint64_t>(parts + channels), "its pixels");
  TensorData rows(Shape{height, width, parts}, DType::u8);
  config.output.colorspace = clear ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = rows.as_mutable<uint8_t>().data();
  config.output.u.RGBA.stride = static_cast<int>(width * parts);
  config.output.u.RGBA.size = static_cast<size_t>(rows.bytes());
  const VP8StatusCode status = WebPDecode(bytes, image.bytes.size(), &config);
  if (status != VP8_STATUS_OK) refuse_image(image, "WebP", reason(status));

  TensorData out(Shape{channels, height, width}, DType::u8);
  const uint8_t* from = rows.as<uint8_t>().data();
  uint8_t* to = out.as_mutable<uint8_t>().data();
  const int64_t plane = width * height;
  for (int64_t i = 0; i < plane; ++i, from += parts) {
    uint8_t colour[3];
    for (int c = 0; c < 3; ++c) colour[c] = clear ? on_white(from[c], from[3]) : from[c];
    if (image.gray) {
      to[i] = luma(colour[0], colour[1], colour[2]);
    } else {
      for (int c = 0; c < 3; ++c) to[c * plane + i] = colour[c];
    }
  }
  return out;
}

}  // namespace kiln::io

#else

namespace kiln::io {

TensorData decode_webp(const EncodedImage& image) { refuse_format(image, "WebP", "KILN_WEBP"); }

}  // namespace kiln::io

#endif
