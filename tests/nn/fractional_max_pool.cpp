// FractionalMaxPool2d and 3d. Values against PyTorch's: tests/ops.
#include <doctest/doctest.h>

#include "tests/support/near.h"
#include <kiln/kiln.h>

using namespace kiln;

TEST_CASE("FractionalMaxPool: shapes, indices and what does not fit") {
  const Tensor x = test::pattern({2, 3, 9, 8}, 7, 143, 3.0, f32);
  nn::FractionalMaxPool2d pool(2, {.output_size = Sizes(4, 5)});
  const Tensor y = pool(x);
  CHECK(y.shape() == Shape{2, 3, 4, 5});
  CHECK(to_string(pool) == "FractionalMaxPool2d()");  // as PyTorch prints it
  CHECK(nn::FractionalMaxPool2d(3, {.output_ratio = {0.5}})(x[0]).shape() == Shape{3, 4, 4});
  CHECK(nn::FractionalMaxPool3d(2, {.output_ratio = {0.5, 0.9, 0.5}})(x).shape() ==
        Shape{2, 1, 8, 4});
  CHECK_THROWS_AS(nn::FractionalMaxPool2d(2, {}), ValueError);
  CHECK_THROWS_AS(nn::FractionalMaxPool2d(2, {.output_size = Sizes(2), .output_ratio = {0.5}}),
                  ValueError);
  CHECK_THROWS_AS(nn::FractionalMaxPool2d(2, {.output_ratio = {1.0}})(x), ValueError);
  CHECK_THROWS_AS(nn::FractionalMaxPool2d(6, {.output_size = Sizes(5)})(x), ShapeError);
  CHECK_THROWS_AS(nn::FractionalMaxPool2d(2, {.output_size = Sizes(5)})(x[0][0]), ShapeError);
  const Tensor far = full({2, 3, 2}, 1.0, {f32});
  CHECK_THROWS_AS(nn::FractionalMaxPool2d(2, {.output_size = Sizes(4), .random_samples = far})(x),
                  ValueError);
  CHECK_THROWS_AS(
      nn::FractionalMaxPool2d(2, {.output_size = Sizes(4), .random_samples = far[0]})(x),
      ShapeError);
}

TEST_CASE("FractionalMaxPool: the windows follow the generator; unpooling puts the values back") {
  const Tensor x = test::pattern({1, 2, 11, 11}, 7, 289, 3.0, f32);
  const auto draw = [&] {
    return functional::fractional_max_pool2d_with_indices(x, 2, {.output_size = Sizes(5)});
  };
  manual_seed(3);
  const auto [first, places] = draw();
  const Tensor other = draw().first;
  manual_seed(3);
  CHECK(draw().first.equal(first));
  CHECK_FALSE(other.equal(first));
  CHECK(x.reshape({1, 2, 121})
            .gather(2, places.reshape({1, 2, 25}))
            .equal(first.reshape({1, 2, 25})));
  const Tensor back = functional::max_unpool2d(first, places, 2, {}, 0, Shape{11, 11});
  CHECK(back.shape() == x.shape());
  CHECK(where(back.ne(0), x, back).equal(back));
}
