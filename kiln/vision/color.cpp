#include "kiln/vision/color.h"

#include <array>
#include <cmath>

#include "kiln/core/error.h"
#include "kiln/tensor/ops.h"
#include "kiln/vision/border.h"

namespace kiln::vision {

namespace {

struct Channels {
  Tensor r, g, b;
};

Channels channels_of(const char* op, const Tensor& x, int64_t count = 3) {
  detail::require_float_image(op, x);
  if (x.dim() < 3 || x.size(-3) != count) {
    throw_error<ShapeError>(op, ": expected [.., ", count, ", H, W]; got ", x.shape());
  }
  if (count == 1) return {x, x, x};
  return {x.narrow(-3, 0, 1), x.narrow(-3, 1, 1), x.narrow(-3, 2, 1)};
}

Tensor joined(const Tensor& a, const Tensor& b, const Tensor& c) { return cat({a, b, c}, -3); }

using Matrix = std::array<std::array<double, 3>, 3>;

Tensor times(const Matrix& m, const Channels& x) {
  const auto row = [&](size_t i) { return x.r * m[i][0] + x.g * m[i][1] + x.b * m[i][2]; };
  return joined(row(0), row(1), row(2));
}

constexpr double kRed = 0.299, kGreen = 0.587, kBlue = 0.114;

// sRGB's primaries under D65 (IEC 61966-2-1).
constexpr Matrix kToXyz{{{0.4124564, 0.3575761, 0.1804375},
                         {0.2126729, 0.7151522, 0.0721750},
                         {0.0193339, 0.1191920, 0.9503041}}};
constexpr std::array<double, 3> kWhite{0.95047, 1.0, 1.08883};
// Where L*a*b*'s cube root gives way to a line.
constexpr double kBend = 6.0 / 29.0;

constexpr Matrix inverse(const Matrix& m) {
  const double a = m[1][1] * m[2][2] - m[1][2] * m[2][1];
  const double b = m[1][2] * m[2][0] - m[1][0] * m[2][2];
  const double c = m[1][0] * m[2][1] - m[1][1] * m[2][0];
  const double d = m[0][0] * a + m[0][1] * b + m[0][2] * c;
  return {{{a / d, (m[0][2] * m[2][1] - m[0][1] * m[2][2]) / d,
            (m[0][1] * m[1][2] - m[0][2] * m[1][1]) / d},
           {b / d, (m[0][0] * m[2][2] - m[0][2] * m[2][0]) / d,
            (m[0][2] * m[1][0] - m[0][0] * m[1][2]) / d},
           {c / d, (m[0][1] * m[2][0] - m[0][0] * m[2][1]) / d,
            (m[0][0] * m[1][1] - m[0][1] * m[1][0]) / d}}};
}
constexpr Matrix kFromXyz = inverse(kToXyz);

// The parts of where() must have finite slopes on both sides: what a power never sees is clamped.
Tensor lab_curve(const Tensor& t) {
  const double bend = kBend * kBend * kBend;
  return where(t > bend, t.clamp(bend).pow(1.0 / 3.0), t / (3 * kBend * kBend) + 4.0 / 29.0);
}
Tensor lab_curve_back(const Tensor& f) {
  return where(f > kBend, f * f * f, (f - 4.0 / 29.0) * (3 * kBend * kBend));
}

}  // namespace

Tensor rgb_to_grayscale(const Tensor& x) {
  const Channels c = channels_of("rgb_to_grayscale", x);
  return c.r * kRed + c.g * kGreen + c.b * kBlue;
}

Tensor grayscale_to_rgb(const Tensor& x) {
  const Channels c = channels_of("grayscale_to_rgb", x, 1);
  return joined(c.r, c.g, c.b);
}

Tensor rgb_to_bgr(const Tensor& x) {
  const Channels c = channels_of("rgb_to_bgr", x);
  return joined(c.b, c.g, c.r);
}

Tensor rgb_to_hsv(const Tensor& x) {
  const auto [r, g, b] = channels_of("rgb_to_hsv", x);
  const Tensor most = r.maximum(g).maximum(b), least = r.minimum(g).minimum(b);
  const Tensor spread = most - least;
  const Tensor none = spread.eq(0);
  const Tensor safe = spread.masked_fill(none, 1);
  // Sixths of the circle, from the channel that is largest.
  const Tensor sixths = where(most.eq(r), (g - b) / safe,
                              where(most.eq(g), (b - r) / safe + 2.0, (r - g) / safe + 4.0));
  const Tensor hue = (sixths / 6.0).remainder(1.0).masked_fill(none, 0);
  const Tensor black = most.eq(0);
  const Tensor saturation = (spread / most.masked_fill(black, 1)).masked_fill(black, 0);
  return joined(hue, saturation, most);
}

Tensor hsv_to_rgb(const Tensor& x) {
  const Channels c = channels_of("hsv_to_rgb", x);
  const Tensor hue = c.r.remainder(1.0) * 6.0, saturation = c.g, value = c.b;
  // Each channel is a trapezoid over the circle (Smith, 1978).
  const auto channel = [&](double shift) {
    const Tensor k = (hue + shift).remainder(6.0);
    return value - value * saturation * k.minimum(-k + 4.0).clamp(0, 1);
  };
  return joined(channel(5), channel(3), channel(1));
}

Tensor rgb_to_ycbcr(const Tensor& x) {
  const Channels c = channels_of("rgb_to_ycbcr", x);
  const Tensor y = rgb_to_grayscale(x);
  return joined(y, (c.b - y) / (2 * (1 - kBlue)) + 0.5, (c.r - y) / (2 * (1 - kRed)) + 0.5);
}

Tensor ycbcr_to_rgb(const Tensor& x) {
  const Channels c = channels_of("ycbcr_to_rgb", x);
  const Tensor red = c.r + (c.b - 0.5) * (2 * (1 - kRed));
  const Tensor blue = c.r + (c.g - 0.5) * (2 * (1 - kBlue));
  return joined(red, (c.r - red * kRed - blue * kBlue) / kGreen, blue);
}

Tensor srgb_to_linear(const Tensor& x) {
  channels_of("srgb_to_linear", x);
  return where(x > 0.04045, ((x.clamp(0.04045) + 0.055) / 1.055).pow(2.4), x / 12.92);
}

Tensor linear_to_srgb(const Tensor& x) {
  channels_of("linear_to_srgb", x);
  return where(x > 0.0031308, x.clamp(0.0031308).pow(1 / 2.4) * 1.055 - 0.055, x * 12.92);
}

Tensor rgb_to_xyz(const Tensor& x) {
  return times(kToXyz, channels_of("rgb_to_xyz", srgb_to_linear(x)));
}

Tensor xyz_to_rgb(const Tensor& x) {
  return linear_to_srgb(times(kFromXyz, channels_of("xyz_to_rgb", x)));
}

Tensor rgb_to_lab(const Tensor& x) {
  const Channels c = channels_of("rgb_to_lab", rgb_to_xyz(x));
  const Tensor fx = lab_curve(c.r / kWhite[0]), fy = lab_curve(c.g / kWhite[1]),
               fz = lab_curve(c.b / kWhite[2]);
  return joined(fy * 116.0 - 16.0, (fx - fy) * 500.0, (fy - fz) * 200.0);
}

Tensor lab_to_rgb(const Tensor& x) {
  const Channels c = channels_of("lab_to_rgb", x);
  const Tensor fy = (c.r + 16.0) / 116.0;
  return xyz_to_rgb(joined(lab_curve_back(fy + c.g / 500.0) * kWhite[0],
                           lab_curve_back(fy) * kWhite[1],
                           lab_curve_back(fy - c.b / 200.0) * kWhite[2]));
}

}  // namespace kiln::vision
