#include "kiln/nn/dropout.h"

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "tests/support/near.h"

using namespace kiln;
using kiln::nn::Dropout;

TEST_CASE("Dropout: training zeroes and scales, eval passes") {
  manual_seed(5);
  Dropout layer(0.25);
  const Tensor x = ones({10000});
  const Tensor y = layer(x);
  const double kept = y.ne(0.0).to(f64).mean().item();
  CHECK(kept > 0.73);
  CHECK(kept < 0.77);
  CHECK(y.max().item() == doctest::Approx(4.0 / 3.0));
  CHECK(y.sum().item() == doctest::Approx(kept * 10000 * 4.0 / 3.0));
  CHECK(!layer(x).equal(y));
  layer.eval();
  CHECK(layer(x).is_same(x));
}

TEST_CASE("Dropout: p of 0 and 1, in place, the seed decides") {
  const Tensor x = ones({3});
  CHECK(test::near(Dropout(0.0)(x), {1, 1, 1}));
  CHECK(test::near(Dropout(1.0)(x), {0, 0, 0}));
  const Tensor y = ones({3});
  CHECK(Dropout(1.0, true)(y).is_same(y));
  CHECK(test::near(y, {0, 0, 0}));
  manual_seed(1);
  const Tensor a = Dropout()(ones({100}));
  manual_seed(1);
  CHECK(Dropout()(ones({100})).equal(a));
}

TEST_CASE("Dropout: text and errors") {
  CHECK(to_string(Dropout(0.3)) == "Dropout(p=0.3, inplace=False)");
  CHECK(to_string(Dropout(0.5, true)) == "Dropout(p=0.5, inplace=True)");
  CHECK_THROWS_AS(Dropout(-0.1), ValueError);
  CHECK_THROWS_AS(Dropout(1.5), ValueError);
}
