#include "kiln/nn/loss.h"

#include <doctest/doctest.h>

#include "kiln/nn/functional.h"
#include "kiln/tensor/creation.h"
#include "tests/support/near.h"

using namespace kiln;
using kiln::nn::CrossEntropyLoss;
using kiln::nn::MSELoss;
using kiln::test::inputs;
using kiln::test::near;
using kiln::test::weights;

// Expected values: PyTorch's losses.

TEST_CASE("CrossEntropyLoss") {
  const Tensor target = tensor({2, 0});
  CHECK(near(CrossEntropyLoss()(inputs({2, 3}), target), {1.5637809}));
  CrossEntropyLoss loss({.weight = tensor({1.0, 2.0, 0.5}, {f64}), .label_smoothing = 0.1});
  CHECK(near(loss(inputs({2, 3}), target), {2.0534354}));
  CHECK(loss.state_dict().keys() == std::vector<std::string>{"weight"});
  CHECK(CrossEntropyLoss().state_dict().empty());
  CHECK(to_string(loss) == "CrossEntropyLoss()");
  CHECK(near(nn::functional::cross_entropy(inputs({2, 3}), target), {1.5637809}));
}

TEST_CASE("MSELoss") {
  CHECK(near(MSELoss()(inputs({2, 2}), weights({2, 2})), {1.223125}));
  CHECK(near(MSELoss(MSELoss::Reduction::sum)(inputs({2, 2}), weights({2, 2})), {4.8925}));
  CHECK(MSELoss(MSELoss::Reduction::none)(inputs({2, 2}), weights({2, 2})).shape() == Shape{2, 2});
  CHECK(to_string(MSELoss()) == "MSELoss()");
}
