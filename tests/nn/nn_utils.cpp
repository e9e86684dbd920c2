// What torch.nn.utils has: vectors of parameters, weight and spectral norm, pruning.
#include <doctest/doctest.h>

#include "kiln/kiln.h"
#include "kiln/tensor/linalg/linalg.h"
#include "tests/support/state_keys.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::test::state_keys;
using nn::Linear;

TEST_CASE("nn.utils: parameters as a vector, and back") {
  Linear a(3, 2), b(2, 1);
  const std::vector<Tensor> params = {a.weight, a.bias, b.weight};
  const Tensor all = nn::parameters_to_vector(params);
  CHECK(all.shape() == Shape{10});
  CHECK(all.narrow(0, 6, 2).equal(a.bias));
  (all * all).sum().backward_accumulate();
  CHECK(a.weight->grad().allclose(*a.weight * 2.0));
  nn::vector_to_parameters(arange(10, {.dtype = f32}), params);
  CHECK(a.weight->equal(arange(6, {.dtype = f32}).reshape({2, 3})));
  CHECK(b.weight->equal(tensor({8.0, 9.0}, {.dtype = f32}).reshape({1, 2})));
  CHECK(a.weight->requires_grad());
  CHECK_THROWS_AS(nn::vector_to_parameters(ones({9}), params), ShapeError);
  CHECK_THROWS_AS(nn::parameters_to_vector({}), ValueError);
}

TEST_CASE("nn.utils: weight norm") {
  Linear plain(3, 2);
  plain.materialize();
  Linear layer = plain;
  nn::weight_norm(layer.weight);
  CHECK(state_keys(layer) == std::vector<std::string>{"weight_g", "weight_v", "bias"});
  const Tensor x = randn({4, 3});
  CHECK(layer(x).allclose(plain(x), 1e-5, 1e-6));
  // g v / |v|: a longer v changes nothing, a larger g does.
  auto* const norm = dynamic_cast<nn::WeightNorm*>(nn::parametrization(layer.weight));
  REQUIRE(norm != nullptr);
  {
    NoGradGuard guard;
    norm->v->mul_(3.0);
    CHECK(layer(x).allclose(plain(x), 1e-5, 1e-6));
    norm->g->mul_(2.0);
  }
  CHECK(layer.weight.val().allclose(*plain.weight * 2.0, 1e-5, 1e-6));
  CHECK(norm->g->shape() == Shape{2, 1});
  CHECK(norm->g->allclose((*plain.weight * *plain.weight).sum({1}, true).sqrt() * 2.0, 1e-5, 1e-6));
  layer(x).sum().backward_accumulate();
  CHECK(norm->g->grad().defined());
  CHECK(norm->v->grad().defined());
  Linear copy = layer;
  CHECK(copy(x).equal(layer(x)));
  nn::remove_weight_norm(layer.weight);
  CHECK(state_keys(layer) == std::vector<std::string>{"weight", "bias"});
  CHECK(layer.weight->allclose(*plain.weight * 2.0, 1e-5, 1e-6));
  CHECK_THROWS_AS(nn::remove_weight_norm(layer.weight), ValueError);
  CHECK_THROWS_AS(nn::weight_norm(layer.weight, 2), ShapeError);
  Linear whole(3, 2);
  CHECK(nn::weight_norm(whole.weight, std::nullopt).g->numel() == 1);
  CHECK_THROWS_AS(nn::weight_norm(whole.weight), ValueError);
}

TEST_CASE("nn.utils: spectral norm") {
  manual_seed(0);
  Linear layer(5, 4);
  const Tensor weight = layer.weight->detach().clone();
  nn::spectral_norm(layer.weight, {.n_power_iterations = 3});
  CHECK(state_keys(layer) ==
        std::vector<std::string>{"weight_orig", "bias", "weight_u", "weight_v"});
  for (int i = 0; i < 60; ++i) layer(ones({1, 5}));
  layer.eval();
  const double largest = linalg::svdvals(weight).max().item();
  CHECK(layer.weight.val().allclose(weight / largest, 1e-4, 1e-5));
  // In eval mode the vectors stay.
  const Tensor before = layer.state_dict().find("weight_u")->clone();
  layer(ones({1, 5}));
  CHECK(layer.state_dict().find("weight_u")->equal(before));
  nn::remove_spectral_norm(layer.weight);
  CHECK(layer.weight->allclose(weight / largest, 1e-4, 1e-5));
  CHECK_THROWS_AS(nn::spectral_norm(layer.bias), ShapeError);
  CHECK_THROWS_AS(nn::spectral_norm(layer.weight, {.n_power_iterations = 0}), ValueError);
}

TEST_CASE("nn.utils: pruning") {
  const Tensor values = tensor({1.0, -5.0, 3.0, 2.0, -4.0, 6.0}, {.dtype = f32}).reshape({2, 3});
  const auto fresh = [&] {
    Linear layer(3, 2);
    layer.weight = nn::Param<Tensor>::from_tensor(values.clone());
    return layer;
  };
  const auto mask = [](nn::Module& m) { return *m.state_dict().find("weight_mask"); };
  const auto matrix = [](std::vector<double> numbers) {
    return tensor(numbers, {.dtype = f32}).reshape({2, 3});
  };
  Linear l1 = fresh();
  nn::prune::l1_unstructured(l1.weight, 0.5);
  CHECK(state_keys(l1) == std::vector<std::string>{"weight_orig", "bias", "weight_mask"});
  CHECK(mask(l1).equal(matrix({0, 1, 0, 0, 1, 1})));
  nn::prune::l1_unstructured(l1.weight, int64_t{1});  // of what is left
  CHECK(mask(l1).equal(matrix({0, 1, 0, 0, 0, 1})));
  CHECK(l1.weight.val().equal(matrix({0, -5, 0, 0, 0, 6})));
  CHECK(nn::prune::is_pruned(l1));
  nn::prune::remove(l1.weight);
  CHECK(!nn::prune::is_pruned(l1));
  CHECK(l1.weight->equal(matrix({0, -5, 0, 0, 0, 6})));

  Linear ln = fresh();
  nn::prune::ln_structured(ln.weight, int64_t{1}, 2.0, 1);  // columns of norms 2.2, 6.4, 6.7
  CHECK(mask(ln).equal(matrix({0, 1, 1, 0, 1, 1})));
  Linear rows = fresh();
  nn::prune::random_structured(rows.weight, 0.5, 0);
  CHECK(mask(rows).sum().item() == 3);
  CHECK(mask(rows).sum({1}).max().item() == 3);
  Linear chance = fresh();
  nn::prune::random_unstructured(chance.weight, int64_t{2});
  CHECK(mask(chance).sum().item() == 4);
  Linear custom = fresh();
  nn::prune::custom_from_mask(custom.weight, matrix({1, 0, 1, 0, 1, 0}));
  CHECK(custom.weight.val().equal(matrix({1, 0, 3, 0, -4, 0})));
  Linear by_importance = fresh();
  nn::prune::l1_unstructured(by_importance.weight, int64_t{2}, matrix({9, 8, 7, 6, 5, 4}));
  CHECK(mask(by_importance).equal(matrix({1, 1, 1, 1, 0, 0})));

  Linear one = fresh(), two = fresh();
  {
    NoGradGuard guard;
    two.weight->mul_(0.1);
  }
  nn::Param<Tensor>* both[] = {&one.weight, &two.weight};
  nn::prune::global_unstructured(both, nn::prune::Method::l1, int64_t{7});
  CHECK(mask(two).sum().item() == 0);
  CHECK(mask(one).equal(matrix({0, 1, 1, 1, 1, 1})));

  Linear bad = fresh();
  CHECK_THROWS_AS(nn::prune::l1_unstructured(bad.weight, 1.5), ValueError);
  CHECK_THROWS_AS(nn::prune::l1_unstructured(bad.weight, int64_t{7}), ValueError);
  CHECK_THROWS_AS(nn::prune::ln_structured(bad.weight, int64_t{1}, 2.0, 2), ShapeError);
  CHECK_THROWS_AS(nn::prune::ln_structured(bad.bias, int64_t{1}, 2.0, 0), ShapeError);
  CHECK_THROWS_AS(nn::prune::custom_from_mask(bad.weight, ones({2})), ShapeError);
  CHECK_THROWS_AS(nn::prune::remove(bad.weight), ValueError);
  CHECK_THROWS_AS(nn::prune::global_unstructured({}, nn::prune::Method::l1, 0.5), ValueError);
  CHECK(state_keys(bad) == std::vector<std::string>{"weight", "bias"});
}
