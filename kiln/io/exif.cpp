#include "kiln/io/exif.h"

#include <cstdint>

namespace kiln::io {

namespace {

// Numbers in a part of a file, in either order of bytes; what lies outside reads as 0.
class Numbers {
 public:
  Numbers(std::string_view bytes, bool big) : bytes_(bytes), big_(big) {}

  uint64_t at(uint64_t offset, unsigned count) const {
    if (offset > bytes_.size() || bytes_.size() - offset < count) return 0;
    uint64_t out = 0;
    for (unsigned i = 0; i < count; ++i) {
      const unsigned place = big_ ? i : count - 1 - i;
      out = out << 8 | static_cast<uint8_t>(bytes_[offset + place]);
    }
    return out;
  }

 private:
  std::string_view bytes_;
  bool big_;
};

// A TIFF file's first directory, entry 0x0112.
int orientation_in(std::string_view tiff) {
  constexpr uint64_t kOrientation = 0x0112, kShort = 3, kEntry = 12;
  if (tiff.starts_with(std::string_view("Exif\0\0", 6))) tiff.remove_prefix(6);
  const bool big = tiff.starts_with("MM");
  if (!big && !tiff.starts_with("II")) return 1;
  const Numbers numbers(tiff, big);
  const uint64_t directory = numbers.at(4, 4);
  const uint64_t entries = numbers.at(directory, 2);
  for (uint64_t i = 0; i < entries; ++i) {
    const uint64_t entry = directory + 2 + i * kEntry;
    if (numbers.at(entry, 2) != kOrientation) continue;
    const uint64_t value = numbers.at(entry + 8, 2);
    return numbers.at(entry + 2, 2) == kShort && value >= 1 && value <= 8 ? static_cast<int>(value)
                                                                          : 1;
  }
  return 1;
}

// The content of a JPEG's segment that holds EXIF.
std::string_view exif_of_jpeg(std::string_view bytes) {
  const Numbers numbers(bytes, true);
  for (uint64_t at = 2; numbers.at(at, 1) == 0xff;) {
    const uint64_t marker = numbers.at(at + 1, 1);
    if (marker == 0xff) {  // filling
      ++at;
      continue;
    }
    const uint64_t length = numbers.at(at + 2, 2);
    if (marker == 0xda || marker == 0xd9 || length < 2) break;  // the pixels begin
    if (marker == 0xe1 && bytes.substr(at + 4).starts_with(std::string_view("Exif\0\0", 6))) {
      return bytes.substr(at + 4, length - 2);
    }
    at += 2 + length;
  }
  return {};
}

// The chunk of this name. A WebP's begin with the name, a PNG's with the length.
std::string_view chunk_of(std::string_view bytes, uint64_t first, bool is_png,
                          std::string_view wanted) {
  const Numbers numbers(bytes, is_png);
  uint64_t at = first;
  while (at < bytes.size() && bytes.size() - at >= 8) {
    const uint64_t length = numbers.at(is_png ? at : at + 4, 4);
    if (bytes.substr(is_png ? at + 4 : at, 4) == wanted) return bytes.substr(at + 8, length);
    at += 8 + length + (is_png ? 4 : length % 2);
  }
  return {};
}

}  // namespace

int exif_orientation(std::string_view bytes) {
  if (bytes.starts_with("\xff\xd8")) return orientation_in(exif_of_jpeg(bytes));
  if (bytes.starts_with("\x89PNG")) return orientation_in(chunk_of(bytes, 8, true, "eXIf"));
  if (bytes.starts_with("RIFF")) return orientation_in(chunk_of(bytes, 12, false, "EXIF"));
  return 1;
}

TensorData turn_upright(const TensorData& image, int orientation) {
  if (orientation <= 1 || orientation > 8) return image;
  const int64_t channels = image.shape()[0], height = image.shape()[1], width = image.shape()[2];
  const bool swaps = orientation >= 5;
  // Which stored side an upright picture begins with; with `swaps` its rows are stored columns.
  const bool from_bottom =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool from_right =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  TensorData out(swaps ? Shape{channels, width, height} : Shape{channels, height, width},
                 DType::u8);
  const uint8_t* plane = image.as<uint8_t>().data();
  uint8_t* to = out.as_mutable<uint8_t>().data();
  const int64_t rows = out.shape()[1], columns = out.shape()[2];
  for (int64_t c = 0; c < channels; ++c, plane += height * width) {
    for (int64_t y = 0; y < rows; ++y) {
      for (int64_t x = 0; x < columns; ++x) {
        int64_t row = swaps ? x : y, column = swaps ? y : x;
        if (from_bottom) row = height - 1 - row;
        if (from_right) column = width - 1 - column;
        *to++ = plane[row * width + column];
      }
    }
  }
  return out;
}

}  // namespace kiln::io
