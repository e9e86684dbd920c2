// Dropout of channels, and dropout that keeps mean and variance.
#include "kiln/tensor/nn/dropout.h"

#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("channels are dropped as a whole") {
  manual_seed(3);
  on_devices([](Device device) {
    const TensorOptions on{f32, device};
    for (const auto& [x, y] :
         {std::pair(ones({50, 40, 3}, on), functional::dropout1d(ones({50, 40, 3}, on), 0.25)),
          std::pair(ones({50, 40, 3, 2}, on),
                    functional::dropout2d(ones({50, 40, 3, 2}, on), 0.25)),
          std::pair(ones({50, 40, 3}, on), functional::dropout2d(ones({50, 40, 3}, on), 0.25)),
          std::pair(ones({40, 3, 2, 2}, on),
                    functional::dropout3d(ones({40, 3, 2, 2}, on), 0.25))}) {
      CHECK(y.shape() == x.shape());
      const Tensor channels = y.flatten(x.shape()[0] == 40 ? 1 : 2);
      CHECK(channels.amax(-1).equal(channels.amin(-1)));
      CHECK(y.amax().item() == doctest::Approx(1 / 0.75));
      CHECK(y.amin().item() == 0.0);
    }
    const double mean = functional::dropout2d(ones({500, 40, 1, 1}, on), 0.25).mean().item();
    CHECK(mean == doctest::Approx(1.0).epsilon(0.03));
  });
}

TEST_CASE("alpha_dropout keeps mean and variance") {
  manual_seed(4);
  const Tensor x = randn({400, 500});
  const Tensor y = functional::alpha_dropout(x, 0.3, true);
  CHECK(std::abs(y.mean().item()) < 0.02);
  CHECK(y.var().item() == doctest::Approx(1.0).epsilon(0.03));
  CHECK(functional::alpha_dropout(x, 0.3).is_same(x));
  const Tensor channels = functional::feature_alpha_dropout(ones({30, 20, 4}), 0.3, true);
  CHECK(channels.amax(2).equal(channels.amin(2)));
}

TEST_CASE("dropout: what does not fit") {
  const Tensor x = zeros({2, 3, 4});
  CHECK(error_lacks<ValueError>([&] { functional::dropout1d(x, 1.5); }, {"[0, 1]", "1.5"}) == "");
  CHECK(error_lacks<ShapeError>([&] { functional::dropout3d(x); }, {"dropout3d", "[2, 3, 4]"}) ==
        "");
  CHECK(error_lacks<DTypeError>([&] { functional::dropout1d(x.to(i64)); }, {"dropout1d"}) == "");
}
