#include "cli/train/rand_augment.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "kiln/vision/filters.h"
#include "kiln/vision/transform.h"

namespace kiln::cli {

namespace {

using Table = std::array<uint8_t, 256>;  // what becomes of each byte
using Histogram = std::array<int64_t, 256>;

Tensor bytes_of(const Tensor& x) { return x.round().clamp(0, 255).to(u8); }

// Each channel through the table that `make` gives for its histogram.
template <class F>
Tensor through_tables(const Tensor& image, F make) {
  Tensor out = image.clone();
  const int64_t channels = out.size(0), plane = out.numel() / std::max<int64_t>(channels, 1);
  for (int64_t c = 0; c < channels; ++c) {
    uint8_t* const pixels = out.data_ptr<uint8_t>() + c * plane;
    Histogram counts{};
    for (int64_t i = 0; i < plane; ++i) ++counts[pixels[i]];
    const Table table = make(counts);
    for (int64_t i = 0; i < plane; ++i) pixels[i] = table[pixels[i]];
  }
  return out;
}

template <class F>
Table table_of(F f) {
  Table table{};
  for (size_t v = 0; v < table.size(); ++v) table[v] = static_cast<uint8_t>(f(static_cast<int>(v)));
  return table;
}

// The darkest value becomes 0 and the brightest 255.
Table stretched(const Histogram& counts) {
  int low = 255, high = 0;
  for (int v = 0; v < 256; ++v) {
    if (counts[static_cast<size_t>(v)] == 0) continue;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  if (low >= high) return table_of([](int v) { return v; });
  const float scale = 255.0F / static_cast<float>(high - low);
  return table_of([&](int v) {
    return static_cast<int>(std::clamp(static_cast<float>(v - low) * scale, 0.0F, 255.0F));
  });
}

// Each value as frequent as the others, as near as that can be.
Table equalized(const Histogram& counts) {
  int64_t sum = 0, last = 0;
  for (const int64_t n : counts) {
    sum += n;
    if (n != 0) last = n;
  }
  const int64_t step = (sum - last) / 255;
  if (step == 0) return table_of([](int v) { return v; });
  Table table{};
  int64_t below = step / 2;
  for (size_t v = 0; v < table.size(); ++v) {
    table[v] = static_cast<uint8_t>(std::min<int64_t>(below / step, 255));
    below += counts[v];
  }
  return table;
}

Tensor blended(const Tensor& x, const Tensor& other, double factor) {
  return (x * factor + other * (1 - factor)).clamp(0, 255).to(u8);
}

Tensor gray(const Tensor& x) {
  if (x.size(0) != 3) return x;
  return 0.2989 * x.narrow(0, 0, 1) + 0.587 * x.narrow(0, 1, 1) + 0.114 * x.narrow(0, 2, 1);
}

// The inner pixels as the mean of what is around them, the middle five times.
Tensor smoothed(const Tensor& x) {
  const int64_t rows = x.size(1), columns = x.size(2);
  if (rows <= 2 || columns <= 2) return x;
  Tensor kernel = ones({3, 3});
  kernel.select(0, 1).select(0, 1).fill_(5.0);
  Tensor out = x.clone();
  const Tensor inner =
      vision::filter2d(x, kernel / 13.0).narrow(1, 1, rows - 2).narrow(2, 1, columns - 2).round();
  out.narrow(1, 1, rows - 2).narrow(2, 1, columns - 2).copy_(inner);
  return out;
}

void move_pixels(const vision::Transform2D& map, Tensor& image, Tensor* classes) {
  const vision::WarpOptions nearest{.mode = "nearest"};
  image = bytes_of(vision::warp(image.to(f32), map, nearest));
  if (classes == nullptr) return;
  *classes = vision::warp(classes->to(f32).unsqueeze(0), map, nearest).squeeze(0).to(i64);
}

}  // namespace

void change(RandomChange which, double strength, bool negative, Tensor& image, Tensor* classes) {
  using vision::Transform2D;
  const double sign = negative ? -1.0 : 1.0, factor = 1 + sign * 0.9 * strength;
  const auto rows = static_cast<double>(image.size(1)),
             columns = static_cast<double>(image.size(2));
  const double lean = std::atan(sign * 0.3 * strength) * 180 / std::numbers::pi;
  const Tensor x = image.to(f32);
  switch (which) {
    case RandomChange::identity:
      return;
    case RandomChange::shear_x:
      return move_pixels(Transform2D::shearing(-lean, 0), image, classes);
    case RandomChange::shear_y:
      return move_pixels(Transform2D::shearing(0, -lean), image, classes);
    case RandomChange::translate_x:
      return move_pixels(
          Transform2D::translation(std::trunc(sign * 150 / 331 * columns * strength), 0), image,
          classes);
    case RandomChange::translate_y:
      return move_pixels(
          Transform2D::translation(0, std::trunc(sign * 150 / 331 * rows * strength)), image,
          classes);
    case RandomChange::rotate:
      return move_pixels(
          Transform2D::rotation(sign * 30 * strength, {(columns - 1) / 2, (rows - 1) / 2}), image,
          classes);
    case RandomChange::brightness:
      image = (x * factor).clamp(0, 255).to(u8);
      return;
    case RandomChange::color:
      image = blended(x, gray(x).to(u8).to(f32), factor);
      return;
    case RandomChange::contrast:
      image = blended(x, gray(x).to(u8).to(f32).mean(), factor);
      return;
    case RandomChange::sharpness:
      image = blended(x, smoothed(x), factor);
      return;
    case RandomChange::posterize: {
      const int step = 1 << std::lround(4 * strength);
      image = through_tables(image, [step](const Histogram&) {
        return table_of([step](int v) { return v / step * step; });
      });
      return;
    }
    case RandomChange::solarize: {
      const double bound = 255 * (1 - strength);
      image = through_tables(image, [bound](const Histogram&) {
        return table_of([bound](int v) { return v >= bound ? 255 - v : v; });
      });
      return;
    }
    case RandomChange::auto_contrast:
      image = through_tables(image, stretched);
      return;
    case RandomChange::equalize:
      image = through_tables(image, equalized);
      return;
  }
}

void rand_augment(int64_t count, double strength, Tensor& image, Tensor* classes,
                  data::SampleRandom& random) {
  for (int64_t i = 0; i < count; ++i) {
    const auto which = static_cast<RandomChange>(random.integer(0, kRandomChanges));
    change(which, strength, random.chance(0.5), image, classes);
  }
}

}  // namespace kiln::cli
