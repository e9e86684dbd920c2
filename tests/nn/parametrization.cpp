#include "kiln/nn/parametrization.h"

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/nn/nn.h"
#include "kiln/optim/optim.h"
#include "kiln/tensor/creation.h"
#include "tests/support/near.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::nn::Linear;
using kiln::nn::Param;
using kiln::test::message_of;
using kiln::test::near;

namespace {

struct Symmetric : nn::Parametrization {
  explicit Symmetric(Param<Tensor> former) : base(std::move(former)) {}
  Param<Tensor> base;
  KILN_MODULE(Symmetric, base)

  Tensor value() const override { return (*base + base->t()) / 2; }
  const Param<Tensor>& like() const override { return base; }
  std::string suffix() const override { return "symmetric"; }
};

Linear square() {
  Linear out(2, 2);
  out.weight = Param<Tensor>::from_tensor(tensor({{1.0, 2.0}, {4.0, 8.0}}, {f32}));
  out.bias = Param<Tensor>::from_tensor(zeros({2}));
  return out;
}

}  // namespace

TEST_CASE("parametrize: the layer computes with what the parameter is computed to") {
  Linear fc = square();
  nn::parametrize<Symmetric>(fc.weight);
  CHECK(fc.weight.is_computed());
  CHECK(!fc.weight.is_initialized());
  CHECK(fc.weight.defined());
  CHECK(fc.weight.lazy_shape() == Shape{2, 2});
  CHECK(near(*fc.weight, {1.0, 3.0, 3.0, 8.0}));
  CHECK(near(fc.weight.val(), {1.0, 3.0, 3.0, 8.0}));
  CHECK(near(fc(tensor({{1.0, 1.0}}, {f32})), {4.0, 11.0}));
}

TEST_CASE("parametrize: its parts stand in the parameter's place, and train") {
  Linear fc = square();
  auto& part = nn::parametrize<Symmetric>(fc.weight);
  CHECK(fc.state_dict().keys() == std::vector<std::string>{"bias", "weight_symmetric.base"});
  CHECK(fc.parameters().size() == 2);
  CHECK(to_string(fc).find("(weight_symmetric): Symmetric()") != std::string::npos);
  // d/dbase of the sum over x W^T: half of the gradient of W and of its transpose.
  fc(tensor({{1.0, 3.0}}, {f32})).sum().backward_accumulate();
  CHECK(near(part.base->grad(), {1.0, 2.0, 2.0, 3.0}));
  optim::SGD sgd(fc.parameters(), {.lr = 1.0});
  sgd.step();
  CHECK(near(*fc.weight, {0.0, 1.0, 1.0, 5.0}));
}

TEST_CASE("parametrize: copies are independent, and lazy parameters stay lazy") {
  Linear fc(2, 2);
  auto& part = nn::parametrize<Symmetric>(fc.weight);
  CHECK(!part.base.is_initialized());
  Linear copy = fc;
  fc.state_dict();
  CHECK(part.base.is_initialized());
  auto* copied = dynamic_cast<Symmetric*>(nn::parametrization(copy.weight));
  REQUIRE(copied != nullptr);
  CHECK(!copied->base.is_initialized());
  copied->base.replace(ones({2, 2}));
  CHECK(near(*copy.weight, {1.0, 1.0, 1.0, 1.0}));
  CHECK(!near(*fc.weight, {1.0, 1.0, 1.0, 1.0}));
}

TEST_CASE("parametrize: requires_grad_, to() and train() reach the parts") {
  Linear fc = square();
  auto& part = nn::parametrize<Symmetric>(fc.weight);
  fc.requires_grad_(false);
  CHECK(!part.base->requires_grad());
  fc.weight.set_require_grad(true);
  CHECK(part.base->requires_grad());
  CHECK(fc.weight.lazy_is_require_grad());
  fc.to(f64).eval();
  CHECK(fc.weight->dtype() == f64);
  CHECK(fc.weight.lazy_dtype() == f64);
  CHECK(!part.is_training());
}

TEST_CASE("unparametrize: what the parameter read as becomes its value") {
  Linear fc = square();
  nn::parametrize<Symmetric>(fc.weight);
  nn::unparametrize(fc.weight);
  CHECK(!fc.weight.is_computed());
  CHECK(near(*fc.weight, {1.0, 3.0, 3.0, 8.0}));
  CHECK(fc.weight->requires_grad());
  CHECK(fc.state_dict().keys() == std::vector<std::string>{"weight", "bias"});
  CHECK(message_of<ValueError>([&] { nn::unparametrize(fc.weight); }).find("ordinary") !=
        std::string::npos);
}
