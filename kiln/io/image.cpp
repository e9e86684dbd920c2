#include "kiln/io/image.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kiln/io/atomic_file.h"
#include "kiln/io/exif.h"
#include "kiln/io/image_formats.h"
#include "kiln/io/input_file.h"

namespace kiln::io {

namespace {

constexpr const char* kRead = "read_gray_image";
constexpr uint64_t kMaxFileBytes = uint64_t{256} << 20;
constexpr int64_t kRawSide = 28;
constexpr int64_t kMaxSide = 65536;  // of a resized image

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

void refuse_image(const EncodedImage& image, const char* format, const std::string& got) {
  throw_error<IoError>(image.op, ": '", image.name, "' is no usable ", format, "; got ",
                       printable(got), "; expected a complete ", format, " file of at most ",
                       kMaxImagePixels, " pixels");
}

void refuse_format(const EncodedImage& image, const char* format, const char* option) {
  throw_error<IoError>(image.op, ": '", image.name, "' is a ", format,
                       " file, which this build of Kiln does not read; expected one configured ",
                       "with -D", option, "=ON");
}

void check_pixels(const EncodedImage& image, const char* format, uint64_t width, uint64_t height) {
  if (width < 1 || height < 1 || width > static_cast<uint64_t>(kMaxImagePixels) / height) {
    refuse_image(image, format,
                 concat(width, "x", height, " pixels in ", image.bytes.size(), " bytes"));
  }
}

TensorData planes_of(const TensorData& rows, Budget& budget) {
  budget.charge(rows.bytes(), "its channels");
  const int64_t height = rows.shape()[0], width = rows.shape()[1], plane = height * width;
  TensorData out(Shape{3, height, width}, DType::u8);
  const uint8_t* from = rows.as<uint8_t>().data();
  uint8_t* to = out.as_mutable<uint8_t>().data();
  for (int64_t i = 0; i < plane; ++i, from += 3) {
    for (int64_t c = 0; c < 3; ++c) to[c * plane + i] = from[c];
  }
  return out;
}

bool is_jpeg(std::string_view bytes) { return bytes.starts_with("\xff\xd8\xff"); }

bool is_webp(std::string_view bytes) {
  return bytes.size() >= 12 && bytes.starts_with("RIFF") && bytes.substr(8, 4) == "WEBP";
}

void check_gray_image(const char* op, const TensorData& image) {
  if (image.dtype() != DType::u8) {
    throw_error<DTypeError>(op, ": bad image; got ", image.dtype(), "; expected uint8");
  }
  if (image.shape().rank() != 2 || image.numel() == 0) {
    throw_error<ShapeError>(op, ": bad image; got shape ", image.shape(),
                            "; expected [height, width], neither of them 0");
  }
}

TensorData decode_any_image(const EncodedImage& image) {
  if (is_png(image.bytes)) return decode_png(image);
  if (is_jpeg(image.bytes)) return decode_jpeg(image);
  if (is_webp(image.bytes)) return decode_webp(image);
  throw_error<IoError>(image.op, ": '", image.name, "' is no image; got ", image.bytes.size(),
                       " bytes of another kind; expected a PNG, JPEG or WebP");
}

namespace {

TensorData decode(const EncodedImage& image, const ReadImageOptions& options) {
  TensorData out = decode_any_image(image);
  const int orientation = options.apply_exif_orientation ? exif_orientation(image.bytes) : 1;
  if (orientation == 1) return out;
  image.budget.charge(out.bytes(), "its pixels turned");
  return turn_upright(out, orientation);
}

}  // namespace

TensorData read_gray_image(const std::string& path, uint64_t max_ratio) {
  const InputFile file(kRead, path, max_ratio);
  const std::string bytes = file.read_whole(kMaxFileBytes);
  if (is_png(bytes) || is_jpeg(bytes) || is_webp(bytes)) {
    const TensorData image = decode({kRead, path, bytes, true, file.budget()}, {});
    const Shape shape{image.shape()[1], image.shape()[2]};
    return TensorData(shape, DType::u8, image.storage(), image.byte_offset());
  }
  if (bytes.size() != kRawSide * kRawSide) {
    throw_error<IoError>(kRead, ": '", path, "' is no image; got a file of ", file.size(),
                         " bytes that is no PNG; expected a PNG, JPEG or WebP, or 784 raw bytes ",
                         "(28x28)");
  }
  const auto* const pixels = reinterpret_cast<const uint8_t*>(bytes.data());
  return TensorData(std::span<const uint8_t>(pixels, bytes.size()), Shape{kRawSide, kRawSide});
}

TensorData read_image(const std::string& path, const ReadImageOptions& options) {
  const InputFile file("read_image", path, options.max_ratio);
  const std::string bytes = file.read_whole(kMaxFileBytes);
  return decode({"read_image", path, bytes, options.gray, file.budget()}, options);
}

TensorData decode_image(std::string_view bytes, const std::string& name,
                        const ReadImageOptions& options) {
  Budget budget(concat("decode_image: '", name, "'"), bytes.size(), options.max_ratio);
  return decode({"decode_image", name, bytes, options.gray, budget}, options);
}

const std::vector<std::string>& image_extensions() {
  static const std::vector<std::string> all{".jpeg", ".jpg", ".png", ".webp"};
  return all;
}

bool reads_image_format([[maybe_unused]] std::string_view format) {
#ifdef KILN_HAS_JPEG
  if (format == "jpeg") return true;
#endif
#ifdef KILN_HAS_WEBP
  if (format == "webp") return true;
#endif
#ifdef KILN_HAS_PNG
  if (format == "png") return true;
#endif
  return false;
}

void write_png_gray(const std::string& path, const TensorData& image) {
  check_gray_image("write_png_gray", image);
  write_file_atomically("write_png_gray", path, encode_png_gray(image));
}

TensorData resize_gray(const TensorData& image, int64_t height, int64_t width) {
  check_gray_image("resize_gray", image);
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
