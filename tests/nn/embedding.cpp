#include "kiln/nn/embedding.h"

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"
#include "tests/support/near.h"

using namespace kiln;
using kiln::nn::Embedding;
using kiln::test::near;

TEST_CASE("Embedding: looks rows up") {
  Embedding layer(3, 2);
  layer.load_state_dict({{"weight", tensor({{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}})}});
  const Tensor y = layer(tensor({{2, 0}, {1, 1}}));
  CHECK(y.shape() == Shape{2, 2, 2});
  CHECK(near(y, {5, 6, 1, 2, 3, 4, 3, 4}));
  CHECK(layer(zeros({0}, {i64})).shape() == Shape{0, 2});
  auto grads = layer(tensor({2, 1, 2})).sum().backward();
  CHECK(near(*grads.get(layer.weight), {0, 0, 1, 1, 2, 2}));
  CHECK_THROWS_AS(layer(tensor({3})), IndexError);
}

TEST_CASE("Embedding: the padding row starts at zero and gets no gradient") {
  manual_seed(0);
  Embedding layer(4, 2, {.padding_idx = -1});
  CHECK(layer.padding_idx() == 3);
  CHECK(near(layer.weight->select(0, 3), {0, 0}));
  CHECK(layer.weight->select(0, 0).abs().sum().item() > 0.0);
  auto grads = layer(tensor({3, 1, 3})).sum().backward();
  CHECK(near(*grads.get(layer.weight), {0, 0, 1, 1, 0, 0, 0, 0}));
  // Whatever stands in that row is what comes out.
  layer.load_state_dict({{"weight", ones({4, 2})}});
  CHECK(near(layer(tensor({3, 1})), {1, 1, 1, 1}));
}

TEST_CASE("Embedding: text and errors") {
  CHECK(to_string(Embedding(4, 3)) == "Embedding(4, 3)");
  CHECK(to_string(Embedding(4, 3, {.padding_idx = -1})) == "Embedding(4, 3, padding_idx=3)");
  CHECK(Embedding(4, 3).state_dict().keys() == std::vector<std::string>{"weight"});
  CHECK_THROWS_AS(Embedding(4, 3, {.padding_idx = 4}), ValueError);
  CHECK_THROWS_AS(Embedding(4, 3, {.padding_idx = -5}), ValueError);
  CHECK_THROWS_AS(Embedding(-1, 3), ValueError);
}
