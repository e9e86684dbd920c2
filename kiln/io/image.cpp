#include "kiln/io/image.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include <png.h>

#include "kiln/io/atomic_file.h"
#include "kiln/io/input_file.h"

namespace kiln::io {

namespace {

constexpr const char* kRead = "read_gray_image";
constexpr uint64_t kMaxFileBytes = uint64_t{256} << 20;
constexpr int64_t kRawSide = 28;
constexpr int64_t kMaxSide = 65536;  // of a resized image
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

[[noreturn]] void malformed(const char* op, const std::string& path, const std::string& got) {
  throw_error<IoError>(op, ": '", path, "' is no usable PNG; got ", printable(got),
                       "; expected a complete PNG file of at most ", kMaxImagePixels, " pixels");
}

// u8 [H, W] or [H, W, 3].
TensorData decode_png(const char* op, const std::string& path, std::string_view file, bool gray,
                      Budget& budget) {
  PngImage png;
  png_image& image = png.image;
  if (png_image_begin_read_from_memory(&image, file.data(), file.size()) == 0) {
    malformed(op, path, image.message);
  }
  const uint64_t pixels = static_cast<uint64_t>(image.width) * image.height;
  if (pixels > static_cast<uint64_t>(kMaxImagePixels) ||
      pixels > file.size() * kMostPixelsPerByte) {
    malformed(op, path,
              concat(image.width, "x", image.height, " pixels in ", file.size(), " bytes"));
  }
  const int channels = gray ? 1 : 3;
  budget.charge(pixels * static_cast<uint64_t>(channels), "its pixels");
  // 16-bit samples are encoded like 8-bit ones, as every program writes them.
  image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  image.format = gray ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  Shape shape{image.height, image.width};
  if (!gray) shape.push_back(3);
  TensorData out(shape, DType::u8);
  const png_color white{255, 255, 255};
  if (png_image_finish_read(&image, &white, out.mutable_data(),
                            static_cast<png_int_32>(image.width) * channels, nullptr) == 0) {
    malformed(op, path, image.message);
  }
  return out;
}

bool is_png(std::string_view bytes) {
  return bytes.size() >= 8 &&
         png_sig_cmp(reinterpret_cast<png_const_bytep>(bytes.data()), 0, 8) == 0;
}

TensorData decode(const char* op, const std::string& name, std::string_view bytes, bool gray,
                  Budget& budget) {
  if (!is_png(bytes)) {
    throw_error<IoError>(op, ": '", name, "' is no PNG; got ", bytes.size(),
                         " bytes of another kind; expected a PNG");
  }
  const TensorData rows = decode_png(op, name, bytes, gray, budget);
  const int64_t height = rows.shape()[0], width = rows.shape()[1], channels = gray ? 1 : 3;
  const Shape shape{channels, height, width};
  if (gray) return TensorData(shape, DType::u8, rows.storage(), rows.byte_offset());
  budget.charge(rows.bytes(), "its channels");
  TensorData out(shape, DType::u8);
  const uint8_t* from = rows.as<uint8_t>().data();
  uint8_t* to = out.as_mutable<uint8_t>().data();
  const int64_t plane = height * width;
  for (int64_t i = 0; i < plane; ++i, from += 3) {
    for (int64_t c = 0; c < 3; ++c) to[c * plane + i] = from[c];
  }
  return out;
}

void check_gray(const char* op, const TensorData& image) {
  if (image.dtype() != DType::u8) {
    throw_error<DTypeError>(op, ": bad image; got ", image.dtype(), "; expected uint8");
  }
  if (image.shape().rank() != 2 || image.numel() == 0) {
    throw_error<ShapeError>(op, ": bad image; got shape ", image.shape(),
                            "; expected [height, width], neither of them 0");
  }
}

// One output pixel along one axis: a weighted sum of `weights.size()` inputs from `first` on.
struct Tap {
  int64_t first = 0;
  std::vector<float> weights;
};

std::vector<Tap> taps(int64_t from, int64_t to) {
  std::vector<Tap> all(static_cast<size_t>(to));
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  for (int64_t i = 0; i < to; ++i) {
    Tap& tap = all[static_cast<size_t>(i)];
    if (scale > 1) {  // the share of each input pixel in [begin, end)
      const double begin = static_cast<double>(i) * scale;
      const double end = std::min(begin + scale, static_cast<double>(from));
      tap.first = static_cast<int64_t>(begin);
      for (int64_t k = tap.first; k < from && static_cast<double>(k) < end; ++k) {
        const double share = std::min<double>(end, static_cast<double>(k + 1)) -
                             std::max<double>(begin, static_cast<double>(k));
        tap.weights.push_back(static_cast<float>(share / scale));
      }
    } else {  // the two input pixels whose centres are nearest
      const double centre = std::clamp((static_cast<double>(i) + 0.5) * scale - 0.5, 0.0,
                                       static_cast<double>(from - 1));
      tap.first = static_cast<int64_t>(centre);
      const auto second = static_cast<float>(centre - static_cast<double>(tap.first));
      tap.weights.push_back(1 - second);
      if (second > 0) tap.weights.push_back(second);
    }
  }
  return all;
}

// Applies the taps along the middle axis of [outer, from, inner].
std::vector<float> resample(const std::vector<float>& in, size_t outer, size_t from, size_t inner,
                            size_t to) {
  const std::vector<Tap> all = taps(static_cast<int64_t>(from), static_cast<int64_t>(to));
  std::vector<float> out(outer * to * inner, 0.0f);
  float* row = out.data();
  for (size_t o = 0; o < outer; ++o) {
    for (const Tap& tap : all) {
      const float* source = in.data() + (o * from + static_cast<size_t>(tap.first)) * inner;
      for (float weight : tap.weights) {
        for (size_t i = 0; i < inner; ++i) row[i] += weight * source[i];
        source += inner;
      }
      row += inner;
    }
  }
  return out;
}

}  // namespace

TensorData read_gray_image(const std::string& path, uint64_t max_ratio) {
  const InputFile file(kRead, path, max_ratio);
  const std::string bytes = file.read_whole(kMaxFileBytes);
  if (is_png(bytes)) return decode_png(kRead, path, bytes, true, file.budget());
  if (bytes.size() != kRawSide * kRawSide) {
    throw_error<IoError>(kRead, ": '", path, "' is no image; got a file of ", file.size(),
                         " bytes that is no PNG; expected a PNG, or 784 raw bytes (28x28)");
  }
  const auto* const pixels = reinterpret_cast<const uint8_t*>(bytes.data());
  return TensorData(std::span<const uint8_t>(pixels, bytes.size()), Shape{kRawSide, kRawSide});
}

TensorData read_image(const std::string& path, bool gray, uint64_t max_ratio) {
  const InputFile file("read_image", path, max_ratio);
  return decode("read_image", path, file.read_whole(kMaxFileBytes), gray, file.budget());
}

TensorData decode_image(std::string_view bytes, const std::string& name, bool gray,
                        uint64_t max_ratio) {
  Budget budget(concat("decode_image: '", name, "'"), bytes.size(), max_ratio);
  return decode("decode_image", name, bytes, gray, budget);
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

std::string encode_png_gray(const TensorData& image) {
  check_gray("encode_png_gray", image);
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

void write_png_gray(const std::string& path, const TensorData& image) {
  check_gray("write_png_gray", image);
  write_file_atomically("write_png_gray", path, encode_png_gray(image));
}

TensorData resize_gray(const TensorData& image, int64_t height, int64_t width) {
  check_gray("resize_gray", image);
  if (height < 1 || width < 1 || height > kMaxSide || width > kMaxSide ||
      height * width > kMaxImagePixels) {
    throw_error<ValueError>("resize_gray: bad size; got ", height, "x", width,
                            "; expected sides of 1 to ", kMaxSide, " and at most ", kMaxImagePixels,
                            " pixels");
  }
  const auto h0 = static_cast<size_t>(image.shape()[0]);
  const auto w0 = static_cast<size_t>(image.shape()[1]);
  const auto h1 = static_cast<size_t>(height);
  const auto w1 = static_cast<size_t>(width);
  const auto from = image.as<uint8_t>();
  std::vector<float> pixels(from.begin(), from.end());
  // The axis that leaves less to do for the other goes first.
  if (h0 * w1 <= h1 * w0) {
    pixels = resample(resample(pixels, h0, w0, 1, w1), 1, h0, w1, h1);
  } else {
    pixels = resample(resample(pixels, 1, h0, w0, h1), h1, w0, 1, w1);
  }
  TensorData out(Shape{height, width}, DType::u8);
  std::transform(pixels.begin(), pixels.end(), out.as_mutable<uint8_t>().begin(),
                 [](float v) { return static_cast<uint8_t>(std::clamp(v + 0.5f, 0.0f, 255.0f)); });
  return out;
}

}  // namespace kiln::io
