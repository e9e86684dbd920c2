#include "cli/train/augment.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kiln/tensor/ops.h"
#include "kiln/vision/transform.h"

namespace kiln::cli {

bool AugmentOptions::any() const {
  return flip || vertical_flip || shift > 0 || rotate > 0 || scale > 0 || brightness > 0 ||
         contrast > 0 || saturation > 0 || erase > 0;
}

AugmentOptions read_augment(Fields& fields) {
  Fields part = fields.object("transforms");
  AugmentOptions o;
  o.flip = part.flag("flip", o.flip);
  o.vertical_flip = part.flag("vertical_flip", o.vertical_flip);
  o.shift = part.whole("shift", o.shift, 0, 4096);
  o.rotate = part.real("rotate", o.rotate, 0, 180);
  o.scale = part.real("scale", o.scale, 0, 0.9);
  o.brightness = part.real("brightness", o.brightness, 0, 1);
  o.contrast = part.real("contrast", o.contrast, 0, 1);
  o.saturation = part.real("saturation", o.saturation, 0, 1);
  o.erase = part.real("erase", o.erase, 0, 1);
  fields.add("transforms", part.finish());
  return o;
}

namespace {

Tensor to_bytes(const Tensor& x) { return x.round().clamp(0, 255).to(u8); }

void move(const AugmentOptions& o, Tensor& image, Tensor* classes, data::SampleRandom& random) {
  const bool turns = o.rotate > 0 || o.scale > 0;
  const double degrees = o.rotate > 0 ? random.uniform(-o.rotate, o.rotate) : 0;
  const double zoom = o.scale > 0 ? random.uniform(1 - o.scale, 1 + o.scale) : 1;
  const auto pixels = static_cast<double>(o.shift);
  const double dx = o.shift > 0 ? std::round(random.uniform(-pixels, pixels)) : 0;
  const double dy = o.shift > 0 ? std::round(random.uniform(-pixels, pixels)) : 0;
  if (!turns && dx == 0 && dy == 0) return;
  const std::array<double, 2> middle{static_cast<double>(image.size(2) - 1) / 2,
                                     static_cast<double>(image.size(1) - 1) / 2};
  const auto map = vision::Transform2D::rotation(degrees, middle)
                       .then(vision::Transform2D::scaling(zoom, zoom, middle))
                       .then(vision::Transform2D::translation(dx, dy));
  image = to_bytes(vision::warp(image.to(f32), map));
  if (classes != nullptr) {
    *classes =
        vision::warp(classes->to(f32).unsqueeze(0), map, {.mode = "nearest"}).squeeze(0).to(i64);
  }
}

void recolour(const AugmentOptions& o, Tensor& image, data::SampleRandom& random) {
  if (o.brightness == 0 && o.contrast == 0 && o.saturation == 0) return;
  Tensor x = image.to(f32);
  const auto around_one = [&](double spread) { return random.uniform(1 - spread, 1 + spread); };
  if (o.brightness > 0) x = x * around_one(o.brightness);
  if (o.contrast > 0) {
    const double mean = x.mean().item();
    x = (x - mean) * around_one(o.contrast) + mean;
  }
  if (o.saturation > 0 && x.size(0) == 3) {
    const Tensor gray = x.mean(0, true);
    x = (x - gray) * around_one(o.saturation) + gray;
  }
  image = to_bytes(x);
}

void blank(const AugmentOptions& o, Tensor& image, data::SampleRandom& random) {
  if (o.erase == 0 || !random.chance(o.erase)) return;
  const int64_t height = image.size(1), width = image.size(2);
  const double area = random.uniform(0.02, 0.2) * static_cast<double>(height * width);
  const double ratio = std::exp(random.uniform(std::log(0.3), std::log(3.3)));
  const int64_t rows = std::clamp<int64_t>(std::llround(std::sqrt(area * ratio)), 1, height);
  const int64_t columns = std::clamp<int64_t>(std::llround(std::sqrt(area / ratio)), 1, width);
  const int64_t top = random.integer(0, height - rows + 1);
  const int64_t left = random.integer(0, width - columns + 1);
  image.narrow(1, top, rows).narrow(2, left, columns).zero_();
}

}  // namespace

void augment(const AugmentOptions& o, Tensor& image, Tensor* classes, data::SampleRandom& random) {
  if (o.flip && random.chance(0.5)) {
    image = vision::hflip(image).contiguous();
    if (classes != nullptr) *classes = vision::hflip(*classes).contiguous();
  }
  if (o.vertical_flip && random.chance(0.5)) {
    image = vision::vflip(image).contiguous();
    if (classes != nullptr) *classes = vision::vflip(*classes).contiguous();
  }
  move(o, image, classes, random);
  recolour(o, image, random);
  blank(o, image, random);
}

}  // namespace kiln::cli
