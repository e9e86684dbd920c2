#include "cli/train/augment.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/train/rand_augment.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "kiln/vision/color.h"
#include "kiln/vision/filters.h"
#include "kiln/vision/transform.h"

namespace kiln::cli {

bool AugmentOptions::any() const {
  return flip || vertical_flip || shift > 0 || rotate > 0 || scale > 0 || brightness > 0 ||
         contrast > 0 || saturation > 0 || hue > 0 || blur > 0 || erase > 0 || crop < 1 ||
         rand_augment > 0;
}

AugmentOptions read_augment(Fields& fields, MixOptions* mix) {
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
  o.hue = part.real("hue", o.hue, 0, 0.5);
  o.blur = part.real("blur", o.blur, 0, 20);
  o.erase = part.real("erase", o.erase, 0, 1);
  o.crop = part.real("crop", o.crop, 0, 1, true);
  o.rand_augment = part.whole("rand_augment", o.rand_augment, 0, 14);
  o.magnitude = part.real("magnitude", o.magnitude, 0, 30);
  if (mix != nullptr) {
    mix->mixup = part.real("mixup", 0.0, 0, 100);
    mix->cutmix = part.real("cutmix", 0.0, 0, 100);
  }
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

// Colours 0 to 255, [3, H, W], a share of the circle further.
Tensor turned_colours(const Tensor& x, double share) {
  const Tensor hsv = vision::rgb_to_hsv((x / 255.0).clamp(0, 1));
  const Tensor hue = (hsv.narrow(0, 0, 1) + share).remainder(1.0);
  return vision::hsv_to_rgb(cat({hue, hsv.narrow(0, 1, 2)}, 0)) * 255.0;
}

// A part of the image, brought to the image's size.
void cut_out(const AugmentOptions& o, Tensor& image, Tensor* classes, data::SampleRandom& random) {
  if (o.crop >= 1) return;
  const int64_t height = image.size(1), width = image.size(2);
  const double area = random.uniform(o.crop, 1) * static_cast<double>(height * width);
  const double ratio = std::exp(random.uniform(std::log(3.0 / 4), std::log(4.0 / 3))) *
                       static_cast<double>(height) / static_cast<double>(width);
  const int64_t rows = std::clamp<int64_t>(std::llround(std::sqrt(area * ratio)), 1, height);
  const int64_t columns = std::clamp<int64_t>(std::llround(std::sqrt(area / ratio)), 1, width);
  const int64_t top = random.integer(0, height - rows + 1);
  const int64_t left = random.integer(0, width - columns + 1);
  image = vision::resize(vision::crop(image, top, left, rows, columns), height, width);
  if (classes != nullptr) {
    const Tensor part = vision::crop(classes->to(f32).unsqueeze(0), top, left, rows, columns);
    *classes = vision::resize(part, height, width, "nearest", false).squeeze(0).to(i64);
  }
}

void smear(const AugmentOptions& o, Tensor& image, data::SampleRandom& random) {
  if (o.blur == 0) return;
  const double sigma = random.uniform(0, o.blur);
  if (sigma < 0.1) return;
  const int64_t least = std::min(image.size(1), image.size(2));
  const int64_t size = std::min<int64_t>(2 * std::llround(2 * sigma) + 1, (least - 1) / 2 * 2 + 1);
  image = to_bytes(vision::gaussian_blur(image.to(f32), size, sigma));
}

void recolour(const AugmentOptions& o, Tensor& image, data::SampleRandom& random) {
  if (o.brightness == 0 && o.contrast == 0 && o.saturation == 0 && o.hue == 0) return;
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
  if (o.hue > 0 && x.size(0) == 3) x = turned_colours(x, random.uniform(-o.hue, o.hue));
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
  cut_out(o, image, classes, random);
  move(o, image, classes, random);
  if (o.rand_augment > 0) {
    kiln::cli::rand_augment(o.rand_augment, o.magnitude / 30, image, classes, random);
  }
  recolour(o, image, random);
  smear(o, image, random);
  blank(o, image, random);
}

namespace {

double uniform() { return rand({}, {f64}).item(); }

// Gamma(a) by Marsaglia and Tsang, 2000.
double gamma_number(double a) {
  if (a < 1) return gamma_number(a + 1) * std::pow(uniform(), 1 / a);
  const double d = a - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = randn({}, {f64}).item();
    const double v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(uniform()) < x * x / 2 + d - d * v + d * std::log(v)) return d * v;
  }
}

// Beta(a, a).
double beta_number(double a) {
  const double x = gamma_number(a), y = gamma_number(a);
  return x + y > 0 ? x / (x + y) : 0.5;
}

}  // namespace

MixedBatch mix_batch(const MixOptions& options, const Tensor& images) {
  MixedBatch out{images, randperm(images.size(0), {i64}).to(images.device()), 1.0};
  const Tensor other = images.index_select(0, out.order);
  const bool cuts = options.mixup == 0 || (options.cutmix > 0 && uniform() < 0.5);
  out.share = beta_number(cuts ? options.cutmix : options.mixup);
  if (!cuts) {
    out.images = images.to(f32) * out.share + other.to(f32) * (1 - out.share);
    return out;
  }
  const int64_t height = images.size(2), width = images.size(3);
  const double side = std::sqrt(1 - out.share);
  const auto rows = static_cast<int64_t>(side * static_cast<double>(height));
  const auto columns = static_cast<int64_t>(side * static_cast<double>(width));
  // Its middle lies anywhere; what hangs over the edge is left out.
  const auto middle_y = static_cast<int64_t>(uniform() * static_cast<double>(height));
  const auto middle_x = static_cast<int64_t>(uniform() * static_cast<double>(width));
  const int64_t top = std::max<int64_t>(middle_y - rows / 2, 0);
  const int64_t left = std::max<int64_t>(middle_x - columns / 2, 0);
  const int64_t bottom = std::min(middle_y - rows / 2 + rows, height);
  const int64_t right = std::min(middle_x - columns / 2 + columns, width);
  const int64_t high = std::max<int64_t>(bottom - top, 0),
                wide = std::max<int64_t>(right - left, 0);
  out.share = 1 - static_cast<double>(high * wide) / static_cast<double>(height * width);
  if (high == 0 || wide == 0) return out;
  out.images = images.clone();
  out.images.narrow(2, top, high)
      .narrow(3, left, wide)
      .copy_(other.narrow(2, top, high).narrow(3, left, wide));
  return out;
}

}  // namespace kiln::cli
