// kiln.nn.functional: images in other sizes and at other places.
#include "functional.h"

namespace kiln::python {

void bind_functional_images(nb::module_& m) {
  m.def(
      "interpolate",
      [](const Tensor& x, const std::optional<IntList>& size, const nb::object& scale_factor,
         const std::string& mode, std::optional<bool> align_corners,
         std::optional<bool> recompute_scale_factor, bool antialias) {
        F::InterpolateOptions options;
        if (size) options.size = size->values;
        double scale = 0;
        if (!scale_factor.is_none()) {
          options.scale_factor = try_value(scale_factor, scale)
                                     ? std::vector<double>{scale}
                                     : value_arg<std::vector<double>>("interpolate", scale_factor,
                                                                      "a number or a list of them");
        }
        options.mode = mode;
        options.align_corners = align_corners;
        options.recompute_scale_factor = recompute_scale_factor.value_or(false);
        options.antialias = antialias;
        Unlocked lock(x);
        return F::interpolate(x, options);
      },
      "input"_a, "size"_a = nb::none(), "scale_factor"_a = nb::none(), "mode"_a = "nearest",
      "align_corners"_a = nb::none(), "recompute_scale_factor"_a = nb::none(),
      "antialias"_a = false,
      "[N, C, ..] in other spatial sizes. mode: nearest, nearest-exact, linear, bilinear, bicubic, "
      "trilinear, lanczos, area.");
  m.def(
      "grid_sample",
      [](const Tensor& x, const Tensor& grid, const std::string& mode,
         const std::string& padding_mode, std::optional<bool> align_corners) {
        Unlocked lock(x, grid);
        return F::grid_sample(x, grid, mode, padding_mode, align_corners.value_or(false));
      },
      "input"_a, "grid"_a, "mode"_a = "bilinear", "padding_mode"_a = "zeros",
      "align_corners"_a = nb::none(),
      "[N, C, H, W] read at the points (x, y) of grid [N, OH, OW, 2].");
  m.def(
      "affine_grid",
      [](const Tensor& theta, const Shape& size, std::optional<bool> align_corners) {
        Unlocked lock(theta);
        return F::affine_grid(theta, size, align_corners.value_or(false));
      },
      "theta"_a, "size"_a, "align_corners"_a = nb::none(),
      "The grid for grid_sample of affine maps [N, 2, 3].");
  m.def(
      "pixel_shuffle",
      [](const Tensor& x, int64_t upscale_factor) {
        Unlocked lock(x);
        return F::pixel_shuffle(x, upscale_factor);
      },
      "input"_a, "upscale_factor"_a, "[.., C r^2, H, W] -> [.., C, H r, W r].");
  m.def(
      "pixel_unshuffle",
      [](const Tensor& x, int64_t downscale_factor) {
        Unlocked lock(x);
        return F::pixel_unshuffle(x, downscale_factor);
      },
      "input"_a, "downscale_factor"_a, "[.., C, H r, W r] -> [.., C r^2, H, W].");
  m.def(
      "channel_shuffle",
      [](const Tensor& x, int64_t groups) {
        Unlocked lock(x);
        return F::channel_shuffle(x, groups);
      },
      "input"_a, "groups"_a, "Channels (dim 1) in the order of their place in their group.");
}

}  // namespace kiln::python
