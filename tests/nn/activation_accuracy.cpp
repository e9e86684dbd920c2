// The activations from -inf to inf, in every floating point dtype, against double precision; their
// shapes, their gradients where a kink is, and integers.
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/nn/gelu.h"
#include "kiln/nn/prelu.h"
#include "kiln/nn/relu.h"
#include "kiln/nn/sigmoid.h"
#include "kiln/nn/tanh.h"
#include "kiln/nn/threshold.h"
#include "kiln/tensor/creation.h"
#include "tests/support/near.h"

using namespace kiln;
using namespace kiln::nn;
using kiln::test::near;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

const std::vector<double> kPoints = {
    -kInf, -6e4, -1e3, -100.0, -40.0, -20.0, -13.0, -9.0, -7.0,  -5.5, -5.0, -4.0, -3.0, -2.0, -1.5,
    -1.0,  -0.7, -0.5, -0.1,   -1e-3, -1e-5, 0.0,   1e-5, 1e-3,  0.1,  0.25, 0.5,  0.7,  1.0,  1.5,
    2.0,   3.0,  4.0,  5.0,    7.0,   9.0,   13.0,  20.0, 100.0, 1e3,  6e4,  kInf, kNan};

// A dtype with its relative error (some units in the last place) and the size below which only
// absolute error counts.
struct Precision {
  DType dtype;
  double relative;
  double tiny;
};
const Precision kPrecisions[] = {
    {f64, 1e-13, 1e-300}, {f32, 1e-6, 1e-35}, {f16, 1.5e-3, 1e-7}, {bf16, 1e-2, 1e-35}};

double value_in(double x, DType dtype) {
  return tensor(std::vector<double>{x}, {f64}).to(dtype).to(f64).item<double>();
}

// `of_x`: errors below this fraction of |x| count as none (for x times a probability, whose errors
// are of that size).
template <class F, class Expected>
void check_everywhere(const std::string& name, F&& f, Expected&& expected, double of_x = 0.0) {
  for (const Precision& p : kPrecisions) {
    const std::vector<double> xs = tensor(kPoints, {f64}).to(p.dtype).to_vector<double>();
    const Tensor y = f(tensor(kPoints, {f64}).to(p.dtype));
    CHECK(y.dtype() == p.dtype);
    const std::vector<double> ys = y.to_vector<double>();
    for (size_t i = 0; i < xs.size(); ++i) {
      CAPTURE(name);
      const std::string dtype(name_of(p.dtype));
      CAPTURE(dtype);
      CAPTURE(xs[i]);
      const double exact = expected(xs[i]);
      const double want = value_in(exact, p.dtype);
      CAPTURE(want);
      CAPTURE(ys[i]);
      if (std::isnan(want)) {
        CHECK(std::isnan(ys[i]));
      } else if (std::isinf(want)) {
        CHECK(ys[i] == want);
      } else {
        CHECK(std::abs(ys[i] - exact) <=
              p.relative * std::abs(exact) + p.tiny +
                  (p.dtype == f64 ? 0 : of_x * std::min(std::abs(xs[i]), 10.0)));
      }
    }
  }
}

// Where factors of infinity and zero meet, the limit.
double gelu_exact(double x) {
  if (x == -kInf) return 0.0;
  return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
}
// 0.5 (1 + tanh u) = 1 / (1 + e^-2u), which keeps its digits in the tail.
double gelu_tanh(double x) {
  if (x == -kInf) return 0.0;
  const double u = std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x);
  return x / (1.0 + std::exp(-2.0 * u));
}

}  // namespace

TEST_CASE("accuracy: ReLU, Threshold, PReLU") {
  check_everywhere("ReLU", ReLU(), [](double x) { return std::isnan(x) ? x : std::max(x, 0.0); });
  check_everywhere("Threshold", Threshold(0.5, -3.0),
                   [](double x) { return std::isnan(x) || x > 0.5 ? x : -3.0; });
  check_everywhere(
      "PReLU", [](const Tensor& x) { return PReLU(1, 0.25, {.dtype = x.dtype()})(x); },
      [](double x) { return x >= 0 || std::isnan(x) ? x : 0.25 * x; });
}

TEST_CASE("accuracy: Sigmoid and Tanh") {
  check_everywhere("Sigmoid", Sigmoid(), [](double x) { return 1.0 / (1.0 + std::exp(-x)); });
  check_everywhere("Tanh", Tanh(), [](double x) { return std::tanh(x); });
}

TEST_CASE("accuracy: GELU, exact and by tanh") {
  check_everywhere("GELU", GELU(), gelu_exact, 1.2e-7);
  check_everywhere("GELU tanh", GELU("tanh"), gelu_tanh, 1.2e-7);
}

TEST_CASE("activations: any number of dims, empty and 0-d") {
  PReLU prelu;
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{3}, Shape{2, 0, 4}, Shape{1, 2, 3, 4, 5}}) {
    const Tensor x = full(shape, -1.0);
    CHECK(GELU()(x).shape() == shape);
    CHECK(GELU("tanh")(x).shape() == shape);
    CHECK(prelu(x).shape() == shape);
    CHECK(ReLU()(x).shape() == shape);
    CHECK(Sigmoid()(x).shape() == shape);
    CHECK(Tanh()(x).shape() == shape);
    CHECK(Threshold(0, 1)(x).shape() == shape);
  }
}

TEST_CASE("activations: gradients where there is a kink, as PyTorch's") {
  const auto gradient = [](auto&& f) {
    Tensor x = tensor({-1.0, 0.0, 1.0}, {f64});
    x.requires_grad_();
    f(x).sum().backward_accumulate();
    return x.grad().template to_vector<double>();
  };
  CHECK(gradient(ReLU()) == std::vector<double>{0, 0, 1});
  CHECK(gradient(Threshold(0, 5)) == std::vector<double>{0, 0, 1});
  PReLU prelu(1, 0.25, {.dtype = f64});
  CHECK(gradient([&](const Tensor& x) { return prelu(x); }) == std::vector<double>{0.25, 0.25, 1});
  CHECK(near(prelu.weight->grad(), {-1.0}));
}

TEST_CASE("activations: in place") {
  for (const DType dtype : {f64, f32, f16, bf16}) {
    Tensor x = tensor({-1.0, 2.0}, {dtype});
    CHECK(ReLU(true)(x).is_same(x));
    CHECK(near(x, {0, 2}));
    CHECK(Threshold(1.0, 7.0, true)(x).is_same(x));
    CHECK(near(x, {7, 2}));
  }
  // A leaf that requires a gradient must not be changed; a result may, and is differentiated.
  Tensor leaf = tensor({-1.0, 2.0}, {f64});
  leaf.requires_grad_();
  CHECK_THROWS_AS(ReLU(true)(leaf), AutodiffError);
  CHECK_THROWS_AS(Threshold(0, 1, true)(leaf), AutodiffError);
  Tensor y = leaf * 3.0;
  ReLU(true)(y);
  CHECK(near(y, {0, 6}));
  y.sum().backward_accumulate();
  CHECK(near(leaf.grad(), {0, 3}));
  leaf.zero_grad();
  Tensor z = leaf * 3.0;
  Threshold(1, 9, true)(z);
  CHECK(near(z, {9, 6}));
  z.sum().backward_accumulate();
  CHECK(near(leaf.grad(), {0, 3}));
}

TEST_CASE("activations: integers") {
  const Tensor x = arange(-3, 3);
  const Tensor y = Threshold(0, 0.5)(x);  // the page's example
  CHECK(y.dtype() == i64);
  CHECK(near(y, {0, 0, 0, 0, 1, 2}));
  const Tensor z = arange(-3, 3);
  CHECK(Threshold(-1, 8.9, true)(z).is_same(z));
  CHECK(near(z, {8, 8, 8, 0, 1, 2}));
  CHECK(ReLU()(x).dtype() == i64);
  CHECK(near(ReLU()(x), {0, 0, 0, 0, 1, 2}));
  CHECK(Sigmoid()(x).dtype() == f32);
  CHECK(Tanh()(x).dtype() == f32);
}

TEST_CASE("PReLU: one slope for each channel") {
  PReLU prelu(3);
  prelu.load_state_dict({{"weight", tensor({0.0F, 1.0F, 2.0F})}});
  CHECK(near(prelu(full({2, 3}, -1.0)), {0, -1, -2, 0, -1, -2}));
  CHECK(near(prelu(full({1, 3, 1, 2}, -1.0)), {0, 0, -1, -1, -2, -2}));
  CHECK_THROWS_AS(prelu(full({3}, -1.0)), Error);  // no channel dim
  CHECK_THROWS_AS(prelu(full({3, 2}, -1.0)), Error);
}
