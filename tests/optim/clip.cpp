#include "kiln/optim/clip.h"

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "tests/support/near.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::optim::clip_grad_norm_;
using kiln::optim::clip_grad_value_;
using kiln::test::message_of;
using kiln::test::near;

namespace {

// Gradients [3, -4] and [[12]]: norm 13 together; a third parameter has none.
struct Params {
  Tensor a = zeros({2}, {.dtype = f64, .requires_grad = true});
  Tensor b = zeros({1, 1}, {.dtype = f64, .requires_grad = true});
  Tensor c = zeros({4}, {.dtype = f64, .requires_grad = true});
  Params() {
    a.set_grad(tensor({3.0, -4.0}, {f64}));
    b.set_grad(tensor({{12.0}}, {f64}));
  }
  std::vector<Tensor> list() const { return {a, b, c}; }
};

}  // namespace

TEST_CASE("clip_grad_norm_: several norms") {
  // Expected: torch.nn.utils.clip_grad_norm_ with max_norm 1.
  struct Case {
    double order;
    double norm;
    std::vector<double> a;
    std::vector<double> b;
  };
  const std::vector<Case> cases = {
      {2.0, 13.0, {0.230769213, -0.307692284}, {0.923076852}},
      {1.0, 19.0, {0.157894729, -0.210526305}, {0.631578914}},
      {3.0, 12.207054953820636, {0.245759503, -0.327679337}, {0.983038011}},
      {optim::kMaxNorm, 12.0, {0.249999979, -0.333333306}, {0.999999917}},
  };
  for (const Case& each : cases) {
    Params params;
    CHECK(near(clip_grad_norm_(params.list(), 1.0, each.order), {each.norm}));
    CHECK(near(params.a.grad(), each.a, 1e-8, 1e-9));
    CHECK(near(params.b.grad(), each.b, 1e-8, 1e-9));
    CHECK(!params.c.grad().defined());
  }
}

TEST_CASE("clip_grad_norm_: small gradients stay as they are") {
  Params params;
  CHECK(near(clip_grad_norm_(params.list(), 20.0), {13.0}));
  CHECK(near(params.a.grad(), {3.0, -4.0}));
  CHECK(clip_grad_norm_(std::vector<Tensor>{params.c}, 1.0).item<double>() == 0.0);
}

TEST_CASE("clip_grad_norm_: explicit gradients, also those that share memory") {
  Params params;
  // The gradient of a sum is one number seen many times.
  Gradients gradients = (params.a.sum() * 3.0 + params.b.sum() * 4.0).backward();
  clip_grad_norm_(gradients, params.list(), 1.0);
  const double norm = std::sqrt(9.0 + 9.0 + 16.0);
  CHECK(near(*gradients.get(params.a), {3.0 / norm, 3.0 / norm}, 1e-5));
  CHECK(near(*gradients.get(params.b), {4.0 / norm}, 1e-5));
  CHECK(near(params.a.grad(), {3.0, -4.0}));
}

TEST_CASE("clip_grad_value_") {
  Params params;
  clip_grad_value_(params.list(), 3.5);
  CHECK(near(params.a.grad(), {3.0, -3.5}));
  CHECK(near(params.b.grad(), {3.5}));
}

TEST_CASE("clipping: errors") {
  Params params;
  CHECK(message_of<ValueError>([&] { clip_grad_norm_(params.list(), 1.0, 0.0); }) ==
        "clip_grad_norm_: norm_type must be > 0; got 0");
  CHECK(message_of<ValueError>([&] { clip_grad_value_(params.list(), -1.0); }) ==
        "clip_grad_value_: clip_value must be >= 0; got -1");
  params.a.set_grad(full({2}, INFINITY, {f64}));
  CHECK(message_of<ValueError>([&] {
          clip_grad_norm_(params.list(), 1.0, 2.0, true);
        }).find("not finite; got inf") != std::string::npos);
}
