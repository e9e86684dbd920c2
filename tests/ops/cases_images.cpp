// Images in other sizes and at other places, channels and pixels.
#include "tests/ops/case.h"

namespace kiln::ops {

namespace F = kiln::functional;

namespace {

F::InterpolateOptions to_size(const Shape& size, const std::string& mode,
                              std::optional<bool> align_corners = {}, bool antialias = false) {
  return {.size = size, .mode = mode, .align_corners = align_corners, .antialias = antialias};
}
F::InterpolateOptions by_factor(std::vector<double> factor, const std::string& mode,
                                std::optional<bool> align_corners = {}, bool recompute = false) {
  return {.scale_factor = std::move(factor),
          .mode = mode,
          .align_corners = align_corners,
          .recompute_scale_factor = recompute};
}

void resize(const std::string& arguments, const F::InterpolateOptions& options, const Shape& shape,
            std::vector<Input> big = {}) {
  op("nn.functional.interpolate", "F.interpolate(a, " + arguments + ")",
     [options](const Tensors& x) { return F::interpolate(x[0], options); }, {real(shape)})
      .loose(4)
      .big(std::move(big));
}

}  // namespace

KILN_OP_CASES(interpolate) {
  resize("size=7", to_size({7}, "nearest"), {2, 2, 4});
  resize("size=(3, 9)", to_size({3, 9}, "nearest"), {1, 2, 5, 4});
  resize("scale_factor=2", by_factor({2}, "nearest"), {1, 2, 3, 4}, {real({4, 32, 64, 64})});
  // PyTorch's gradient of this one is not that of what it computes.
  resize("scale_factor=(1.5, 0.7, 2.3)", by_factor({1.5, 0.7, 2.3}, "nearest"), {1, 1, 3, 4, 2});
  cases().back().no_peer("its gradient is not that of its values there");
  resize("scale_factor=(2, 1, 3)", by_factor({2, 1, 3}, "nearest"), {1, 1, 3, 4, 2});
  resize("size=(3, 9), mode='nearest-exact'", to_size({3, 9}, "nearest-exact"), {1, 2, 5, 4});
  resize("scale_factor=1.6, mode='nearest-exact'", by_factor({1.6}, "nearest-exact"), {1, 2, 5});
  resize("size=7, mode='linear'", to_size({7}, "linear"), {2, 2, 4});
  resize("scale_factor=2.5, mode='linear', align_corners=True", by_factor({2.5}, "linear", true),
         {2, 2, 4});
  resize("size=(3, 9), mode='bilinear'", to_size({3, 9}, "bilinear"), {1, 2, 5, 4});
  resize("scale_factor=2, mode='bilinear', align_corners=False", by_factor({2}, "bilinear", false),
         {1, 2, 3, 4}, {real({4, 32, 64, 64})});
  resize("scale_factor=(1.7, 0.6), mode='bilinear', recompute_scale_factor=True",
         by_factor({1.7, 0.6}, "bilinear", {}, true), {1, 2, 3, 6});
  resize("size=(1, 4), mode='bilinear', align_corners=True", to_size({1, 4}, "bilinear", true),
         {1, 2, 3, 4});
  resize("size=(3, 9), mode='bicubic'", to_size({3, 9}, "bicubic"), {1, 2, 5, 4});
  resize("scale_factor=1.7, mode='bicubic', align_corners=True", by_factor({1.7}, "bicubic", true),
         {1, 1, 3, 4}, {real({4, 32, 64, 64})});
  resize("size=(2, 5, 3), mode='trilinear'", to_size({2, 5, 3}, "trilinear"), {1, 1, 3, 3, 4});
  resize("size=(2, 5), mode='area'", to_size({2, 5}, "area"), {1, 2, 3, 8});
  resize("size=(3, 5), mode='bilinear', antialias=True", to_size({3, 5}, "bilinear", {}, true),
         {1, 2, 8, 3}, {real({1, 16, 256, 256})});
  resize("size=(3, 5), mode='bicubic', antialias=True", to_size({3, 5}, "bicubic", {}, true),
         {1, 1, 8, 12});
  resize("size=(3, 5), mode='lanczos', antialias=True", to_size({3, 5}, "lanczos", {}, true),
         {1, 1, 8, 12});
  op("nn.functional.upsample", "F.upsample(a, scale_factor=2, mode='bilinear')",
     [](const Tensors& x) { return F::interpolate(x[0], by_factor({2}, "bilinear")); },
     {real({1, 2, 3, 4})})
      .loose(4);
  op("nn.functional.upsample_nearest", "F.upsample_nearest(a, 6)",
     [](const Tensors& x) { return F::interpolate(x[0], to_size({6}, "nearest")); },
     {real({1, 2, 3, 4})});
  op("nn.functional.upsample_bilinear", "F.upsample_bilinear(a, (5, 7))",
     [](const Tensors& x) {
       return F::interpolate(x[0], to_size({5, 7}, "bilinear", true));
     },
     {real({1, 2, 3, 4})})
      .loose(4);
  op("nn.functional.interpolate", "F.interpolate(a, size=(5, 7), mode='lanczos')",
     [](const Tensors& x) {
       return F::interpolate(x[0], to_size({5, 7}, "lanczos"));
     },
     {real({1, 1, 4, 3})})
      .loose(4)
      .no_peer("Burn's, not PyTorch's");
  op("nn.functional.interpolate", "F.interpolate(a, size=(3, 9))",
     [](const Tensors& x) {
       return F::interpolate(x[0], to_size({3, 9}, "nearest"));
     },
     {constant({1, 2, 5, 4}, 0, 100)})
      .dtypes({u8});
}

KILN_OP_CASES(grid_sample) {
  // Points that lie between pixels, and some outside.
  const auto sample = [](const std::string& mode, const std::string& padding, bool align) {
    op("nn.functional.grid_sample",
       "F.grid_sample(a, b, '" + mode + "', '" + padding + "', " + (align ? "True" : "False") + ")",
       [=](const Tensors& x) { return F::grid_sample(x[0], x[1], mode, padding, align); },
       {real({2, 2, 4, 5}), real({2, 3, 3, 2}, -1.4, 1.4)})
        .dtypes(kDoubles)
        .loose(8)
        .gradient_tolerance(1e-5);
  };
  for (const std::string mode : {"bilinear", "nearest", "bicubic"}) {
    for (const std::string padding : {"zeros", "border", "reflection"}) {
      sample(mode, padding, false);
      sample(mode, padding, true);
    }
  }
  op("nn.functional.grid_sample", "F.grid_sample(a, b, align_corners=False)",
     [](const Tensors& x) { return F::grid_sample(x[0], x[1]); },
     {real({1, 2, 3, 4, 3}), real({1, 2, 2, 2, 3}, -1.2, 1.2)})
      .dtypes(kDoubles)
      .loose(8)
      .big({real({1, 4, 32, 32, 32}), real({1, 32, 32, 32, 3}, -1.2, 1.2)});
  op("nn.functional.grid_sample", "F.grid_sample(a, b, 'nearest', 'reflection', True)",
     [](const Tensors& x) { return F::grid_sample(x[0], x[1], "nearest", "reflection", true); },
     {real({1, 2, 3, 4, 3}), real({1, 2, 2, 2, 3}, -2, 2)})
      .dtypes(kDoubles);
  op("nn.functional.grid_sample", "F.grid_sample(a, b, align_corners=False)",
     [](const Tensors& x) { return F::grid_sample(x[0], x[1]); },
     {constant({1, 1, 2, 2}), values({1e20, 0, 1e20, -1e20, 3, 3, -1, 1}, {1, 2, 2, 2})})
      .dtypes(kDoubles)
      .no_gradient("zero outside");
  op("nn.functional.grid_sample", "F.grid_sample(a, b, align_corners=False)",
     [](const Tensors& x) { return F::grid_sample(x[0], x[1]); },
     {real({2, 2, 4, 5}), real({2, 3, 3, 2}, -0.5, 0.5)})
      .dtypes(kDoubles)
      .loose(8)
      .big({real({4, 16, 128, 128}), real({4, 128, 128, 2}, -1, 1)});
  op("nn.functional.affine_grid", "F.affine_grid(a, (2, 1, 3, 4), align_corners=False)",
     [](const Tensors& x) {
       return F::affine_grid(x[0], {2, 1, 3, 4});
     },
     {real({2, 2, 3})})
      .loose(2);
  op("nn.functional.affine_grid", "F.affine_grid(a, (1, 1, 2, 1, 3), align_corners=True)",
     [](const Tensors& x) {
       return F::affine_grid(x[0], {1, 1, 2, 1, 3}, true);
     },
     {real({1, 3, 4})})
      .loose(2);
}

KILN_OP_CASES(pixels) {
  op("nn.functional.pixel_shuffle", "F.pixel_shuffle(a, 2)",
     [](const Tensors& x) { return F::pixel_shuffle(x[0], 2); }, {real({2, 8, 2, 3})})
      .dtypes(kReals)
      .big({real({4, 64, 64, 64})});
  op("nn.functional.pixel_unshuffle", "F.pixel_unshuffle(a, 3)",
     [](const Tensors& x) { return F::pixel_unshuffle(x[0], 3); }, {real({2, 3, 6})})
      .dtypes(kReals);
  op("nn.functional.channel_shuffle", "F.channel_shuffle(a, 3)",
     [](const Tensors& x) { return F::channel_shuffle(x[0], 3); }, {real({2, 6, 4})})
      .dtypes(kReals)
      .big({real({4, 63, 64, 64})});
}

}  // namespace kiln::ops
