// AdaptiveLogSoftmaxWithLoss and LinearCrossEntropyLoss.
#include <doctest/doctest.h>

#include "kiln/kiln.h"
#include "tests/support/state_keys.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::test::state_keys;

TEST_CASE("AdaptiveLogSoftmaxWithLoss: probabilities, losses, keys") {
  manual_seed(0);
  nn::AdaptiveLogSoftmaxWithLoss layer(8, 12, {3, 7}, {.div_value = 2.0}, {.dtype = f64});
  CHECK(state_keys(layer) == std::vector<std::string>{"head.weight", "tail.0.0.weight",
                                                      "tail.0.1.weight", "tail.1.0.weight",
                                                      "tail.1.1.weight"});
  CHECK(layer.head.weight->shape() == Shape{5, 8});
  CHECK(layer.tail[0].at<nn::Linear>(0).weight->shape() == Shape{4, 8});
  CHECK(layer.tail[1].at<nn::Linear>(1).weight->shape() == Shape{5, 2});
  const Tensor x = randn({6, 8}, {.dtype = f64}).requires_grad_();
  const Tensor target = tensor({0, 2, 3, 6, 7, 11}, {.dtype = i64});
  const Tensor all = layer.log_prob(x);
  CHECK(all.exp().sum({1}).allclose(ones({6}, {.dtype = f64})));
  const auto [output, loss] = layer.forward(x, target);
  const Tensor want = all.gather(1, target.unsqueeze(1)).squeeze(1);
  CHECK(output.allclose(want));
  CHECK(loss.allclose(-want.mean()));
  CHECK(grad({loss}, {x})[0].allclose(grad({-want.mean()}, {x})[0]));
  CHECK(layer.predict(x).equal(all.argmax(1)));
  // A class of the head: the softmax of its layer alone. One of a cluster: times the cluster's.
  const Tensor head = layer.head(x).log_softmax(1);
  CHECK(all.select(1, 1).allclose(head.select(1, 1)));
  const Tensor cluster = layer.tail[1].forward(x).log_softmax(1);
  CHECK(all.select(1, 9).allclose(head.select(1, 4) + cluster.select(1, 2)));
  const auto alone = layer.forward(x.select(0, 4), target.select(0, 4));
  CHECK(alone.output.dim() == 0);
  CHECK(alone.output.allclose(want.select(0, 4)));
}

TEST_CASE("AdaptiveLogSoftmaxWithLoss: what it refuses") {
  using Layer = nn::AdaptiveLogSoftmaxWithLoss;
  for (const std::vector<int64_t>& cutoffs :
       {std::vector<int64_t>{}, {0, 3}, {3, 3}, {5, 4}, {12}, {3, 13}}) {
    CHECK_THROWS_AS(Layer(8, 12, cutoffs), ValueError);
  }
  CHECK_THROWS_AS(Layer(8, 12, {3, 7}, {.div_value = 100.0}), ValueError);
  Layer layer(8, 12, {3});
  CHECK_THROWS_AS(layer.forward(ones({2, 8}), zeros({3}, {.dtype = i64})), ShapeError);
  CHECK_THROWS_AS(layer.forward(ones({8}), zeros({1}, {.dtype = i64})), ShapeError);
  CHECK_THROWS_AS(layer.forward(ones({1, 8}), full({1}, 12, {.dtype = i64})), IndexError);
  CHECK_THROWS_AS(layer.forward(ones({1, 8}), full({1}, -1, {.dtype = i64})), IndexError);
}

TEST_CASE("LinearCrossEntropyLoss: the loss of the layer's logits") {
  manual_seed(0);
  const Tensor factors = tensor({1.0, 2.0, 0.5}, {.dtype = f32});
  nn::LinearCrossEntropyLoss loss(4, 3, {.bias = true, .weight = factors, .label_smoothing = 0.1});
  CHECK(state_keys(loss) == std::vector<std::string>{"weight", "linear.weight", "linear.bias"});
  const Tensor x = randn({5, 4});
  const Tensor target = tensor({0, 1, 2, 1, 0}, {.dtype = i64});
  const Tensor logits = x.mm(loss.linear.weight->t()) + *loss.linear.bias;
  CHECK(loss.forward(x, target).allclose(
      nn::functional::cross_entropy(logits, target, {.weight = factors, .label_smoothing = 0.1})));
  nn::LinearCrossEntropyLoss places(
      4, 3, {.out_features = {2}, .reduction = functional::Reduction::none});
  CHECK(places.linear.weight->shape() == Shape{6, 4});
  const Tensor classes = tensor({0, 2, 1, 1}, {.dtype = i64}).reshape({2, 2});
  const Tensor each = places.forward(x.narrow(0, 0, 2), classes);
  CHECK(each.shape() == Shape{2, 2});
  const Tensor of_all = x.narrow(0, 0, 2).mm(places.linear.weight->t()).reshape({2, 3, 2});
  CHECK(each.allclose(
      nn::functional::cross_entropy(of_all, classes, {.reduction = functional::Reduction::none})));
  CHECK(places.extra_repr() ==
        "in_features=4, num_classes=3, out_features=(2,), bias=False, reduction=none, "
        "ignore_index=None, label_smoothing=0.0, options=None");
  CHECK_THROWS_AS(nn::LinearCrossEntropyLoss(4, 0), ValueError);
  CHECK_THROWS_AS(nn::LinearCrossEntropyLoss(4, 3, {.weight = ones({2})}), ShapeError);
  CHECK_THROWS_AS(nn::LinearCrossEntropyLoss(4, 3, {.label_smoothing = 2.0}), ValueError);
  CHECK_THROWS_AS(places.forward(ones({2, 2, 4}), classes), ShapeError);
}
