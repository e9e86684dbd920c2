#include "kiln/optim/optimizer.h"

#include <cmath>

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/nn/linear.h"
#include "kiln/optim/adam.h"
#include "kiln/optim/sgd.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/nn/losses.h"
#include "kiln/tensor/ops.h"
#include "tests/support/near.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::optim::Adam;
using kiln::optim::SGD;
using kiln::test::message_of;
using kiln::test::near;

namespace {

Tensor leaf(double value, DType dtype = f64) {
  return tensor({value}, {.dtype = dtype, .requires_grad = true});
}

}  // namespace

TEST_CASE("optimizer: a parameter without a gradient stays, and counts its own steps") {
  // Expected: PyTorch with p1's gradient missing at steps 0 and 2.
  const std::vector<std::vector<double>> adam = {{0.900000003, 2.0},
                                                 {0.803481803, 2.099999995},
                                                 {0.707681682, 2.099999995},
                                                 {0.611640656, 2.191778105}};
  const std::vector<std::vector<double>> sgd = {
      {0.97, 2.0}, {0.883, 2.02}, {0.7147, 2.02}, {0.44323, 2.098}};
  for (const bool use_adam : {true, false}) {
    Tensor p0 = leaf(1.0);
    Tensor p1 = leaf(2.0);
    const std::vector<Tensor> params = {p0, p1};
    std::unique_ptr<optim::Optimizer> optimizer;
    if (use_adam) {
      optimizer = std::make_unique<Adam>(params, optim::AdamOptions{.lr = 0.1});
    } else {
      optimizer = std::make_unique<SGD>(params, optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
    }
    for (int s = 0; s < 4; ++s) {
      p0.set_grad(tensor({0.3 * (s + 1)}, {f64}));
      p1.set_grad(s % 2 == 0 ? Tensor() : tensor({-0.2 * s}, {f64}));
      optimizer->step();
      const auto& expected = (use_adam ? adam : sgd)[static_cast<size_t>(s)];
      CHECK(near(cat({p0.detach(), p1.detach()}), expected, 1e-7, 2e-9));
    }
  }
}

TEST_CASE("optimizer: groups have their own lr and weight decay") {
  Tensor p0 = leaf(1.0);
  Tensor p1 = leaf(2.0);
  SGD optimizer({{.params = {p0}}, {.params = {p1}, .lr = 0.01, .weight_decay = 0.5}}, {.lr = 0.1});
  REQUIRE(optimizer.param_groups().size() == 2);
  CHECK(optimizer.param_groups()[0].lr == 0.1);
  CHECK(optimizer.param_groups()[1].lr == 0.01);
  for (const auto& expected : {std::vector{0.9, 1.98}, std::vector{0.8, 1.9601}}) {
    p0.set_grad(ones({1}, {f64}));
    p1.set_grad(ones({1}, {f64}));
    optimizer.step();
    CHECK(near(cat({p0.detach(), p1.detach()}), expected));
  }
  Tensor p2 = leaf(3.0);
  optimizer.add_param_group({.params = {p2}, .lr = 1.0});
  p2.set_grad(ones({1}, {f64}));
  optimizer.zero_grad();
  CHECK(!p2.grad().defined());
  p2.set_grad(ones({1}, {f64}));
  optimizer.step();
  CHECK(near(p2, {2.0}));
  CHECK(near(p0, {0.8}));
}

TEST_CASE("optimizer: one group may mix dtypes") {
  Tensor a = leaf(1.0, f64);
  Tensor b = leaf(1.0, f32);
  Adam optimizer({a, b}, {.lr = 0.1});
  a.set_grad(ones({1}, {f64}));
  b.set_grad(ones({1}, {f32}));
  optimizer.step();
  CHECK(near(a, {0.9}, 1e-7));
  CHECK(near(b, {0.9}, 1e-6));
  CHECK(b.dtype() == f32);
}

TEST_CASE("optimizer: explicit gradients") {
  Tensor w = leaf(2.0);
  Tensor unused = leaf(1.0);
  SGD optimizer({w, unused}, {.lr = 0.1});
  optimizer.step((w * w).sum().backward());
  CHECK(near(w, {1.6}));
  CHECK(near(unused, {1.0}));
  CHECK(!w.grad().defined());
  CHECK(w.requires_grad());
}

TEST_CASE("optimizer: zero_grad") {
  Tensor w = leaf(2.0);
  SGD optimizer({w}, {.lr = 0.1});
  w.set_grad(ones({1}, {f64}));
  optimizer.zero_grad(false);
  REQUIRE(w.grad().defined());
  CHECK(near(w.grad(), {0.0}));
  optimizer.zero_grad();
  CHECK(!w.grad().defined());
  optimizer.step();
  CHECK(near(w, {2.0}));
}

TEST_CASE("optimizer: trains a module in place") {
  manual_seed(0);
  nn::Linear model(1, 1);
  const Tensor x = tensor({{-1.0}, {0.0}, {1.0}, {2.0}});
  const Tensor y = x * 3.0 - 1.0;
  SGD optimizer(model.parameters(), {.lr = 0.1});
  for (int s = 0; s < 300; ++s) {
    optimizer.zero_grad();
    functional::mse_loss(model(x), y).backward_accumulate();
    optimizer.step();
  }
  CHECK(near(*model.weight, {3.0}, 1e-3));
  CHECK(near(*model.bias, {-1.0}, 1e-3));
}

TEST_CASE("optimizer: parameters that cannot be trained") {
  Tensor w = leaf(1.0);
  const auto message = [](std::vector<Tensor> params) {
    return message_of<ValueError>([&] { SGD(std::move(params), {.lr = 0.1}); });
  };
  CHECK(message({}) == "SGD: there are no parameters to optimize");
  CHECK(message({Tensor()}) == "SGD: a parameter is undefined");
  CHECK(message({w, w}) == "SGD: a parameter of shape [1] was given twice");
  CHECK(message({w * 2.0}) ==
        "SGD: a parameter must be a leaf; got the result of mul of shape [1]");
  CHECK(message({ones({2}, {i64})}) == "SGD: a parameter must be floating point; got int64");
  CHECK(message_of<ValueError>([&] {
          SGD({{.params = {w}}, {.params = {w}}}, {.lr = 0.1});
        }) == "SGD: a parameter of shape [1] was given twice");
  CHECK(message_of<ValueError>([&] { SGD({{.params = {w}, .lr = -2.0}}, {.lr = 0.1}); }) ==
        "SGD: lr must be >= 0; got -2");
}

TEST_CASE("optimizer: gradients of other tensors are an error, not a step that does nothing") {
  nn::Linear trained(2, 1);
  nn::Linear other(2, 1);
  SGD sgd(trained.parameters(), {.lr = 1.0});
  const Tensor before = trained.weight->detach().clone();
  const std::string message = message_of<ValueError>([&] {
    sgd.step(other(ones({1, 2})).sum().backward());
  });
  CHECK(
      message.find("SGD::step: none of the optimizer's parameters has a gradient; got 2 gradients "
                   "of other tensors for 2 parameters; expected gradients of a loss that they "
                   "were used in. Make the optimizer from the module that computes the loss") == 0);
  CHECK(trained.weight->equal(before));
  // fork() puts other tensors into the module.
  trained.fork(Device());
  CHECK_THROWS_AS(sgd.step(trained(ones({1, 2})).sum().backward()), ValueError);
  // One of several parameters is enough: the others are frozen.
  SGD both({trained.weight.val(), other.weight.val()}, {.lr = 1.0});
  both.step(trained(ones({1, 2})).sum().backward());
}

TEST_CASE("optimizer: a rate that is negative by now is an error, and nothing is written") {
  const Tensor w = tensor({1.0}, {.requires_grad = true});
  SGD sgd({w}, {.lr = 0.1});
  sgd.param_groups()[0].lr = -1.0;
  CHECK(message_of<ValueError>([&] { sgd.step((w * 2.0).sum().backward()); }) ==
        "SGD: lr must be >= 0; got -1");
  CHECK(w.item<double>() == 1.0);
  sgd.param_groups()[0].lr = 0.5;
  sgd.param_groups()[0].weight_decay = std::nan("");
  CHECK_THROWS_AS(sgd.step((w * 2.0).sum().backward()), ValueError);
  sgd.param_groups()[0].weight_decay = 0.0;
  sgd.step((w * 2.0).sum().backward());
  CHECK(w.item<double>() == 0.0);
}

TEST_CASE("optimizer: a group with options of its own is trained as by an optimizer of its own") {
  const auto train = [](optim::Optimizer& optimizer, std::vector<Tensor> params, int steps) {
    for (int step = 0; step < steps; ++step) {
      for (Tensor& p : params) p.set_grad(p.detach() * 2.0 + static_cast<double>(step));
      optimizer.step();
    }
  };
  Tensor p0 = leaf(1.0), p1 = leaf(2.0), q0 = leaf(1.0), q1 = leaf(2.0);
  SGD both({{.params = {p0}},
            {.params = {p1}, .lr = 0.05, .options = {{"momentum", 0.5}, {"nesterov", true}}}},
           {.lr = 0.1});
  SGD first({q0}, {.lr = 0.1}), second({q1}, {.lr = 0.05, .momentum = 0.5, .nesterov = true});
  train(both, {p0, p1}, 4);
  train(first, {q0}, 4);
  train(second, {q1}, 4);
  CHECK(p0.equal(q0));
  CHECK(p1.equal(q1));
  // A state has the options, too.
  Tensor r0 = leaf(p0.item<double>()), r1 = leaf(p1.item<double>());
  SGD resumed({{.params = {r0}}, {.params = {r1}}}, {.lr = 0.7});
  resumed.load_state_dict(both.state_dict());
  CHECK(resumed.param_groups()[1].options.at("momentum") == 0.5);
  train(both, {p0, p1}, 2);
  train(resumed, {r0, r1}, 2);
  CHECK(p1.equal(r1));
  // Lists; options that change later.
  Tensor a0 = leaf(1.0), a1 = leaf(2.0), b1 = leaf(2.0);
  Adam adam({{.params = {a0}}, {.params = {a1}, .options = {{"betas", {0.5, 0.6}}}}}, {.lr = 0.1});
  Adam other({b1}, {.lr = 0.1, .betas = {0.5, 0.6}});
  train(adam, {a0, a1}, 3);
  train(other, {b1}, 3);
  CHECK(a1.equal(b1));
  both.param_groups()[1].options.clear();
  train(both, {p0, p1}, 1);
  both.param_groups()[0].options["momentum"] = 0.9;
  train(both, {p0, p1}, 2);
  both.set_momentum(0.25);
  CHECK(both.param_groups()[0].options.at("momentum") == 0.25);
  // Wrong ones.
  CHECK(message_of<ValueError>([&] {
          both.add_param_group({.params = {leaf(1.0)}, .options = {{"momentun", 0.5}}});
        }) ==
        "SGD: a group has an unknown option; got 'momentun'; expected one of lr, weight_decay, "
        "momentum, dampening, nesterov");
  CHECK_THROWS_AS(both.add_param_group({.params = {leaf(1.0)}, .options = {{"momentum", -0.5}}}),
                  ValueError);
  both.param_groups()[0].options["momentum"] = -1.0;
  CHECK_THROWS_AS(train(both, {p0, p1}, 1), ValueError);
  both.param_groups()[0].options = {{"momentum", 0.5}, {"nestorov", 1.0}};
  CHECK(message_of<ValueError>([&] {
          train(both, {p0, p1}, 1);
        }) ==
        "SGD: a group has an unknown option; got 'nestorov'; expected one of lr, weight_decay, "
        "momentum, dampening, nesterov");
}
