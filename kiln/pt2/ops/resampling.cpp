// Images in other sizes, read at other places, and with channels traded for pixels.
#include <cmath>

#include "kiln/pt2/ops/forms.h"
#include "kiln/tensor/nn/interpolate.h"

namespace kiln::pt2 {

namespace {

// "aten.upsample_bilinear2d.vec": what the name says.
struct Method {
  std::string mode;
  bool antialias = false;
  bool aligns = false;  // whether there is an argument align_corners
};
Method method_of(Call& c) {
  const std::string& target = c.target();
  const auto has = [&](const char* part) { return target.find(part) != std::string::npos; };
  Method out{.mode = "nearest", .antialias = has("_aa"), .aligns = true};
  if (has("trilinear")) {
    out.mode = "trilinear";
  } else if (has("bilinear")) {
    out.mode = "bilinear";
  } else if (has("linear")) {
    out.mode = "linear";
  } else if (has("bicubic")) {
    out.mode = "bicubic";
  } else {
    out.mode = has("nearest_exact") ? "nearest-exact" : "nearest";
    out.aligns = false;
  }
  return out;
}

// A factor for each dim that was given as one; none when sizes decide.
std::vector<double> factors_of(Call& c) {
  if (const auto given = c.maybe_floats("scale_factors")) return *given;
  std::vector<double> out;
  for (const char* one : {"scales_d", "scales_h", "scales_w", "scales"}) {
    if (c.has(one)) out.push_back(c.f(one));
  }
  return out;
}

void upsample(Call& c) {
  const Method method = method_of(c);
  const Tensor x = c.x();
  functional::InterpolateOptions options;
  options.mode = method.mode;
  options.antialias = method.antialias;
  if (method.aligns) options.align_corners = c.b("align_corners", false);
  const auto size = c.maybe_ints("output_size");
  const std::vector<double> factors = factors_of(c);
  const auto dims = static_cast<size_t>(std::max(0, x.dim() - 2));
  bool scales = factors.size() == dims && dims != 0;
  for (size_t d = 0; scales && size && d < dims && size->size() == dims; ++d) {
    const auto in = static_cast<double>(x.size(static_cast<int64_t>(d) + 2));
    scales = std::floor(in * factors[d]) == static_cast<double>((*size)[static_cast<int>(d)]);
  }
  if (scales) {
    options.scale_factor = factors;
  } else if (size && !size->empty()) {
    options.size = *size;
  } else {
    c.fail("neither sizes nor factors for each dim");
  }
  c.out(functional::interpolate(x, options));
}

void grid_sampler(Call& c) {
  constexpr const char* kModes[] = {"bilinear", "nearest", "bicubic"};
  constexpr const char* kPads[] = {"zeros", "border", "reflection"};
  const int64_t mode = c.i("interpolation_mode"), pad = c.i("padding_mode");
  if (mode < 0 || mode > 2 || pad < 0 || pad > 2) c.fail("a mode that does not exist");
  c.out(
      functional::grid_sample(c.x(), c.t("grid"), kModes[mode], kPads[pad], c.b("align_corners")));
}
void affine_grid(Call& c) {
  c.out(functional::affine_grid(c.t("theta"), c.ints("size"), c.b("align_corners")));
}
void pixel_shuffle_of(Call& c) { c.out(functional::pixel_shuffle(c.x(), c.i("upscale_factor"))); }
void pixel_unshuffle_of(Call& c) {
  c.out(functional::pixel_unshuffle(c.x(), c.i("downscale_factor")));
}
void channel_shuffle_of(Call& c) { c.out(functional::channel_shuffle(c.x(), c.i("groups"))); }

constexpr Operator kResamplingOperators[] = {
    {"upsample_nearest1d", "default vec", upsample},
    {"upsample_nearest2d", "default vec", upsample},
    {"upsample_nearest3d", "default vec", upsample},
    {"_upsample_nearest_exact1d", "default vec", upsample},
    {"_upsample_nearest_exact2d", "default vec", upsample},
    {"_upsample_nearest_exact3d", "default vec", upsample},
    {"upsample_linear1d", "default vec", upsample},
    {"upsample_bilinear2d", "default vec", upsample},
    {"upsample_bicubic2d", "default vec", upsample},
    {"upsample_trilinear3d", "default vec", upsample},
    {"_upsample_bilinear2d_aa", "default vec", upsample},
    {"_upsample_bicubic2d_aa", "default vec", upsample},
    {"grid_sampler", "default", grid_sampler},
    {"grid_sampler_2d", "default", grid_sampler},
    {"grid_sampler_3d", "default", grid_sampler},
    {"affine_grid_generator", "default", affine_grid},
    {"pixel_shuffle", "default", pixel_shuffle_of},
    {"pixel_unshuffle", "default", pixel_unshuffle_of},
    {"channel_shuffle", "default", channel_shuffle_of},
    {"native_channel_shuffle", "default", channel_shuffle_of},
};

}  // namespace

std::span<const Operator> resampling_operators() { return kResamplingOperators; }

}  // namespace kiln::pt2
