// kiln::vision from C++: worked values, options, and what is refused. tests/python/test_vision.py
// compares each function with SciPy.
#include "kiln/vision/vision.h"

#include <doctest/doctest.h>

#include "kiln/kiln.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::vision;
using kiln::test::message_of;

TEST_CASE("vision: erode and dilate by hand") {
  const Tensor x = tensor({{0, 0, 0, 0}, {0, 5, 3, 0}, {0, 0, 0, 9}}).to(i32);
  const Tensor row = ones({1, 3});
  const Tensor wide = tensor({{0, 0, 0, 0}, {5, 5, 5, 3}, {0, 0, 9, 9}}).to(i32);
  CHECK(dilate(x, row).equal(wide));
  // With the anchor at the left end each pixel sees itself and two to the right.
  CHECK(dilate(x, row, {.anchor_column = 0})
            .equal(tensor({{0, 0, 0, 0}, {5, 5, 3, 0}, {0, 9, 9, 9}}).to(i32)));
  CHECK(erode(wide, row, {.border = Border{.mode = "constant", .value = 0}})
            .equal(tensor({{0, 0, 0, 0}, {0, 5, 3, 0}, {0, 0, 0, 0}}).to(i32)));
  CHECK(closing(x, row).ge(x).all().item<bool>());
  CHECK(top_hat(x, row).equal(x - opening(x, row)));
}

TEST_CASE("vision: filters keep constants, whatever the border") {
  const Tensor x = full({2, 3, 5, 7}, 0.25, {.dtype = f64});
  for (const char* mode : {"reflect", "symmetric", "replicate", "circular"}) {
    const Border border{.mode = mode};
    CHECK(gaussian_blur(x, 5, {}, border).allclose(x));
    CHECK(box_blur(x, 7, border).allclose(x));
    CHECK(median_blur(x, 3, border).equal(x));
    CHECK(bilateral_filter(x, 3, 1, 1, border).allclose(x));
    CHECK(laplacian(x, border).abs().max().item() < 1e-12);
    CHECK(sobel(x, border).dx.abs().max().item() < 1e-12);
  }
}

TEST_CASE("vision: components, colours, transforms and boxes") {
  const Tensor x = tensor({{1, 0, 1}, {0, 1, 0}, {0, 0, 0}, {1, 1, 0}}).to(bool_);
  CHECK(connected_components(x, 4).equal(tensor({{1, 0, 2}, {0, 3, 0}, {0, 0, 0}, {4, 4, 0}})));
  const ComponentStats stats = connected_components_with_stats(x);
  CHECK(stats.labels.equal(tensor({{1, 0, 1}, {0, 1, 0}, {0, 0, 0}, {2, 2, 0}})));
  CHECK(stats.count.item<int64_t>() == 2);
  CHECK(stats.area.equal(tensor({7, 3, 2})));
  CHECK(stats.right.equal(tensor({2, 2, 1})));
  CHECK(stats.top.equal(tensor({0, 0, 3})));
  CHECK(stats.centroid.select(0, 2).equal(tensor({0.5, 3.0}).to(f64)));

  const Tensor red = tensor({1.0, 0.0, 0.0}).reshape({3, 1, 1});
  CHECK(rgb_to_hsv(red).flatten().equal(tensor({0.0, 1.0, 1.0})));
  CHECK(hsv_to_rgb(rgb_to_hsv(red)).allclose(red));

  const Transform2D t = Transform2D::translation(1, 2).then(Transform2D::scaling(2, 3));
  CHECK(t(1, 1) == std::array<double, 2>{4, 9});
  CHECK(t.inverse()(4, 9)[0] == doctest::Approx(1));
  const Tensor picture = arange(0, 9, 1, {.dtype = f32}).reshape({3, 3});
  CHECK(rotate(picture, 90).allclose(picture.t().flip({0}), 1e-5, 1e-5));

  const Tensor boxes = tensor({{0.0, 0.0, 2.0, 2.0}, {0.0, 0.0, 2.0, 1.9}, {5.0, 5.0, 6.0, 6.0}});
  const Tensor scores = tensor({0.1, 0.9, 0.5});
  CHECK(nms(boxes, scores).equal(tensor({1, 2})));
  CHECK(nms(boxes, scores, {.max_boxes = 1}).equal(tensor({1})));
  CHECK(batched_nms(boxes, scores, tensor({0, 1, 0})).equal(tensor({1, 2, 0})));
}

TEST_CASE("vision: what is refused") {
  const Tensor x = zeros({4, 4});
  CHECK_THROWS_AS(gaussian_blur(x, 4), ValueError);
  CHECK_THROWS_AS(gaussian_blur(x.to(u8), 3), DTypeError);
  CHECK_THROWS_AS(gaussian_blur(zeros({4}), 3), ShapeError);
  CHECK(message_of<ValueError>([&] {
          box_blur(x, 3, {.mode = "mirror"});
        }).find("expected constant, replicate, reflect, symmetric or circular") !=
        std::string::npos);
  CHECK_THROWS_AS(dilate(x, zeros({3, 3})), ValueError);
  CHECK_THROWS_AS(connected_components(x, 5), ValueError);
  CHECK_THROWS_AS(rgb_to_lab(x), ShapeError);
  CHECK_THROWS_AS(warp(x, Transform2D::scaling(0, 0)), ValueError);
  CHECK_THROWS_AS(crop(x, 3, 3, 2, 2), IndexError);
  CHECK_THROWS_AS(nms(zeros({2, 4}), zeros({3})), ShapeError);
}
