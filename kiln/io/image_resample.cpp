#include "kiln/io/image_resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace kiln::io {

namespace {

// A pixel: three channels and one of no meaning, which makes it one vector register.
using Pixel = float __attribute__((vector_size(16)));

Pixel load(const float* from) {
  Pixel out;
  std::memcpy(&out, from, sizeof out);
  return out;
}
void store(float* to, Pixel value) { std::memcpy(to, &value, sizeof value); }

// To the nearest integer, of two the even one: adding this leaves no bits behind the point.
constexpr float kRounds = 12582912.0F;
constexpr float kBlack = 0.0F, kWhite = 255.0F;

Pixel rounded(Pixel x) {
  x = (x + kRounds) - kRounds;
  const Pixel black = {kBlack, kBlack, kBlack, kBlack}, white = {kWhite, kWhite, kWhite, kWhite};
  x = x < black ? black : x;
  return x > white ? white : x;
}

}  // namespace

// The triangle of width 2, or of twice the step where the image shrinks: each output is the mean of
// what it covers. Outputs come in reversed order where the picture is mirrored.
ImageResampler::Taps ImageResampler::taps(int64_t from, int64_t to, int64_t begin, int64_t count,
                                          bool reversed) {
  Taps out;
  const double step = static_cast<double>(from) / static_cast<double>(to);
  const double stretch = std::max(1.0, step);
  std::vector<double> w;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t o = begin + (reversed ? count - 1 - i : i);
    const double center = step * (static_cast<double>(o) + 0.5);
    const auto first = std::max<int64_t>(0, static_cast<int64_t>(center - stretch + 0.5));
    const auto end = std::min<int64_t>(from, static_cast<int64_t>(center + stretch + 0.5));
    double sum = 0;
    w.clear();
    for (int64_t k = first; k < end; ++k) {
      const double distance = std::abs(static_cast<double>(k) - center + 0.5) / stretch;
      w.push_back(std::max(0.0, 1.0 - distance));
      sum += w.back();
    }
    out.first.push_back(first);
    out.begin.push_back(static_cast<int64_t>(out.weights.size()));
    for (const double weight : w) {
      out.weights.push_back(static_cast<float>(sum == 0 ? 0.0 : weight / sum));
    }
  }
  out.begin.push_back(static_cast<int64_t>(out.weights.size()));
  return out;
}

// Where the inputs of all taps lie.
void ImageResampler::reach(const Taps& taps, int64_t& first, int64_t& count) {
  int64_t begin = taps.first.front(), end = begin;
  for (size_t i = 0; i < taps.first.size(); ++i) {
    begin = std::min(begin, taps.first[i]);
    end = std::max(end, taps.first[i] + taps.begin[i + 1] - taps.begin[i]);
  }
  first = begin;
  count = end - begin;
}

ImageResampler::ImageResampler(const ImagePart& part)
    : part_(part),
      across_(taps(part.columns, part.width, part.window_left, part.window_columns, part.mirrored)),
      down_(taps(part.rows, part.height, part.window_top, part.window_rows, part.upside_down)) {
  reach(down_, needed_.top, needed_.rows);
  reach(across_, needed_.left, needed_.columns);
  for (int64_t& first : down_.first) first -= needed_.top;
  for (int64_t& first : across_.first) first -= needed_.left;
  needed_.top += part.top;
  needed_.left += part.left;
  line_.resize(static_cast<size_t>(needed_.columns * 4));
  rows_.resize(static_cast<size_t>(needed_.rows * part.window_columns * 4));
}

void ImageResampler::take_row(const uint8_t* pixels) {
  float* const line = line_.data();
  for (size_t i = 0; i < line_.size(); ++i) line[i] = pixels[i];
  float* out = rows_.data() + taken_++ * part_.window_columns * 4;
  for (int64_t x = 0; x < part_.window_columns; ++x, out += 4) {
    const auto i = static_cast<size_t>(x);
    const float* from = line + across_.first[i] * 4;
    Pixel sum = {0, 0, 0, 0};
    for (int64_t k = across_.begin[i]; k < across_.begin[i + 1]; ++k, from += 4) {
      sum += across_.weights[static_cast<size_t>(k)] * load(from);
    }
    store(out, sum);
  }
}

// Row y of the window, four floats a pixel.
void ImageResampler::mix_rows(int64_t y, float* row) const {
  const int64_t width = part_.window_columns * 4;
  const auto i = static_cast<size_t>(y);
  const float* from = rows_.data() + down_.first[i] * width;
  std::fill(row, row + width, 0.0F);
  for (int64_t k = down_.begin[i]; k < down_.begin[i + 1]; ++k, from += width) {
    const float weight = down_.weights[static_cast<size_t>(k)];
    for (int64_t x = 0; x < width; x += 4) store(row + x, load(row + x) + weight * load(from + x));
  }
}

void ImageResampler::write(const PixelScale* scale, uint8_t* bytes, float* floats) const {
  const int64_t columns = part_.window_columns, plane = part_.window_rows * columns;
  std::vector<float> row(static_cast<size_t>(columns * 4));
  Pixel mean = {0, 0, 0, 0}, deviation = {1, 1, 1, 1};
  for (int c = 0; scale != nullptr && c < 3; ++c) {
    mean[c] = scale->mean[static_cast<size_t>(c)];
    deviation[c] = scale->std[static_cast<size_t>(c)];
  }
  for (int64_t y = 0; y < part_.window_rows; ++y) {
    mix_rows(y, row.data());
    for (int64_t x = 0; x < columns; ++x) {
      const Pixel byte = rounded(load(row.data() + x * 4));
      const int64_t at = y * columns + x;
      if (bytes != nullptr) {
        for (int c = 0; c < 3; ++c) bytes[c * plane + at] = static_cast<uint8_t>(byte[c]);
      } else {
        const Pixel value = (byte / 255.0F - mean) / deviation;
        for (int c = 0; c < 3; ++c) floats[c * plane + at] = value[c];
      }
    }
  }
}

}  // namespace kiln::io
