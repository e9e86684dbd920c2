// Resizing, sampling and shuffling at their edges. Values are compared in tests/ops.
#include "kiln/tensor/nn/interpolate.h"

#include <limits>

#include "kiln/tensor/linalg/products.h"
#include "tests/backend/neural_check.h"
#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;
using functional::grid_sample;
using functional::interpolate;

TEST_CASE("a constant image stays constant in every mode") {
  on_devices([](Device device) {
    const Tensor x = full({1, 2, 5, 7}, 3.0, {f64, device});
    for (const std::string mode :
         {"nearest", "nearest-exact", "bilinear", "bicubic", "lanczos", "area"}) {
      for (const bool antialias : {false, true}) {
        if (antialias && mode != "bilinear" && mode != "bicubic" && mode != "lanczos") continue;
        INFO(mode);
        const Tensor y =
            interpolate(x, {.size = Shape{11, 3}, .mode = mode, .antialias = antialias});
        CHECK(y.allclose(full({1, 2, 11, 3}, 3.0, {f64, device})));
      }
    }
    const Tensor bytes = full({1, 1, 2, 2}, 200, {u8, device});
    const Tensor large = interpolate(bytes, {.size = Shape{5}, .mode = "bicubic"});
    CHECK(large.dtype() == u8);
    CHECK(large.equal(full({1, 1, 5, 5}, 200, {u8, device})));
  });
}

TEST_CASE("grid_sample: identity, and points that are nowhere") {
  on_devices([](Device device) {
    const TensorOptions on{f64, device};
    const Tensor x = randn({2, 3, 4, 5}, on);
    const Tensor same = tensor({{1.0, 0.0, 0.0}, {0.0, 1.0, 0.0}}, on).expand({2, 2, 3});
    for (const bool align : {false, true}) {
      const Tensor grid = functional::affine_grid(same, {2, 3, 4, 5}, align);
      for (const std::string mode : {"bilinear", "nearest", "bicubic"}) {
        CHECK(grid_sample(x, grid, mode, "zeros", align).allclose(x));
      }
    }
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double inf = std::numeric_limits<double>::infinity();
    const Tensor lost =
        tensor({nan, 0.0, inf, -inf}, on).reshape({1, 1, 2, 2}).expand({2, 1, 2, 2});
    CHECK(grid_sample(x, lost).equal(zeros({2, 3, 1, 2}, on)));
    CHECK(grid_sample(x, lost, "nearest", "border").isfinite().all().item<bool>());
    CHECK(grid_sample(x, zeros({2, 0, 3, 2}, on)).shape() == Shape{2, 3, 0, 3});
  });
}

TEST_CASE("grid_sample: many points, by hand and by the recorded way") {
  on_devices([](Device device) {
    manual_seed(3);
    const TensorOptions on{f64, device};
    const Tensor x = randn({2, 3, 9, 7}, on).requires_grad_();
    const Tensor grid = (rand({2, 25, 13, 2}, on) * 2.6 - 1.3).requires_grad_();
    const Tensor weight = randn({2, 3, 25, 13}, on);
    // A bilinear sample reads the product of two tents around the point.
    const Tensor at = ((grid.detach() + 1.0) * tensor({7.0, 9.0}, on) - 1.0) / 2.0;
    const auto tents = [&](int64_t which, int64_t size) {
      const Tensor place = arange(size, on);
      return (1.0 - (at.select(3, which).unsqueeze(-1) - place).abs()).clamp(0.0, {});
    };
    const Tensor expected = einsum("nchw,npqh,npqw->ncpq", {x.detach(), tents(1, 9), tents(0, 7)});
    CHECK(grid_sample(x.detach(), grid.detach()).allclose(expected));
    for (const std::string mode : {"bilinear", "nearest", "bicubic"}) {
      for (const std::string padding : {"zeros", "border", "reflection"}) {
        INFO(mode, " ", padding);
        const Tensor loss = (grid_sample(x, grid, mode, padding, true) * weight).sum();
        const auto fused = grad({loss}, {x, grid}, {.retain_graph = true, .allow_unused = true});
        const auto recorded = grad({loss}, {x, grid}, {.create_graph = true, .allow_unused = true});
        CHECK(fused[0].allclose(recorded[0].detach()));
        if (recorded[1].defined()) CHECK(fused[1].allclose(recorded[1].detach()));
      }
    }
    // What lies outside is 0, whatever the image holds.
    const Tensor nans = full({1, 1, 3, 3}, std::numeric_limits<double>::quiet_NaN(), on);
    CHECK(grid_sample(nans, full({1, 4, 40, 2}, 3.0, on)).equal(zeros({1, 1, 4, 40}, on)));
  });
}

TEST_CASE("grid_sample: every instruction set, in single and in double precision") {
  at_every_target([] {
    for (const Shape& size : {Shape{9, 7}, Shape{5, 2}, Shape{6, 1}, Shape{4, 5, 6}}) {
      for (const std::string mode : {"bilinear", "nearest", "bicubic"}) {
        if (mode == "bicubic" && size.rank() == 3) continue;
        for (const std::string padding : {"zeros", "border", "reflection"}) {
          INFO(to_string(size), " ", mode, " ", padding);
          manual_seed(4);
          Shape image{2, 3}, points{2, 13};
          for (int i = 0; i < size.rank(); ++i) {
            image.push_back(size[i]);
            if (i > 0) points.push_back(11);
          }
          points.push_back(size.rank());
          const Tensor x = randn(image), grid = rand(points) * 3.0 - 1.5;
          const auto run = [&](DType dtype) {
            const Tensor a = x.to(dtype).requires_grad_(), b = grid.to(dtype).requires_grad_();
            const Tensor y = grid_sample(a, b, mode, padding);
            auto grads = grad({(y * y).sum()}, {a, b}, {.allow_unused = true});
            grads.push_back(y.detach());
            return grads;
          };
          const auto found = run(f32), wanted = run(f64);
          for (size_t i = 0; i < found.size(); ++i) {
            REQUIRE(found[i].defined() == wanted[i].defined());
            if (found[i].defined()) CHECK(found[i].to(f64).allclose(wanted[i], 2e-4, 2e-4));
          }
        }
      }
    }
    // What lies outside is 0, whatever the image holds, and so is what has no weight.
    Tensor x = full({1, 1, 3, 40}, std::numeric_limits<float>::quiet_NaN());
    CHECK(grid_sample(x, full({1, 4, 40, 2}, 3.0)).equal(zeros({1, 1, 4, 40})));
    x.select(3, 39).fill_(2.0);
    const Tensor edge = tensor({1.0, 0.0}).reshape({1, 1, 1, 2}).expand({1, 1, 40, 2});
    CHECK(grid_sample(x, edge, "bilinear", "border").equal(full({1, 1, 1, 40}, 2.0)));
  });
}

TEST_CASE("pixel_unshuffle undoes pixel_shuffle") {
  const Tensor x = arange(2 * 12 * 2 * 3).reshape({2, 12, 2, 3});
  CHECK(functional::pixel_unshuffle(functional::pixel_shuffle(x, 2), 2).equal(x));
  CHECK(functional::channel_shuffle(functional::channel_shuffle(x, 3), 4).equal(x));
}

TEST_CASE("images: what does not fit") {
  const Tensor x = zeros({1, 3, 4, 4});
  CHECK(error_lacks<ValueError>([&] { interpolate(x, {}); }, {"size", "neither"}) == "");
  CHECK(error_lacks<NotImplementedError>(
            [&] { interpolate(x, {.size = Shape{3}, .mode = "linear"}); },
            {"linear", "[1, 3, 4, 4]"}) == "");
  CHECK(error_lacks<NotImplementedError>(
            [&] { interpolate(x, {.size = Shape{3}, .mode = "cubic"}); }, {"'cubic'", "bicubic"}) ==
        "");
  CHECK(error_lacks<ValueError>([&] { interpolate(x, {.size = Shape{3}, .align_corners = true}); },
                                {"align_corners"}) == "");
  CHECK(error_lacks<ShapeError>([&] { interpolate(x, {.size = Shape{0}}); }, {"at least 1"}) == "");
  CHECK(error_lacks<ValueError>(
            [&] {
              interpolate(x, {.size = Shape{1, 2, 3}});
            },
            {"length"}) == "");
  CHECK(error_lacks<ShapeError>(
            [&] {
              grid_sample(x, zeros({1, 2, 2, 3}));
            },
            {"grid_sample", "[1, 2, 2, 3]"}) == "");
  CHECK(error_lacks<ValueError>(
            [&] {
              grid_sample(x, zeros({1, 2, 2, 2}), "linear");
            },
            {"bilinear"}) == "");
  CHECK(error_lacks<ShapeError>(
            [&] {
              functional::affine_grid(zeros({1, 2, 2}), {1, 1, 2, 2});
            },
            {"affine_grid"}) == "");
  CHECK(error_lacks<ShapeError>([&] { functional::pixel_shuffle(x, 2); }, {"pixel_shuffle"}) == "");
  CHECK(error_lacks<ShapeError>([&] { functional::channel_shuffle(x, 2); }, {"groups 2"}) == "");
}
