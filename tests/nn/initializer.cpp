// Initializer: the kinds, in layers and alone.
#include "kiln/nn/initializer.h"

#include <cmath>

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/nn/nn.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

using namespace kiln;
using nn::Initializer;

namespace {

struct DrawnMoments {
  double mean, std, min, max;
};
DrawnMoments drawn_moments(const Tensor& x) {
  return {x.mean().item(), x.std().item(), x.min().item(), x.max().item()};
}
DrawnMoments drawn(const Initializer& by, const Shape& shape) {
  manual_seed(1);
  return drawn_moments(by.init(shape).val());
}

void check_uniform(const Initializer& by, const Shape& shape, double bound) {
  CAPTURE(by.to_string());
  const DrawnMoments m = drawn(by, shape);
  CHECK(std::abs(m.std - bound / std::sqrt(3.0)) < 0.02 * bound);
  CHECK(m.min >= -bound);
  CHECK(m.max <= bound);
  CHECK(m.max > 0.98 * bound);
}
void check_normal(const Initializer& by, const Shape& shape, double std) {
  CAPTURE(by.to_string());
  const DrawnMoments m = drawn(by, shape);
  CHECK(std::abs(m.std - std) < 0.03 * std);
  CHECK(m.max > 3 * std);
}

}  // namespace

TEST_CASE("Initializer: what is drawn") {
  const Shape shape{200, 50, 2};  // fan_in 100, fan_out 400
  CHECK(drawn(Initializer::constant(3), shape).min == 3);
  CHECK(drawn(Initializer::ones(), {2}).max == 1);
  CHECK(drawn(Initializer::zeros(), {2}).max == 0);
  const DrawnMoments uniform = drawn(Initializer::uniform(1, 3), {10000});
  CHECK(std::abs(uniform.mean - 2) < 0.05);
  CHECK(uniform.min >= 1);
  CHECK(uniform.max <= 3);
  const DrawnMoments normal = drawn(Initializer::normal(5, 2), {10000});
  CHECK(std::abs(normal.mean - 5) < 0.1);
  CHECK(std::abs(normal.std - 2) < 0.1);
  check_uniform(Initializer::kaiming_uniform(2), shape, 2 * std::sqrt(3.0 / 100));
  check_uniform(Initializer::kaiming_uniform(1, true), shape, std::sqrt(3.0 / 400));
  check_normal(Initializer::kaiming_normal(2), shape, 2 / std::sqrt(100.0));
  check_normal(Initializer::kaiming_normal(1, true), shape, 1 / std::sqrt(400.0));
  check_uniform(Initializer::xavier_uniform(), shape, std::sqrt(6.0 / 500));
  check_normal(Initializer::xavier_normal(3), shape, 3 * std::sqrt(2.0 / 500));
  const Tensor rows = Initializer::orthogonal(2).init({3, 5}).val();
  CHECK(rows.mm(rows.t()).allclose(eye(3) * 4.0, 1e-5, 1e-5));
  manual_seed(1);
  const Tensor bias = Initializer::kaiming_uniform().init_with({10000}, 300, 7).val();
  CHECK(std::abs(drawn_moments(bias).max - std::sqrt(3.0 / 300)) < 1e-3);
}

TEST_CASE("Initializer: in layers, when their weights are first read") {
  int calls = 0;
  const auto counting = [&calls](Tensor& x) {
    ++calls;
    Initializer::constant(0.5)(x);
  };
  nn::Linear linear({.in_features = 3, .out_features = 2}, {.initializer = counting});
  CHECK(calls == 0);
  CHECK(linear.weight->equal(full({2, 3}, 0.5)));
  CHECK(linear.bias->abs().max().item() <= 1 / std::sqrt(3.0));
  CHECK(linear.bias->abs().max().item() != 0.5);
  CHECK(calls == 1);
  const nn::LSTM lstm({.input_size = 2, .hidden_size = 3}, {.initializer = Initializer::zeros()});
  CHECK(lstm.weights()[0]->equal(zeros({12, 2})));
  CHECK(lstm.weights()[1]->equal(zeros({12, 3})));
  const nn::LayerNorm norm(Shape{2}, {}, {.initializer = Initializer::zeros()});
  CHECK(norm.weight->equal(ones({2})));
  nn::Embedding table({.num_embeddings = 3, .embedding_dim = 2, .options = {.padding_idx = 1}},
                      {.initializer = Initializer::ones()});
  CHECK(table.weight->select(0, 1).equal(zeros({2})));
  CHECK(table.weight->select(0, 0).equal(ones({2})));
}

TEST_CASE("Initializer: what makes no sense, and names") {
  CHECK_THROWS_AS(Initializer::uniform(2, 1), ValueError);
  CHECK_THROWS_AS(Initializer::normal(0, -1), ValueError);
  CHECK_THROWS_AS(Initializer::xavier_normal().init({3}).val(), ShapeError);
  CHECK_THROWS_AS(Initializer::ones().init_with({3}, -1, 2), ValueError);
  CHECK(Initializer::kaiming_uniform(0.5, true).to_string() ==
        "KaimingUniform(gain=0.5, fan_out_only=True)");
  CHECK(Initializer::orthogonal().to_string() == "Orthogonal(gain=1.0)");
}
