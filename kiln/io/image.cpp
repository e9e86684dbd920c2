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

[[noreturn]] void malformed(const std::string& path, const std::string& got) {
  throw_error<IoError>(kRead, ": '", path, "' is no usable PNG; got ", printable(got),
                       "; expected a complete PNG file of at most ", kMaxImagePixels, " pixels");
}

TensorData decode_png(const InputFile& input, const std::vector<unsigned char>& file) {
  const std::string& path = input.path();
  PngImage png;
  png_image& image = png.image;
  if (png_image_begin_read_from_memory(&image, file.data(), file.size()) == 0) {
    malformed(path, image.message);
  }
  const uint64_t pixels = static_cast<uint64_t>(image.width) * image.height;
  if (pixels > static_cast<uint64_t>(kMaxImagePixels) ||
      pixels > file.size() * kMostPixelsPerByte) {
    malformed(path, concat(image.width, "x", image.height, " pixels in ", file.size(), " bytes"));
  }
  input.budget().charge(pixels, "its pixels");
  // 16-bit samples are encoded like 8-bit ones, as every program writes them.
  image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  image.format = PNG_FORMAT_GRAY;
  TensorData out(Shape{image.height, image.width}, DType::u8);
  const png_color white{255, 255, 255};
  if (png_image_finish_read(&image, &white, out.mutable_data(),
                            static_cast<png_int_32>(image.width), nullptr) == 0) {
    malformed(path, image.message);
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
  if (file.size() > kMaxFileBytes) {
    throw_error<IoError>(kRead, ": '", path, "' is too large; got ", file.size(),
                         " bytes; expected at most ", kMaxFileBytes);
  }
  std::vector<unsigned char> bytes(static_cast<size_t>(file.size()));
  file.read_at(0, bytes.data(), bytes.size());
  if (bytes.size() >= 8 && png_sig_cmp(bytes.data(), 0, 8) == 0) return decode_png(file, bytes);
  if (bytes.size() != kRawSide * kRawSide) {
    throw_error<IoError>(kRead, ": '", path, "' is no image; got a file of ", file.size(),
                         " bytes that is no PNG; expected a PNG, or 784 raw bytes (28x28)");
  }
  return TensorData(std::span<const uint8_t>(bytes), Shape{kRawSide, kRawSide});
}

std::string encode_png_gray(const TensorData& image) {
  check_gray("encode_png_gray", image);
  const int64_t height = image.shape()[0];
  const int64_t width = image.shape()[1];
  if (image.numel() > kMaxImagePixels) {
    throw_error<ShapeError>("encode_png_gray: the image is too large; got shape ", image.shape(),
                            "; expected at most ", kMaxImagePixels, " pixels");
  }
  PngImage png;
  png.image.width = static_cast<png_uint_32>(width);
  png.image.height = static_cast<png_uint_32>(height);
  png.image.format = PNG_FORMAT_GRAY;
  std::string bytes(PNG_IMAGE_PNG_SIZE_MAX(png.image), '\0');
  png_alloc_size_t size = bytes.size();
  if (png_image_write_to_memory(&png.image, bytes.data(), &size, 0, image.data(),
                                static_cast<png_int_32>(width), nullptr) == 0) {
    throw_error<IoError>("encode_png_gray: libpng failed; got ", png.image.message,
                         "; expected a PNG of ", image.shape());
  }
  bytes.resize(size);
  return bytes;
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
