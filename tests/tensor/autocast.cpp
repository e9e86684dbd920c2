// Regions of autocast from C++, and loss scaling.
#include "kiln/tensor/amp/autocast.h"

#include "kiln/kiln.h"
#include "tests/support/tensor_check.h"
#include "tests/support/throws.h"

namespace kiln::test {
namespace {

TEST_CASE("autocast: lists, nesting, and gradients in f32") {
  Tensor w = ones({3, 2}).requires_grad_();
  const Tensor x = ones({4, 2});
  Tensor loss;
  {
    const amp::Autocast region(bf16);
    const Tensor y = functional::linear(x, w);
    CHECK(y.dtype() == bf16);
    CHECK(x.to(f64).matmul(w.detach().to(f64).t()).dtype() == f64);
    CHECK(cat({y, x.matmul(w.t())}).dtype() == bf16);
    CHECK(cat({y, functional::mse_loss(y, zeros_like(y)).expand({4, 3})}).dtype() == f32);
    {
      const amp::Autocast off(bf16, false);
      CHECK(functional::linear(x, w).dtype() == f32);
      const amp::Autocast other(f16);
      CHECK(functional::linear(x, w).dtype() == f16);
    }
    CHECK(amp::autocast_state().enabled);
    loss = functional::mse_loss(y, zeros_like(y));
  }
  CHECK(loss.dtype() == f32);
  CHECK_FALSE(amp::autocast_state().enabled);
  CHECK(functional::linear(x, w).dtype() == f32);
  loss.backward_accumulate();
  CHECK(w.grad().dtype() == f32);
  CHECK(w.grad().allclose(full({3, 2}, 4.0 / 3.0), 1e-2));
  const auto wrong = [] { const amp::Autocast region(f64); };
  CHECK_THROWS_AS(wrong(), DTypeError);
}

TEST_CASE("GradScaler: skips a step with an infinite gradient, backs off and grows") {
  Tensor w = ones({2}).requires_grad_();
  optim::SGD optimizer({w}, {.lr = 0.5});
  amp::GradScaler scaler({.init_scale = 8.0, .growth_interval = 2});
  const auto run = [&](double factor) {
    Gradients gradients = scaler.scale((w * factor).sum()).backward();
    const bool stepped = scaler.step(optimizer, gradients);
    scaler.update();
    return stepped;
  };
  CHECK_FALSE(run(std::numeric_limits<double>::infinity()));
  CHECK(scaler.get_scale() == 4.0);
  CHECK(w.equal(ones({2})));
  CHECK(run(1.0));
  CHECK(w.equal(full({2}, 0.5)));
  CHECK(run(1.0));
  CHECK(scaler.get_scale() == 8.0);
  scaler.scale(w.sum()).backward_accumulate();
  scaler.unscale_(optimizer);
  CHECK(w.grad().equal(ones({2})));
  CHECK_THROWS_AS(scaler.unscale_(optimizer), RuntimeError);
  CHECK(scaler.step(optimizer));
  CHECK_THROWS_AS(scaler.step(optimizer), RuntimeError);
  scaler.update(2.0);
  CHECK(scaler.state().scale == 2.0);
  CHECK_THROWS_AS(scaler.update(), RuntimeError);
  CHECK_THROWS_AS(amp::GradScaler({.growth_factor = 1.0}), ValueError);
  CHECK_THROWS_AS(amp::GradScaler({.backoff_factor = 1.5}), ValueError);
}

}  // namespace
}  // namespace kiln::test
