#include "cli/digit_image.h"

#include <algorithm>
#include <cmath>

#include "cli/digit_net.h"
#include "kiln/core/error.h"
#include "kiln/io/image.h"

namespace kiln::cli {

namespace {

constexpr int64_t kDigitSize = 20;  // of MNIST's digits within their 28x28
constexpr int kInk = 64;            // a pixel brighter than this belongs to the digit

// Rows and columns begin to end - 1.
struct Box {
  int64_t top, bottom, left, right;
};

bool is_dark_on_light(const TensorData& image) {
  const auto pixels = image.as<uint8_t>();
  const int64_t height = image.shape()[0];
  const int64_t width = image.shape()[1];
  int64_t sum = 0;
  int64_t count = 0;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      if (y > 0 && x > 0 && y + 1 < height && x + 1 < width) continue;
      sum += pixels[static_cast<size_t>(y * width + x)];
      ++count;
    }
  }
  return sum > 127 * count;
}

TensorData inverted(const TensorData& image) {
  TensorData out(image.shape(), DType::u8);
  const auto from = image.as<uint8_t>();
  const auto to = out.as_mutable<uint8_t>();
  for (size_t i = 0; i < from.size(); ++i) to[i] = static_cast<uint8_t>(255 - from[i]);
  return out;
}

Box ink_box(const TensorData& image, const std::string& path) {
  const auto pixels = image.as<uint8_t>();
  const int64_t height = image.shape()[0];
  const int64_t width = image.shape()[1];
  Box box{height, 0, width, 0};
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      if (pixels[static_cast<size_t>(y * width + x)] <= kInk) continue;
      box = {std::min(box.top, y), std::max(box.bottom, y + 1), std::min(box.left, x),
             std::max(box.right, x + 1)};
    }
  }
  if (box.top >= box.bottom) {
    throw_error<ValueError>("'", path, "' shows nothing: all pixels are background ",
                            "(try --invert yes or --invert no)");
  }
  return box;
}

TensorData crop(const TensorData& image, const Box& box) {
  TensorData out(Shape{box.bottom - box.top, box.right - box.left}, DType::u8);
  const auto from = image.as<uint8_t>();
  const auto to = out.as_mutable<uint8_t>().begin();
  const int64_t width = box.right - box.left;
  for (int64_t y = box.top; y < box.bottom; ++y) {
    const auto row = from.begin() + y * image.shape()[1] + box.left;
    std::copy(row, row + width, to + (y - box.top) * width);
  }
  return out;
}

// The digit on 28x28, its centre of mass in the middle as far as it fits.
TensorData centred(const TensorData& digit) {
  const auto from = digit.as<uint8_t>();
  const int64_t height = digit.shape()[0];
  const int64_t width = digit.shape()[1];
  double mass = 0;
  double mass_y = 0;
  double mass_x = 0;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const double value = from[static_cast<size_t>(y * width + x)];
      mass += value;
      mass_y += value * (static_cast<double>(y) + 0.5);
      mass_x += value * (static_cast<double>(x) + 0.5);
    }
  }
  const auto place = [](double centre, int64_t size) {
    const auto at = static_cast<int64_t>(std::lround(kDigitSide / 2.0 - centre));
    return std::clamp<int64_t>(at, 0, kDigitSide - size);
  };
  const int64_t top = place(mass > 0 ? mass_y / mass : static_cast<double>(height) / 2, height);
  const int64_t left = place(mass > 0 ? mass_x / mass : static_cast<double>(width) / 2, width);
  TensorData out(Shape{kDigitSide, kDigitSide}, DType::u8);
  const auto to = out.as_mutable<uint8_t>();
  std::fill(to.begin(), to.end(), uint8_t{0});
  for (int64_t y = 0; y < height; ++y) {
    const auto row = from.begin() + y * width;
    std::copy(row, row + width, to.begin() + (top + y) * kDigitSide + left);
  }
  return out;
}

TensorData fitted(const TensorData& image, const std::string& path) {
  const TensorData digit = crop(image, ink_box(image, path));
  const auto height = static_cast<double>(digit.shape()[0]);
  const auto width = static_cast<double>(digit.shape()[1]);
  const double scale = static_cast<double>(kDigitSize) / std::max(height, width);
  const auto scaled = [scale](double size) {
    return std::max<int64_t>(std::lround(size * scale), 1);
  };
  return centred(io::resize_gray(digit, scaled(height), scaled(width)));
}

}  // namespace

DigitImage read_digit_image(const std::string& path, Invert invert) {
  DigitImage out{io::read_gray_image(path), ""};
  if (invert == Invert::yes || (invert == Invert::automatic && is_dark_on_light(out.pixels))) {
    out.pixels = inverted(out.pixels);
    out.notes = "dark on light: inverted";
  }
  const int64_t height = out.pixels.shape()[0];
  const int64_t width = out.pixels.shape()[1];
  if (height == kDigitSide && width == kDigitSide) {
    ink_box(out.pixels, path);
    return out;
  }
  out.pixels = fitted(out.pixels, path);
  out.notes += concat(out.notes.empty() ? "" : ", ", "fitted from ", width, "x", height);
  return out;
}

}  // namespace kiln::cli
