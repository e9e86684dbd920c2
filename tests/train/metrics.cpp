#include "kiln/train/metrics.h"

#include <cmath>

#include <doctest/doctest.h>

#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::train;

TEST_CASE("RunningMean weighs its values") {
  RunningMean mean;
  CHECK(std::isnan(mean.value()));
  mean.add(1.0);
  mean.add(4.0, 3.0);
  CHECK(mean.value() == 13.0 / 4.0);
  RunningMean again(mean.sum(), mean.weight());
  again.add(0.0);
  CHECK(again.value() == 13.0 / 5.0);
}

TEST_CASE("count_correct takes the largest score of each row") {
  const Tensor scores = tensor({{0.1, 0.9, 0.0}, {2.0, 1.0, 3.0}, {5.0, 1.0, 1.0}});
  CHECK(count_correct(scores, tensor({1, 0, 0})) == 2);
  CHECK(count_correct(zeros({0, 3}), zeros({0}, {i64})) == 0);
  CHECK_THROWS_AS(count_correct(scores, tensor({1, 0})), ShapeError);
  CHECK_THROWS_AS(count_correct(scores[0], tensor({1})), ShapeError);
}

TEST_CASE("ConfusionMatrix counts") {
  ConfusionMatrix matrix(3);
  CHECK(std::isnan(matrix.accuracy()));
  matrix.add(tensor({0, 0, 1, 1, 1}), tensor({0, 2, 1, 1, 0}));
  matrix.add(tensor({0}), tensor({0}));
  CHECK(matrix.counts() == std::vector<int64_t>{2, 0, 1, 1, 2, 0, 0, 0, 0});
  CHECK(matrix.count(0, 2) == 1);
  CHECK(matrix.total() == 6);
  CHECK(matrix.correct() == 4);
  CHECK(matrix.accuracy() == 4.0 / 6.0);
  CHECK(matrix.class_accuracy(1) == 2.0 / 3.0);
  CHECK(std::isnan(matrix.class_accuracy(2)));
  CHECK_THROWS_AS(matrix.count(3, 0), IndexError);
}

TEST_CASE("ConfusionMatrix counts nothing of a bad batch") {
  ConfusionMatrix matrix(2);
  CHECK_THROWS_AS(matrix.add(tensor({0, 2}), tensor({0, 0})), IndexError);
  CHECK_THROWS_AS(matrix.add(tensor({0, 0}), tensor({0, -1})), IndexError);
  CHECK_THROWS_AS(matrix.add(tensor({0, 0}), tensor({0})), ShapeError);
  CHECK(matrix.total() == 0);
  CHECK_THROWS_AS(ConfusionMatrix(0), ValueError);
}

TEST_CASE("a confusion matrix as a table") {
  ConfusionMatrix matrix(2);
  matrix.add(tensor({0, 0, 0, 1}), tensor({0, 0, 1, 1}));
  CHECK(to_text(matrix, {"cat", "dog"}) ==
        "true \\ taken for  cat  dog  samples     right\n"
        "cat                 2    1        3   66.67 %\n"
        "dog                 .    1        1  100.00 %\n"
        "all                 2    2        4   75.00 %\n");
  CHECK(to_text(ConfusionMatrix(1)) ==
        "true \\ taken for  0  samples  right\n"
        "0                 .        0      -\n"
        "all               0        0      -\n");
  CHECK_THROWS_AS(to_text(matrix, {"cat"}), ValueError);
}
