#include "cli/digits_sample.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "cli/digit_net.h"
#include "kiln/core/error.h"
#include "kiln/data/digits.h"
#include "kiln/io/image.h"

namespace kiln::cli {

namespace {

constexpr int64_t kGap = 2;  // black pixels between the images of a sheet

// Copies sample `index` to row and column of the sheet.
void place(const data::ImageSet& set, int64_t index, int64_t row, int64_t column,
           TensorData& sheet) {
  const auto from = set.images.as<uint8_t>();
  const auto to = sheet.as_mutable<uint8_t>();
  const int64_t width = sheet.shape()[1];
  for (int64_t y = 0; y < kDigitSide; ++y) {
    const auto line = from.begin() + (index * kDigitSide + y) * kDigitSide;
    const int64_t at = (row * (kDigitSide + kGap) + y) * width + column * (kDigitSide + kGap);
    std::copy(line, line + kDigitSide, to.begin() + at);
  }
}

// One digit, or a sheet of grid x grid: of one class, or with a row for each in turn.
TensorData draw(const DigitsSampleFlags& flags) {
  const int64_t n = flags.grid;
  const int64_t side = n * kDigitSide + (n - 1) * kGap;
  TensorData sheet(Shape{side, side}, DType::u8);
  const auto pixels = sheet.as_mutable<uint8_t>();
  std::fill(pixels.begin(), pixels.end(), uint8_t{0});
  // Every ten samples hold each digit once: no place on the sheet needs more than ten more.
  const data::ImageSet set = data::make_digits(n * n * 10, flags.seed);
  const auto labels = set.labels.as<int64_t>();
  int64_t sample = 0;
  for (int64_t row = 0; row < n; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      const int64_t wanted =
          flags.digit.value_or(n == 1 ? static_cast<int>(labels[0]) : static_cast<int>(row % 10));
      while (labels[static_cast<size_t>(sample)] != wanted) ++sample;
      place(set, sample++, row, column, sheet);
    }
  }
  return sheet;
}

// Each pixel as a square of `scale` pixels.
TensorData enlarged(const TensorData& image, int64_t scale) {
  const int64_t width = image.shape()[1];
  TensorData out(Shape{image.shape()[0] * scale, width * scale}, DType::u8);
  const auto from = image.as<uint8_t>();
  auto to = out.as_mutable<uint8_t>().begin();
  for (int64_t y = 0; y < image.shape()[0] * scale; ++y) {
    for (int64_t x = 0; x < width * scale; ++x) {
      *to++ = from[static_cast<size_t>(y / scale * width + x / scale)];
    }
  }
  return out;
}

}  // namespace

int digits_sample(const DigitsSampleFlags& flags) {
  io::write_png_gray(flags.out, enlarged(draw(flags), flags.scale));
  std::printf("wrote %s\n", flags.out.c_str());
  return 0;
}

}  // namespace kiln::cli
