// Activations: noise, and what does not fit. Values are compared in tests/ops.
#include "kiln/tensor/nn/activations.h"

#include <cmath>

#include "kiln/tensor/nn/activations_in_place.h"
#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("rrelu draws its slopes; gumbel_softmax chooses one class") {
  manual_seed(5);
  on_devices([](Device device) {
    const TensorOptions on{f32, device};
    const Tensor y = functional::rrelu(full({200, 50}, -1.0, on), 0.1, 0.3, true);
    CHECK(y.amax().item() <= -0.1);
    CHECK(y.amin().item() >= -0.3001);
    CHECK(y.mean().item() == doctest::Approx(-0.2).epsilon(0.02));
    Tensor logits = randn({100, 5}, on).requires_grad_();
    const Tensor hard = functional::gumbel_softmax(logits, 0.5, true);
    CHECK(hard.detach().sum(-1).allclose(ones({100}, on)));
    CHECK(hard.detach().amax().item() == doctest::Approx(1));
    CHECK(logits.grad(hard.square().sum().backward())->abs().sum().item() > 0);
    // Frequencies are the softmax of the logits.
    const Tensor two = tensor({std::log(0.8), std::log(0.2)}, on).expand({20000, 2});
    CHECK(functional::gumbel_softmax(two, 1.0, true).mean(0)[0].item() ==
          doctest::Approx(0.8).epsilon(0.02));
  });
}

TEST_CASE("activations: large inputs neither overflow nor lose their gradient") {
  Tensor x = tensor({-1000.0, 1000.0}, {f32}).requires_grad_();
  const auto gradient = [&](const Tensor& y) { return *x.grad(y.sum().backward()); };
  CHECK(mismatch(gradient(functional::elu(x)), {2}, {0, 1}) == "");
  CHECK(mismatch(gradient(functional::softplus(x)), {2}, {0, 1}) == "");
  CHECK(mismatch(gradient(functional::logsigmoid(x)), {2}, {1, 0}) == "");
  CHECK(mismatch(gradient(functional::mish(x)), {2}, {0, 1}) == "");
}

TEST_CASE("activations: gradients where two pieces meet are PyTorch's") {
  on_devices([](Device device) {
    const auto gradient = [&](std::vector<double> at, auto f) {
      Tensor x = tensor(at, {f32, device}).requires_grad_();
      return *x.grad(f(x).sum().backward());
    };
    using namespace functional;
    CHECK(mismatch(gradient({-1, 0, 6, 7}, [](const Tensor& x) { return relu6(x); }), {4},
                   {0, 0, 0, 0}) == "");
    CHECK(mismatch(gradient({-1, 1, 0}, [](const Tensor& x) { return hardtanh(x); }), {3},
                   {0, 0, 1}) == "");
    CHECK(mismatch(gradient({0}, [](const Tensor& x) { return leaky_relu(x, 0.25); }), {1},
                   {0.25}) == "");
    CHECK(mismatch(gradient({-3, 3}, [](const Tensor& x) { return hardswish(x); }), {2}, {0, 1}) ==
          "");
    CHECK(mismatch(gradient({-3, 3}, [](const Tensor& x) { return hardsigmoid(x); }), {2},
                   {0, 0}) == "");
    CHECK(mismatch(gradient({-0.5, 0.5, 1}, [](const Tensor& x) { return hardshrink(x); }), {3},
                   {0, 0, 1}) == "");
    CHECK(mismatch(gradient({2, 3}, [](const Tensor& x) { return threshold(x, 2, 9); }), {2},
                   {0, 1}) == "");
  });
}

TEST_CASE("activations: in place they write where they read, views and integers too") {
  on_devices([](Device device) {
    using namespace functional;
    const auto over = [&](auto f_) {
      Tensor x = tensor({-2.0, -0.5, 0.25, 8.0}, {f32, device});
      Tensor part = x.slice(0, 1, 4, 2);  // -0.5 and 8
      CHECK(&f_(part) == &part);
      return x;
    };
    const double e = std::expm1(-0.5), alpha = 1.6732632423543772, scale = 1.0507009873554805;
    CHECK(mismatch(over([](Tensor& x) -> Tensor& { return relu6_(x); }), {4}, {-2, 0, 0.25, 6}) ==
          "");
    CHECK(mismatch(over([](Tensor& x) -> Tensor& { return hardtanh_(x, -0.25, 3); }), {4},
                   {-2, -0.25, 0.25, 3}) == "");
    CHECK(mismatch(over([](Tensor& x) -> Tensor& { return elu_(x, 0.5); }), {4},
                   {-2, 0.5 * e, 0.25, 8}) == "");
    CHECK(mismatch(over([](Tensor& x) -> Tensor& { return celu_(x, 2); }), {4},
                   {-2, 2 * std::expm1(-0.25), 0.25, 8}) == "");
    CHECK(mismatch(over([](Tensor& x) -> Tensor& { return selu_(x); }), {4},
                   {-2, scale * alpha * e, 0.25, scale * 8}) == "");
  });
  Tensor whole = tensor({-3, 2, 9}, {i64});
  CHECK(mismatch(functional::relu6_(whole), {3}, {0, 2, 6}) == "");
  CHECK(whole.dtype() == i64);
  Tensor flags = zeros({2}, {bool_}), leaf = zeros({2}).requires_grad_();
  CHECK(error_lacks<DTypeError>([&] { functional::relu6_(flags); }, {"hardtanh"}) == "");
  CHECK(error_lacks<DTypeError>([&] { functional::elu_(whole); }, {"elu_"}) == "");
  CHECK(error_lacks<ValueError>([&] { functional::hardtanh_(leaf, 1, -1); }, {"min_val"}) == "");
  CHECK(error_lacks<AutodiffError>([&] { functional::selu_(leaf); }, {"selu_", "leaf"}) == "");
}

TEST_CASE("activations: what does not fit") {
  const Tensor x = zeros({3, 3}), whole = zeros({3}, {i64});
  CHECK(error_lacks<ShapeError>([&] { functional::glu(x); }, {"glu", "[3, 3]"}) == "");
  CHECK(error_lacks<DTypeError>([&] { functional::elu(whole); }, {"elu"}) == "");
  CHECK(error_lacks<ValueError>([&] { functional::softshrink(x, -1); }, {"lambd"}) == "");
  CHECK(error_lacks<ValueError>([&] { functional::hardtanh(x, 1, -1); }, {"min_val"}) == "");
  CHECK(error_lacks<ValueError>([&] { functional::rrelu(x, 1, 0); }, {"lower"}) == "");
  CHECK(error_lacks<ValueError>([&] { functional::gumbel_softmax(x, 0); }, {"tau"}) == "");
  CHECK(error_lacks<IndexError>([&] { functional::softmin(x, 2); }, {"2"}) == "");
}
