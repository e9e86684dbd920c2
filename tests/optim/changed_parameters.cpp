// Optimizers whose parameters are given other dtypes or shapes between the steps.
#include <doctest/doctest.h>

#include "kiln/kiln.h"
#include "kiln/tensor/interop.h"
#include "kiln/tensor/nn/optimizer_steps.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::test::message_of;

namespace {

Tensor parameter() { return ones({8}).requires_grad_(); }

template <class O>
void step(O& optimizer, Tensor& p) {
  p.zero_grad();
  (p * p).sum().backward_accumulate();
  optimizer.step();
}

double first(const Tensor& x) { return x.to(f64).select(0, 0).item<double>(); }

}  // namespace

TEST_CASE("SGD with momentum goes on in another dtype as it would have in one") {
  // PyTorch 2.13: the same program, with p.data = p.data.double() after three steps.
  Tensor p = parameter();
  optim::SGD optimizer({p}, {.lr = 0.1, .momentum = 0.9});
  for (int i = 0; i < 3; ++i) step(optimizer, p);
  interop::set_data(p, p.detach().to(f64));
  step(optimizer, p);
  CHECK(first(p) == doctest::Approx(-0.3086).epsilon(1e-3));
  step(optimizer, p);
  CHECK(first(p) == doctest::Approx(-0.5804).epsilon(1e-3));
  CHECK(p.dtype() == f64);
}

TEST_CASE("Adam goes on in another dtype as it would have in one") {
  for (const DType to : {f64, f16, bf16}) {
    Tensor p = parameter(), q = parameter();
    optim::Adam changed({p}, {.lr = 0.1}), same({q}, {.lr = 0.1});
    for (int i = 0; i < 3; ++i) {
      step(changed, p);
      step(same, q);
    }
    interop::set_data(p, p.detach().to(to));
    for (int i = 0; i < 3; ++i) {
      step(changed, p);
      step(same, q);
    }
    CHECK(first(p) == doctest::Approx(first(q)).epsilon(to == f64   ? 1e-6
                                                        : to == f16 ? 5e-3
                                                                    : 3e-2));
    // All were equal, and are.
    CHECK(p.to(f64).sub(first(p)).abs().max().item<double>() == 0);
  }
}

TEST_CASE("a gradient from before a cast is converted") {
  Tensor p = parameter();
  optim::SGD optimizer({p}, {.lr = 0.25});
  (p * p).sum().backward_accumulate();
  interop::set_data(p, p.detach().to(f64));
  optimizer.step();
  CHECK(first(p) == 0.5);
}

TEST_CASE("state of another shape is refused, and nothing is changed") {
  Tensor small = parameter();
  Tensor table = ones({10, 4}).requires_grad_();
  optim::Adam optimizer({small, table}, {.lr = 0.1});
  (small.sum() + table.sum()).backward_accumulate();
  optimizer.step();
  interop::set_data(table, ones({5000, 4}));
  optimizer.zero_grad();
  (small.sum() + table.sum()).backward_accumulate();
  const double before = first(small);
  const std::string message = message_of<ShapeError>([&] { optimizer.step(); });
  CHECK(message ==
        "Adam: step: the state of parameter 1 of group 0 was made for another shape; got exp_avg "
        "of shape [10, 4] for a parameter of shape [5000, 4]; expected a new optimizer for the "
        "parameters as they are now");
  CHECK(first(small) == before);
  CHECK(table.sum().item<float>() == 20000);
}

TEST_CASE("a gradient of another shape is refused") {
  Tensor p = ones({3}).requires_grad_();
  const Gradients gradients = (p * p).sum().backward();
  interop::set_data(p, ones({4000}));
  optim::SGD optimizer({p}, {.lr = 0.1});
  const std::string message = message_of<ShapeError>([&] { optimizer.step(gradients); });
  CHECK(message ==
        "SGD: step: the gradient of parameter 0 of group 0 was computed when the parameter had "
        "another shape; got [3]; expected [4000], try zero_grad() and another backward pass");
  CHECK(p.sum().item<float>() == 4000);
}

TEST_CASE("the fused steps take nothing that does not fit") {
  std::vector<Tensor> p = {ones({4})};
  const std::vector<Tensor> g = {ones({4})}, short_g = {ones({3})};
  const std::vector<Tensor> double_g = {ones({4}, {.dtype = f64})};
  std::vector<Tensor> m = {zeros({4})}, v = {zeros({4})}, small = {zeros({2})};
  using Slots = std::vector<std::span<Tensor>>;
  const auto step = [&p](const std::vector<Tensor>& grads, const Slots& slots, OptimizerStep rule) {
    detail::optimizer_step(p, grads, slots, rule);
  };
  CHECK_THROWS_AS(step(short_g, {}, SgdStep{}), ShapeError);
  CHECK_THROWS_AS(step(double_g, {}, SgdStep{}), DTypeError);
  CHECK_THROWS_AS(step(g, {small}, SgdStep{.momentum = 0.9}), ShapeError);
  CHECK_THROWS_AS(step(g, {}, SgdStep{.momentum = 0.9}), ValueError);
  CHECK_THROWS_AS(step(g, {small, v}, AdamStep{}), ShapeError);
  CHECK_THROWS_AS(step(g, {m, small}, AdamStep{}), ShapeError);
  CHECK_THROWS_AS(step(g, {m, v}, AdamStep{.amsgrad = true}), ValueError);
  CHECK_THROWS_AS(step({}, {m, v}, AdamStep{}), ValueError);
  CHECK(p[0].sum().item<float>() == 4);
}
