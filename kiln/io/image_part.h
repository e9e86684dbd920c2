// Parts of images, cut out and brought to a size while they are decoded: what a training set of
// photographs is read by.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "kiln/core/tensor_data.h"

namespace kiln::io {

struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;
};

// `rows` x `columns` pixels from (top, left) on, brought to height x width, of which a window is
// taken, which may be mirrored: what crop, resize with antialiasing, crop and flips give together.
struct ImagePart {
  int64_t top = 0, left = 0, rows = 0, columns = 0;
  int64_t height = 0, width = 0;
  int64_t window_top = 0, window_left = 0, window_rows = 0, window_columns = 0;
  bool mirrored = false;
  bool upside_down = false;

  // All of the window.
  static ImagePart resized(int64_t top, int64_t left, int64_t rows, int64_t columns, int64_t height,
                           int64_t width) {
    return {top, left, rows, columns, height, width, 0, 0, height, width};
  }
};

// What becomes of a byte where floats are asked for: (x / 255 - mean) / std, by channel.
struct PixelScale {
  std::array<float, 3> mean{0, 0, 0};
  std::array<float, 3> std{1, 1, 1};
};

// The file of an image, of which parts can be had.
class PhotoFile {
 public:
  // Throws IoError as read_image() does, but for what only its pixels tell.
  explicit PhotoFile(const std::string& path);

  ImageSize size() const { return size_; }
  // Writes the window in colours, [3, window_rows, window_columns], as bytes or as floats. Pixels
  // are those of decoding all, cutting, resizing in single precision and rounding to bytes; at two
  // values as near as can be, the rounding may be the other. Of a JPEG no more is decoded than the
  // part needs, but damage anywhere in it is an IoError all the same. Throws ValueError for a part
  // that lies outside, or whose window does. Several threads may call it.
  void read(const ImagePart& part, uint8_t* out) const { read_part(part, nullptr, out, nullptr); }
  void read(const ImagePart& part, const PixelScale& scale, float* out) const {
    read_part(part, &scale, nullptr, out);
  }

 private:
  void read_part(const ImagePart& part, const PixelScale* scale, uint8_t* bytes,
                 float* floats) const;

  std::string path_;
  std::string bytes_;   // of a JPEG
  TensorData decoded_;  // of others
  ImageSize size_;
};

}  // namespace kiln::io
