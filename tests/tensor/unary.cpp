// Ops of one tensor. Expected values come from <cmath> in double precision.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr double kPi = std::numbers::pi;

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double sign_of(double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0; }

struct Unary {
  const char* name;
  Tensor (Tensor::*op)() const;
  Tensor& (Tensor::*in_place)();
  double (*value)(double);
  double (*slope)(double);
  bool floats;     // integers are computed in the default dtype
  Doubles points;  // inside the domain, exact in every float dtype
};

const std::vector<Unary>& unaries() {
  const Doubles any{-2.5, -1.0, -0.25, 0.5, 1.0, 3.0};
  const Doubles positive{0.25, 0.5, 1.0, 2.0, 3.5, 9.0};
  const Doubles unit{-0.75, -0.5, -0.125, 0.25, 0.5, 0.875};
  const Doubles above_one{1.125, 1.5, 2.0, 3.0, 5.0, 10.0};
#define KILN_CASE(name) #name, &Tensor::name, &Tensor::name##_
  static const std::vector<Unary> list = {
      {KILN_CASE(neg), [](double x) { return -x; }, [](double) { return -1.0; }, false, any},
      {KILN_CASE(abs), [](double x) { return std::abs(x); }, sign_of, false, any},
      {KILN_CASE(sign), sign_of, [](double) { return 0.0; }, false, any},
      {KILN_CASE(square), [](double x) { return x * x; }, [](double x) { return 2 * x; }, false,
       any},
      {KILN_CASE(floor), [](double x) { return std::floor(x); }, [](double) { return 0.0; }, false,
       any},
      {KILN_CASE(ceil), [](double x) { return std::ceil(x); }, [](double) { return 0.0; }, false,
       any},
      {KILN_CASE(round), [](double x) { return std::nearbyint(x); }, [](double) { return 0.0; },
       false, any},
      {KILN_CASE(trunc), [](double x) { return std::trunc(x); }, [](double) { return 0.0; }, false,
       any},
      {KILN_CASE(relu), [](double x) { return std::max(x, 0.0); },
       [](double x) { return x > 0 ? 1.0 : 0.0; }, false, any},
      {KILN_CASE(sqrt), [](double x) { return std::sqrt(x); },
       [](double x) { return 0.5 / std::sqrt(x); }, true, positive},
      {KILN_CASE(rsqrt), [](double x) { return 1 / std::sqrt(x); },
       [](double x) { return -0.5 / (x * std::sqrt(x)); }, true, positive},
      {KILN_CASE(reciprocal), [](double x) { return 1 / x; }, [](double x) { return -1 / (x * x); },
       true, positive},
      {KILN_CASE(exp), [](double x) { return std::exp(x); }, [](double x) { return std::exp(x); },
       true, any},
      {KILN_CASE(expm1), [](double x) { return std::expm1(x); },
       [](double x) { return std::exp(x); }, true, any},
      {KILN_CASE(log), [](double x) { return std::log(x); }, [](double x) { return 1 / x; }, true,
       positive},
      {KILN_CASE(log1p), [](double x) { return std::log1p(x); },
       [](double x) { return 1 / (1 + x); }, true, positive},
      {KILN_CASE(log2), [](double x) { return std::log2(x); },
       [](double x) { return 1 / (x * std::numbers::ln2); }, true, positive},
      {KILN_CASE(log10), [](double x) { return std::log10(x); },
       [](double x) { return 1 / (x * std::numbers::ln10); }, true, positive},
      {KILN_CASE(sin), [](double x) { return std::sin(x); }, [](double x) { return std::cos(x); },
       true, any},
      {KILN_CASE(cos), [](double x) { return std::cos(x); }, [](double x) { return -std::sin(x); },
       true, any},
      {KILN_CASE(tan), [](double x) { return std::tan(x); },
       [](double x) { return 1 / (std::cos(x) * std::cos(x)); }, true, unit},
      {KILN_CASE(asin), [](double x) { return std::asin(x); },
       [](double x) { return 1 / std::sqrt(1 - x * x); }, true, unit},
      {KILN_CASE(acos), [](double x) { return std::acos(x); },
       [](double x) { return -1 / std::sqrt(1 - x * x); }, true, unit},
      {KILN_CASE(atan), [](double x) { return std::atan(x); },
       [](double x) { return 1 / (1 + x * x); }, true, any},
      {KILN_CASE(sinh), [](double x) { return std::sinh(x); },
       [](double x) { return std::cosh(x); }, true, any},
      {KILN_CASE(cosh), [](double x) { return std::cosh(x); },
       [](double x) { return std::sinh(x); }, true, any},
      {KILN_CASE(tanh), [](double x) { return std::tanh(x); },
       [](double x) { return 1 - std::tanh(x) * std::tanh(x); }, true, any},
      {KILN_CASE(asinh), [](double x) { return std::asinh(x); },
       [](double x) { return 1 / std::sqrt(x * x + 1); }, true, any},
      {KILN_CASE(acosh), [](double x) { return std::acosh(x); },
       [](double x) { return 1 / std::sqrt(x * x - 1); }, true, above_one},
      {KILN_CASE(atanh), [](double x) { return std::atanh(x); },
       [](double x) { return 1 / (1 - x * x); }, true, unit},
      {KILN_CASE(erf), [](double x) { return std::erf(x); },
       [](double x) { return 2 / std::sqrt(kPi) * std::exp(-x * x); }, true, any},
      {KILN_CASE(sigmoid), sigmoid_of, [](double x) { return sigmoid_of(x) * (1 - sigmoid_of(x)); },
       true, any},
      {KILN_CASE(silu), [](double x) { return x * sigmoid_of(x); },
       [](double x) { return sigmoid_of(x) * (1 + x * (1 - sigmoid_of(x))); }, true, any},
  };
#undef KILN_CASE
  return list;
}

Doubles mapped(const Doubles& points, double (*f)(double)) {
  Doubles out;
  for (double x : points) out.push_back(f(x));
  return out;
}

Tensor as_tensor(const Doubles& points, DType dtype, Device device) {
  return from_vector(points, {2, 3}, {dtype, device});
}

}  // namespace

TEST_CASE("values for every float dtype, in any memory layout") {
  on_devices(kFloatTypes, [](Device device, DType dtype) {
    for (const Unary& unary : unaries()) {
      INFO(unary.name);
      const Doubles expected = mapped(unary.points, unary.value);
      const Tensor x = as_tensor(unary.points, dtype, device);
      const Tensor out = (x.*unary.op)();
      CHECK(out.dtype() == dtype);
      CHECK(mismatch(out, {2, 3}, expected) == "");
      CHECK(mismatch((scattered(x).*unary.op)(), {2, 3}, expected) == "");
      CHECK((zeros({0, 2}, {dtype, device}).*unary.op)().shape() == Shape{0, 2});
      CHECK(mismatch((x[0][1].*unary.op)(), {}, {expected[1]}) == "");
      Tensor y = x.clone();
      (y.*unary.in_place)();
      CHECK(mismatch(y, {2, 3}, expected) == "");
      Tensor z = scattered(x);
      (z.*unary.in_place)();
      CHECK(mismatch(z, {2, 3}, expected) == "");
      CHECK(mismatch(x, {2, 3}, unary.points) == "");  // the operand is as it was
    }
  });
}

TEST_CASE("integers and bools") {
  on_devices(kIntTypes, [](Device device, DType dtype) {
    const Doubles points{1, 2, 3, 4, 5, 6};
    const Tensor x = as_tensor(points, dtype, device);
    for (const Unary& unary : unaries()) {
      INFO(unary.name);
      const bool defined_here = unary.points[0] != -0.75;  // 2 is outside [-1, 1]
      const Tensor out = (x.*unary.op)();
      CHECK(out.dtype() == (unary.floats ? f32 : dtype));
      Doubles expected = mapped(points, unary.value);
      if (dtype == u8 && unary.value(1.0) < 0) {
        for (double& v : expected) v += 256;
      }
      if (defined_here) CHECK(mismatch(out, {2, 3}, expected) == "");
      Tensor y = x.clone();
      if (unary.floats) {
        CHECK_THROWS_AS((y.*unary.in_place)(), DTypeError);
        CHECK(mismatch(y, {2, 3}, points) == "");  // untouched
      } else {
        (y.*unary.in_place)();
        CHECK(mismatch(y, {2, 3}, expected) == "");
      }
      CHECK_FALSE((x.*unary.op)().is_same(x));
    }
  });
  on_devices([](Device device) {
    const Tensor mask = tensor({true, false}, {.device = device});
    CHECK(mismatch(mask.exp(), {2}, {std::exp(1.0), 1}) == "");
    CHECK(mismatch(mask.sigmoid(), {2}, {sigmoid_of(1), 0.5}) == "");
    CHECK_THROWS_AS(mask.neg(), DTypeError);
    CHECK_THROWS_AS(mask.relu(), DTypeError);
    const Tensor x = tensor({-3, 0, 2}, {i8, device});
    CHECK(mismatch(x.abs(), {3}, {3, 0, 2}) == "");
    CHECK(mismatch(x.sign(), {3}, {-1, 0, 1}) == "");
    CHECK(mismatch(x.relu(), {3}, {0, 0, 2}) == "");
    CHECK(mismatch(tensor({-128}, {i8, device}).abs(), {1}, {-128}) == "");
    CHECK(mismatch(tensor({3}, {u8, device}).neg(), {1}, {253}) == "");
    // An op that changes nothing still gives a tensor of its own.
    Tensor y = x.floor();
    y.fill_(9);
    CHECK(mismatch(x, {3}, {-3, 0, 2}) == "");
  });
}

TEST_CASE("gradients") {
  on_devices([](Device device) {
    for (const DType dtype : {f64, f32}) {
      for (const Unary& unary : unaries()) {
        INFO(unary.name);
        const Tensor seed = tensor({{1.0, 2.0, -1.0}, {0.5, 3.0, 1.0}}, {dtype, device});
        Doubles expected = mapped(unary.points, unary.slope);
        const Doubles g = seed.to_data().to_doubles();
        for (size_t i = 0; i < g.size(); ++i) expected[i] *= g[i];
        for (const bool gaps : {false, true}) {
          Tensor x = as_tensor(unary.points, dtype, device);
          if (gaps) x = scattered(x);
          x.requires_grad_();
          const Tensor out = (x.*unary.op)();
          CHECK(out.requires_grad());
          CHECK(out.grad_fn() != "");
          CHECK(mismatch(*x.grad(out.backward(seed)), {2, 3}, expected,
                         dtype == f64 ? 1e-12 : 1e-5) == "");
        }
      }
    }
  });
}

TEST_CASE("rounding is half to even") {
  on_devices(kFloatTypes, [](Device device, DType dtype) {
    const Tensor x = tensor({0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.25, 3.75}, {dtype, device});
    CHECK(mismatch(x.round(), {8}, {0, 2, 2, 0, -2, -2, 0, 4}) == "");
  });
}

TEST_CASE("the edges of domains") {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  on_devices(kFloatTypes, [&](Device device, DType dtype) {
    const Tensor x = tensor({0.0, -1.0, inf, -inf, nan}, {dtype, device});
    CHECK(mismatch(x.exp(), {5}, {1, std::exp(-1.0), inf, 0, nan}) == "");
    CHECK(mismatch(x.log(), {5}, {-inf, nan, inf, nan, nan}) == "");
    CHECK(mismatch(x.log1p(), {5}, {0, -inf, inf, nan, nan}) == "");
    CHECK(mismatch(x.sqrt(), {5}, {0, nan, inf, nan, nan}) == "");
    CHECK(mismatch(x.rsqrt(), {5}, {inf, nan, 0, nan, nan}) == "");
    CHECK(mismatch(x.reciprocal(), {5}, {inf, -1, 0, 0, nan}) == "");
    CHECK(mismatch(x.tanh(), {5}, {0, std::tanh(-1.0), 1, -1, nan}) == "");
    CHECK(mismatch(x.sigmoid(), {5}, {0.5, sigmoid_of(-1), 1, 0, nan}) == "");
    CHECK(mismatch(x.erf(), {5}, {0, std::erf(-1.0), 1, -1, nan}) == "");
    CHECK(mismatch(x.atan(), {5}, {0, -kPi / 4, kPi / 2, -kPi / 2, nan}) == "");
    CHECK(mismatch(x.relu(), {5}, {0, 0, inf, 0, nan}) == "");
    CHECK(mismatch(x.abs(), {5}, {0, 1, inf, inf, nan}) == "");
    CHECK(mismatch(x.sin().isnan(), {5}, {0, 0, 1, 1, 1}) == "");
    CHECK(mismatch(x.floor(), {5}, {0, -1, inf, -inf, nan}) == "");
    CHECK(mismatch(x.sign().slice(0, 0, 4), {4}, {0, -1, 1, -1}) == "");
  });
  on_devices([&](Device device) {
    // Far out, where naive formulas overflow.
    const Tensor x = tensor({-200.0, 200.0, -89.0, 1e-8}, {f32, device});
    CHECK(mismatch(x.sigmoid(), {4}, {0, 1, sigmoid_of(-89), 0.5}, 1e-7) == "");
    CHECK(mismatch(x.tanh(), {4}, {-1, 1, -1, 1e-8}, 0) != "nan");
    CHECK(x.tanh()[3].item() == doctest::Approx(1e-8).epsilon(1e-5));
    CHECK(x.expm1()[3].item() == doctest::Approx(1e-8).epsilon(1e-5));
    CHECK(x.log1p()[3].item() == doctest::Approx(1e-8).epsilon(1e-5));
    CHECK(mismatch(x.silu(), {4}, {0, 200, -89 * sigmoid_of(-89), 5e-9}, 1e-7) == "");
    const Tensor large = tensor({1e4, -1e5}, {f32, device});
    CHECK(mismatch(large.sin(), {2}, {std::sin(1e4), std::sin(-1e5)}, 1e-5) == "");
    CHECK(mismatch(large.cos(), {2}, {std::cos(1e4), std::cos(-1e5)}, 1e-5) == "");
  });
}

TEST_CASE("gelu, both forms") {
  const auto exact = [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); };
  const auto inner = [](double x) { return std::sqrt(2 / kPi) * (x + 0.044715 * x * x * x); };
  const Doubles points{-3.0, -1.0, -0.25, 0.0, 0.5, 2.0};
  on_devices(kFloatTypes, [&](Device device, DType dtype) {
    Doubles plain, by_tanh, slopes, tanh_slopes;
    for (double x : points) {
      plain.push_back(exact(x));
      const double t = std::tanh(inner(x));
      by_tanh.push_back(0.5 * x * (1 + t));
      slopes.push_back(0.5 * (1 + std::erf(x / std::sqrt(2.0))) +
                       x * std::exp(-x * x / 2) / std::sqrt(2 * kPi));
      const double du = std::sqrt(2 / kPi) * (1 + 3 * 0.044715 * x * x);
      tanh_slopes.push_back(0.5 * (1 + t) + 0.5 * x * (1 - t * t) * du);
    }
    Tensor x = as_tensor(points, dtype, device);
    CHECK(mismatch(x.gelu(), {2, 3}, plain) == "");
    CHECK(mismatch(x.gelu("tanh"), {2, 3}, by_tanh) == "");
    CHECK(mismatch(scattered(x).gelu(), {2, 3}, plain) == "");
    x.requires_grad_();
    CHECK(mismatch(*x.grad(x.gelu().backward(ones_like(x))), {2, 3}, slopes) == "");
    CHECK(mismatch(*x.grad(x.gelu("tanh").backward(ones_like(x))), {2, 3}, tanh_slopes) == "");
    CHECK(zeros({0}, {dtype, device}).gelu().shape() == Shape{0});
    CHECK_THROWS_AS(x.gelu("sigmoid"), ValueError);
    CHECK_THROWS_AS(tensor({1}, {.device = device}).gelu(), DTypeError);
  });
}
