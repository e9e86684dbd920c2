#include "cli/train/drawn_shapes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "kiln/data/sample_random.h"

namespace kiln::cli {

namespace {

using data::SampleRandom;
using Colour = std::array<double, 3>;

// How far outside the shape of radius 1 a point lies; negative inside.
double outside(int shape, double x, double y) {
  switch (shape) {
    case 0:
      return std::hypot(x, y) - 0.85;
    case 1:
      return std::max(std::abs(x), std::abs(y)) - 0.75;
    case 2:
      return std::max(y - 0.6, 0.87 * std::abs(x) - 0.5 * y - 0.42);
    case 3:
      return std::min(std::max(std::abs(x) - 0.28, std::abs(y) - 0.95),
                      std::max(std::abs(x) - 0.95, std::abs(y) - 0.28));
    default: {
      const double angle = std::atan2(y, x), radius = std::hypot(x, y);
      return radius - 0.68 - 0.3 * std::cos(5 * angle);
    }
  }
}

Colour colour(SampleRandom& random, double low, double high) {
  return {random.uniform(low, high), random.uniform(low, high), random.uniform(low, high)};
}
Colour dark(SampleRandom& random) { return colour(random, 10, 80); }
Colour bright(SampleRandom& random) { return colour(random, 130, 245); }

class Canvas {
 public:
  Canvas(int64_t side, SampleRandom& random)
      : side_(side),
        random_(random),
        ground_(dark(random)),
        scene_{TensorData(Shape{side, side, 3}, DType::u8),
               TensorData(Shape{side, side}, DType::u8)},
        values_(static_cast<size_t>(side * side), ground_) {
    const auto classes = scene_.classes.as_mutable<uint8_t>();
    std::fill(classes.begin(), classes.end(), uint8_t{0});
  }

  void put(int shape, bool outline, double x, double y, double radius) {
    const double turn = random_.uniform(-0.4, 0.4), c = std::cos(turn), s = std::sin(turn);
    const Colour ink = bright(random_);
    const auto classes = scene_.classes.as_mutable<uint8_t>();
    for (int64_t row = 0; row < side_; ++row) {
      for (int64_t column = 0; column < side_; ++column) {
        const double dx = (static_cast<double>(column) - x) / radius;
        const double dy = (static_cast<double>(row) - y) / radius;
        double d = outside(shape, c * dx + s * dy, c * dy - s * dx);
        if (outline) d = std::abs(d + 0.12) - 0.12;
        const double cover = std::clamp(0.5 - d * radius, 0.0, 1.0);
        const auto at = static_cast<size_t>(row * side_ + column);
        for (size_t k = 0; k < 3; ++k) values_[at][k] += cover * (ink[k] - values_[at][k]);
        if (cover >= 0.5) classes[at] = static_cast<uint8_t>(shape + 1);
      }
    }
  }

  DrawnScene finish() {
    const auto pixels = scene_.image.as_mutable<uint8_t>();
    for (size_t i = 0; i < values_.size(); ++i) {
      for (size_t k = 0; k < 3; ++k) {
        const double value = values_[i][k] + random_.normal(0, 12);
        pixels[3 * i + k] = static_cast<uint8_t>(std::clamp(value, 0.0, 255.0));
      }
    }
    return std::move(scene_);
  }

 private:
  int64_t side_;
  SampleRandom& random_;
  Colour ground_;
  DrawnScene scene_;
  std::vector<Colour> values_;
};

}  // namespace

DrawnScene draw_shape(int shape, bool outline, int64_t side, int64_t number) {
  SampleRandom random(7, shape + (outline ? 100 : 0), number);
  Canvas canvas(side, random);
  const auto width = static_cast<double>(side);
  const double radius = random.uniform(0.28, 0.42) * width;
  canvas.put(shape, outline, width / 2 + random.uniform(-0.08, 0.08) * width,
             width / 2 + random.uniform(-0.08, 0.08) * width, radius);
  return canvas.finish();
}

DrawnScene draw_scene(int shapes, int64_t side, int64_t number) {
  SampleRandom random(8, 0, number);
  Canvas canvas(side, random);
  const auto width = static_cast<double>(side);
  const int64_t count = random.integer(1, 4);
  for (int64_t i = 0; i < count; ++i) {
    const double radius = random.uniform(0.12, 0.24) * width;
    canvas.put(static_cast<int>(random.integer(0, shapes)), false,
               random.uniform(radius, width - radius), random.uniform(radius, width - radius),
               radius);
  }
  return canvas.finish();
}

}  // namespace kiln::cli
