// Rows of pixels brought to another size, one after another. Internal to kiln/io.
#pragma once

#include <cstdint>
#include <vector>

#include "kiln/io/image_part.h"

namespace kiln::io {

// The rows [begin, end) and the columns of an image that a part's window is made of.
struct NeededPixels {
  int64_t top = 0, left = 0, rows = 0, columns = 0;
};

class ImageResampler {
 public:
  explicit ImageResampler(const ImagePart& part);

  const NeededPixels& needed() const { return needed_; }
  // The next of the needed rows, from the top: red, green, blue and a byte of anything for each
  // pixel.
  void take_row(const uint8_t* pixels);
  // When all have come. One of both is null.
  void write(const PixelScale* scale, uint8_t* bytes, float* floats) const;

 private:
  // Weights of `count` inputs from `first` on, for each output.
  struct Taps {
    std::vector<int64_t> first;
    std::vector<int64_t> begin;  // in weights
    std::vector<float> weights;
  };
  static Taps taps(int64_t from, int64_t to, int64_t begin, int64_t count, bool reversed);
  static void reach(const Taps& taps, int64_t& first, int64_t& count);
  void mix_rows(int64_t y, float* row) const;

  ImagePart part_;
  Taps across_, down_;
  NeededPixels needed_;
  std::vector<float> line_;  // a row as it came, four floats a pixel
  std::vector<float> rows_;  // those that were brought to their width
  int64_t taken_ = 0;
};

}  // namespace kiln::io
