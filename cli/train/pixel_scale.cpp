#include "cli/train/pixel_scale.h"

#include <algorithm>
#include <cmath>

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::cli {

namespace {

Tensor by_channel(const std::vector<double>& values, Device device) {
  return tensor(values, {.dtype = f32, .device = device})
      .reshape({1, static_cast<int64_t>(values.size()), 1, 1});
}

Json list_of(const std::vector<double>& values) {
  Json out = Json::Array();
  for (const double value : values) out.add(Json(value));
  return out;
}

}  // namespace

Tensor PixelScale::operator()(const Tensor& x) const {
  const Tensor share = x.to(f32) / 255.0;
  if (mean.empty()) return share;
  return (share - by_channel(mean, x.device())) / by_channel(std, x.device());
}

Json PixelScale::facts() const {
  Json out = Json::Object();
  if (mean.empty()) return out;
  out.add("mean", list_of(mean));
  out.add("std", list_of(std));
  return out;
}

PixelScale PixelScale::from_facts(const Json& facts, int64_t channels) {
  PixelScale out;
  if (facts.find("mean") == nullptr && facts.find("std") == nullptr) return out;
  for (const char* name : {"mean", "std"}) {
    const Json* found = facts.find(name);
    const auto* list = found == nullptr ? nullptr : found->as<Json::Array>();
    std::vector<double>& to = *name == 'm' ? out.mean : out.std;
    for (const Json& item : list == nullptr ? Json::Array() : *list) {
      const double* real = item.as<double>();
      const int64_t* whole = item.as<int64_t>();
      if (real != nullptr) to.push_back(*real);
      if (whole != nullptr) to.push_back(static_cast<double>(*whole));
    }
    if (static_cast<int64_t>(to.size()) != channels) {
      throw_error<ValueError>("the pixels' ", name, " is malformed; expected ", channels,
                              " numbers");
    }
  }
  return out;
}

PixelScale read_pixel_scale(Fields& fields, const data::DatasetHandle& training) {
  constexpr int64_t kMost = 512;
  const auto channels = static_cast<size_t>(training->get(0).input().size(0));
  PixelScale out;
  if (fields.has("mean") || fields.has("std")) {
    out.mean = fields.reals("mean", {});
    out.std = fields.reals("std", {});
    if (out.mean.size() != channels) {
      fields.fail("mean", concat("expected ", channels, " numbers, one for each channel; got ",
                                 out.mean.size()));
    }
    if (out.std.size() != channels || *std::min_element(out.std.begin(), out.std.end()) <= 0) {
      fields.fail("std", concat("expected ", channels,
                                " numbers above 0, one for each channel; got ", out.std.size()));
    }
    return out;
  }
  const int64_t count = std::min(training->size(), kMost);
  Tensor sum = zeros({static_cast<int64_t>(channels)}, {f64}), squares = sum.clone();
  double pixels = 0;
  for (int64_t i = 0; i < count; ++i) {
    const Tensor x = training->get(i * training->size() / count).input().to(f64).flatten(1) / 255.0;
    sum = sum + x.sum(1);
    squares = squares + (x * x).sum(1);
    pixels += static_cast<double>(x.size(1));
  }
  const std::vector<double> sums = sum.to_vector<double>(), parts = squares.to_vector<double>();
  for (size_t c = 0; c < channels; ++c) {
    const double mean = sums[c] / pixels;
    const double deviation = std::sqrt(std::max(parts[c] / pixels - mean * mean, 0.0));
    out.mean.push_back(mean);
    out.std.push_back(deviation > 1e-6 ? deviation : 1.0);  // a channel without spread
  }
  fields.reals("mean", out.mean);
  fields.reals("std", out.std);
  return out;
}

}  // namespace kiln::cli
