#include "kiln/data/digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "kiln/core/error.h"
#include "kiln/core/parallel.h"
#include "kiln/core/random.h"
#include "kiln/data/digit_strokes.h"

namespace kiln::data {

namespace {

using detail::Point;
using detail::Stroke;
using detail::Style;

constexpr int kSide = 28;
constexpr int kPixels = kSide * kSide;
constexpr int64_t kImagesPerPiece = 64;
constexpr float kPi = 3.14159265f;
// Counters above every sample's: the streams from which labels are drawn.
constexpr uint64_t kLabelStream = uint64_t{1} << 63;

// Random numbers of one sample, a function of the seed and the sample's position alone.
class DigitRandom {
 public:
  DigitRandom(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}

  uint32_t bits() {
    if (used_ == 4) {
      words_ = philox(seed_, block_++, stream_);
      used_ = 0;
    }
    return words_[static_cast<size_t>(used_++)];
  }
  float uniform(float low, float high) { return low + (high - low) * uniform_f32(bits()); }
  // Sum of four uniforms: near enough to a normal, and without its far tails, which would bend a
  // digit past reading.
  float normal(float deviation) {
    const float sum =
        uniform_f32(bits()) + uniform_f32(bits()) + uniform_f32(bits()) + uniform_f32(bits());
    return (sum - 2.0f) * 1.7320508f * deviation;
  }
  // 0 to n - 1.
  uint32_t below(uint32_t n) {
    return static_cast<uint32_t>((static_cast<uint64_t>(bits()) * n) >> 32);
  }

 private:
  uint64_t seed_;
  uint64_t stream_;
  uint64_t block_ = 0;
  std::array<uint32_t, 4> words_{};
  int used_ = 4;
};

// The digits of ten consecutive samples: a permutation, so that the set is balanced.
int label_of(uint64_t seed, int64_t sample) {
  DigitRandom random(seed, kLabelStream + static_cast<uint64_t>(sample / 10));
  std::array<int, 10> digits{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  for (uint32_t i = 9; i > 0; --i) std::swap(digits[i], digits[random.below(i + 1)]);
  return digits[static_cast<size_t>(sample % 10)];
}

const Style& pick_style(DigitRandom& random, std::span<const Style> styles) {
  float total = 0;
  for (const Style& s : styles) total += s.weight;
  float at = random.uniform(0, total);
  for (const Style& s : styles) {
    at -= s.weight;
    if (at < 0) return s;
  }
  return styles.front();
}

// From the unit box of the strokes to pixels: a smooth random displacement (the elastic distortion,
// applied to the pen's path, where it costs little and leaves the pen round), then an affine map.
class Warp {
 public:
  explicit Warp(DigitRandom& random) {
    const float amplitude = random.uniform(0.008f, 0.038f);
    for (Wave& w : waves_) {
      const float direction = random.uniform(0, 2 * kPi);
      const float frequency = random.uniform(3.0f, 9.0f);
      w = {frequency * std::cos(direction), frequency * std::sin(direction),
           random.uniform(0, 2 * kPi), random.normal(amplitude), random.normal(amplitude)};
    }
    const float angle = random.normal(0.13f);
    const float shear = 0.12f + random.normal(0.18f);
    height_ = random.uniform(15.5f, 21.0f);
    const float width = height_ * random.uniform(0.68f, 1.02f);
    const float c = std::cos(angle);
    const float s = std::sin(angle);
    // rotation * shear * scale; y points down, so a positive shear leans to the right like most
    // hands do
    xx_ = c * width;
    xy_ = (-c * shear - s) * height_;
    yx_ = s * width;
    yy_ = (-s * shear + c) * height_;
    x0_ = kSide * 0.5f + random.normal(1.0f);
    y0_ = kSide * 0.5f + random.normal(1.0f);
  }

  // Of the digit, in pixels.
  float height() const { return height_; }

  Point operator()(Point p) const {
    float x = p.x - 0.5f;
    float y = p.y - 0.5f;
    float dx = 0;
    float dy = 0;
    for (const Wave& w : waves_) {
      const float s = std::sin(w.kx * x + w.ky * y + w.phase);
      dx += w.ax * s;
      dy += w.ay * s;
    }
    x += dx;
    y += dy;
    return {x0_ + xx_ * x + xy_ * y, y0_ + yx_ * x + yy_ * y};
  }

 private:
  struct Wave {
    float kx, ky, phase, ax, ay;
  };
  std::array<Wave, 3> waves_;
  float height_, xx_, xy_, yx_, yy_, x0_, y0_;
};

bool same(Point a, Point b) { return a.x == b.x && a.y == b.y; }

// The Catmull-Rom curve between p1 and p2.
Point curve_point(Point p0, Point p1, Point p2, Point p3, float t) {
  const auto one = [t](float a, float b, float c, float d) {
    return 0.5f *
           (2 * b + t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * b - 3 * c + d - a))));
  };
  return {one(p0.x, p1.x, p2.x, p3.x), one(p0.y, p1.y, p2.y, p3.y)};
}

// Draws strokes on a float image, 0 to 1.
class Canvas {
 public:
  const std::array<float, kPixels>& pixels() const { return pixels_; }

  // A pen of radius ra going to rb draws from a to b. The edge is antialiased over one pixel.
  void line(Point a, Point b, float ra, float rb) {
    const float reach = std::max(ra, rb) + 0.5f;
    const int left = clamp(std::floor(std::min(a.x, b.x) - reach));
    const int right = clamp(std::ceil(std::max(a.x, b.x) + reach));
    const int top = clamp(std::floor(std::min(a.y, b.y) - reach));
    const int bottom = clamp(std::ceil(std::max(a.y, b.y) + reach));
    const float dx = b.x - a.x;
    const float dy = b.y - a.y;
    const float scale = 1.0f / std::max(dx * dx + dy * dy, 1e-12f);
    for (int y = top; y < bottom; ++y) {
      float* row = &pixels_[static_cast<size_t>(y * kSide)];
      const float py = static_cast<float>(y) + 0.5f - a.y;
      for (int x = left; x < right; ++x) {
        const float px = static_cast<float>(x) + 0.5f - a.x;
        const float t = std::clamp((px * dx + py * dy) * scale, 0.0f, 1.0f);
        const float ex = px - t * dx;
        const float ey = py - t * dy;
        const float distance = std::sqrt(ex * ex + ey * ey);
        const float ink = std::clamp(ra + t * (rb - ra) - distance + 0.5f, 0.0f, 1.0f);
        row[x] = std::max(row[x], ink);
      }
    }
  }

  // Spreads `share` of each pixel to either side, along rows and then along columns.
  void blur(float share) {
    const float keep = 1 - 2 * share;
    for (const int step : {1, kSide}) {
      std::array<float, kPixels> from = pixels_;
      for (int i = step; i < kPixels - step; ++i) {
        const auto at = static_cast<size_t>(i);
        const auto s = static_cast<size_t>(step);
        pixels_[at] = keep * from[at] + share * (from[at - s] + from[at + s]);
      }
    }
  }

 private:
  static int clamp(float v) { return static_cast<int>(std::clamp(v, 0.0f, float{kSide})); }

  std::array<float, kPixels> pixels_{};
};

void draw_stroke(Canvas& canvas, DigitRandom& random, const Warp& warp, Stroke stroke,
                 float radius) {
  constexpr size_t kMostPoints = 16;
  constexpr float kJitter = 0.016f;  // the unsteady hand
  std::array<Point, kMostPoints> points;
  const size_t n = std::min(stroke.size(), kMostPoints);
  for (size_t i = 0; i < n; ++i) {
    if (i > 0 && same(stroke[i], stroke[i - 1])) {
      points[i] = points[i - 1];  // a corner stays one
    } else {
      points[i] = {stroke[i].x + random.normal(kJitter), stroke[i].y + random.normal(kJitter)};
    }
  }
  // Pressure changes along the stroke.
  const float swing = random.uniform(0.0f, 0.25f) * radius;
  const float phase = random.uniform(0, 2 * kPi);
  const auto radius_at = [&](float position) {
    return radius + swing * std::sin(phase + 0.9f * position);
  };

  constexpr int kPieces = 4;  // of the curve between two points: about a pixel each
  Point from = warp(points[0]);
  float from_radius = radius_at(0);
  for (size_t i = 0; i + 1 < n; ++i) {
    if (same(points[i], points[i + 1])) continue;
    const Point p0 = points[i > 0 ? i - 1 : 0];
    const Point p3 = points[i + 2 < n ? i + 2 : n - 1];
    for (int piece = 1; piece <= kPieces; ++piece) {
      const float t = static_cast<float>(piece) / kPieces;
      const Point to = warp(curve_point(p0, points[i], points[i + 1], p3, t));
      const float to_radius = radius_at(static_cast<float>(i) + t);
      canvas.line(from, to, from_radius, to_radius);
      from = to;
      from_radius = to_radius;
    }
  }
}

void draw_digit(int digit, DigitRandom random, uint8_t* out) {
  const Style& style = pick_style(random, detail::digit_styles(digit));
  const Warp warp(random);
  const float radius = warp.height() * random.uniform(0.038f, 0.085f);
  Canvas canvas;
  for (const Stroke& stroke : style.strokes) draw_stroke(canvas, random, warp, stroke, radius);
  canvas.blur(random.uniform(0.0f, 0.2f));

  const float ink = random.uniform(200.0f, 275.0f);  // above 255: a saturated scan
  const float grain = random.uniform(0.0f, 1.0f);
  const float noise = 40.0f * grain * grain / 65536.0f;  // most images are rather clean
  for (size_t i = 0; i < kPixels; i += 2) {
    const uint32_t bits = random.bits();
    const auto a = static_cast<float>(bits & 0xffffu) - 32768.0f;
    const auto b = static_cast<float>(bits >> 16) - 32768.0f;
    const float v0 = canvas.pixels()[i] * ink + noise * (a + b);
    const float v1 = canvas.pixels()[i + 1] * ink + noise * (a - b);
    out[i] = static_cast<uint8_t>(std::clamp(v0 + 0.5f, 0.0f, 255.0f));
    out[i + 1] = static_cast<uint8_t>(std::clamp(v1 + 0.5f, 0.0f, 255.0f));
  }
}

}  // namespace

ImageSet make_digits(int64_t count, uint64_t seed) {
  if (count < 0) {
    throw_error<ValueError>("make_digits: bad count; got ", count, "; expected 0 or more");
  }
  ImageSet set;
  set.images = TensorData(Shape{count, kSide, kSide}, DType::u8);
  set.labels = TensorData(Shape{count}, DType::i64);
  uint8_t* images = set.images.as_mutable<uint8_t>().data();
  int64_t* labels = set.labels.as_mutable<int64_t>().data();
  parallel_for(count, kImagesPerPiece, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int digit = label_of(seed, i);
      labels[i] = digit;
      draw_digit(digit, DigitRandom(seed, static_cast<uint64_t>(i)), images + i * kPixels);
    }
  });
  return set;
}

}  // namespace kiln::data
