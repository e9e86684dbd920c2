// kiln::metrics from C++: worked values, options, merging. tests/python/test_metrics_peers.py
// compares each with other libraries.
#include "kiln/metrics/metrics.h"

#include <cmath>

#include <doctest/doctest.h>

#include "kiln/kiln.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::metrics;
using kiln::test::message_of;

namespace {

double value(const Metric& metric) { return metric.compute().item(); }

}  // namespace

TEST_CASE("metrics: classes counted by hand") {
  // Targets 0 0 1 2, taken for 0 1 1 1.
  const Tensor scores =
      tensor({{3.0, 1.0, 0.0}, {1.0, 3.0, 2.0}, {0.0, 2.0, 1.0}, {0.0, 2.0, 1.0}});
  const Tensor target = tensor({0, 0, 1, 2});
  const ClassOptions options{.task = "multiclass", .num_classes = 3};
  const auto of = [&](auto metric) {
    metric.update(scores, target);
    return value(metric);
  };
  CHECK(of(Accuracy(options)) == 0.5);
  CHECK(of(HammingDistance(options)) == 0.5);
  ClassOptions macro = options;
  macro.average = "macro";
  CHECK(of(Precision(macro)) == doctest::Approx((1.0 + 1.0 / 3 + 0) / 3));
  CHECK(of(Recall(macro)) == doctest::Approx((0.5 + 1 + 0) / 3));
  CHECK(of(F1Score(macro)) == doctest::Approx((2.0 / 3 + 0.5 + 0) / 3));
  CHECK(of(JaccardIndex(options)) == doctest::Approx((0.5 + 1.0 / 3 + 0) / 3));
  ClassOptions best_two = options;
  best_two.top_k = 2;
  CHECK(of(Accuracy(best_two)) == 0.75);
  ConfusionMatrix matrix(options);
  matrix.update(scores, target);
  CHECK(matrix.compute().equal(tensor({{1, 1, 0}, {0, 1, 0}, {0, 1, 0}})));
  CHECK(message_of<ValueError>([] { Accuracy({.task = "multiclass"}); }) ==
        "Accuracy: bad num_classes; got 0; expected 2 or more");
}

TEST_CASE("metrics: ranks, and what is left of them after merging") {
  AUROC left({.task = "binary"}), right({.task = "binary"});
  left.update(tensor({0.1, 0.4}), tensor({0, 0}));
  CHECK(std::isnan(value(left)));
  right.update(tensor({0.35, 0.8}), tensor({1, 1}));
  left.merge(right);
  CHECK(value(left) == 0.75);
  AUROC again({.task = "binary"});
  again.load_state_dict(left.state_dict());
  CHECK(value(again) == 0.75);
  const std::unique_ptr<Metric> copy = again.clone();
  again.reset();
  CHECK(value(*copy) == 0.75);
  CHECK(std::isnan(value(again)));
  CHECK_THROWS_AS(left.merge(AUROC({.task = "binary", .ignore_index = 1})), ValueError);
  CHECK_THROWS_AS(left.merge(AveragePrecision({.task = "binary"})), TypeError);
}

TEST_CASE("metrics: texts") {
  CHECK(tokenize("Hi, it's 3.5%!", "13a") == Texts{"Hi", ",", "it's", "3.5", "%", "!"});
  CHECK(tokenize("a\u00a0bc", "char") == Texts{"a", "b", "c"});
  WordErrorRate words;
  words.update({"this is the prediction"}, {"this is the reference"});
  CHECK(value(words) == 0.25);
  CharErrorRate characters;
  characters.update({"caf\u00e9"}, {"cafe"});
  CHECK(value(characters) == 0.25);
  CHECK_THROWS_AS(characters.update({"\xff"}, {"a"}), ValueError);
  BLEUScore bleu;
  bleu.update({"the cat sat here now"}, {{"the cat sat here now"}});
  CHECK(value(bleu) == doctest::Approx(1));
}

TEST_CASE("metrics: numbers, features and boxes") {
  MeanSquaredError error;
  error.update(tensor({1.0, 3.0}), tensor({1.0, 1.0}));
  CHECK(value(error) == 2);
  R2Score r2;
  r2.update(tensor({2.5, 0.0, 2.0, 8.0}), tensor({3.0, -0.5, 2.0, 7.0}));
  CHECK(value(r2) == doctest::Approx(0.948608).epsilon(1e-6));
  Loss loss;
  loss.update(tensor(2.0), 3);
  loss.update(6.0);
  CHECK(value(loss) == 3);
  FrechetInceptionDistance distance([](const Tensor& x) { return x.reshape({-1, 1}); });
  distance.update(tensor({0.0, 2.0}), true);
  distance.update(tensor({3.0, 5.0}), false);
  CHECK(value(distance) == doctest::Approx(9));
  LearnedPerceptualImagePatchSimilarity lpips([](const Tensor& x) { return std::vector{x}; });
  lpips.update(tensor({3.0, 4.0}).reshape({1, 2, 1, 1}), tensor({4.0, 3.0}).reshape({1, 2, 1, 1}));
  CHECK(value(lpips) == doctest::Approx(0.08));
  MeanAveragePrecision map;
  const Tensor boxes = tensor({{0.0, 0.0, 10.0, 10.0}, {20.0, 20.0, 30.0, 40.0}});
  const Tensor labels = tensor({1, 1});
  map.update({{boxes, labels, tensor({0.9, 0.8})}}, {{boxes, labels}});
  CHECK(value(map) == doctest::Approx(1));
  CHECK(map.results().at("mar_1").item() == 0.5);
}
