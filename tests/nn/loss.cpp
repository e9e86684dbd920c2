#include "kiln/nn/loss.h"

#include <cmath>

#include <doctest/doctest.h>

#include "kiln/nn/functional.h"
#include "kiln/nn/loss_layers.h"
#include "kiln/tensor/creation.h"
#include "tests/support/near.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::nn::CrossEntropyLoss;
using kiln::nn::MSELoss;
using kiln::test::inputs;
using kiln::test::message_of;
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

TEST_CASE("reductions by their names") {
  namespace F = functional;
  const Tensor x = tensor({1.0, 2.0}), y = tensor({0.0, 4.0});
  CHECK(near(MSELoss({.reduction = "sum"})(x, y), {5}));
  CHECK(near(MSELoss("none")(x, y), {1, 4}));
  CHECK(near(F::mse_loss(x, y, "sum"), {5}));
  CHECK(near(nn::L1Loss({.reduction = std::string("none")})(x, y), {1, 2}));
  // log-probabilities of zero: the sum of y log y, over a batch of 2.
  const Tensor p = tensor({{0.5, 0.5}, {1.0, 0.0}});
  CHECK(near(F::kl_div(zeros({2, 2}), p, "sum"), {std::log(0.5)}, 1e-6));
  CHECK(near(F::kl_div(zeros({2, 2}), p, "batchmean"), {std::log(0.5) / 2}, 1e-6));
  CHECK(
      near(nn::KLDivLoss({.reduction = "batchmean"})(zeros({2, 2}), p), {std::log(0.5) / 2}, 1e-6));
  F::Reduction reduction = "mean";
  CHECK(reduction == F::Reduction::mean);
  CHECK(message_of<ValueError>([&] { reduction = "summ"; }) ==
        "Reduction: unknown word; got 'summ'; expected one of none, mean, sum");
  CHECK(nn::LossConfig{.reduction = "sum"}.to_json_string().find("\"sum\"") != std::string::npos);
  CHECK(nn::LossConfig::from_json_string("{\"reduction\": \"none\"}").reduction ==
        F::Reduction::none);
}
