// Accuracy of Cpu's elementary functions against libm in double precision, at every instruction
// set.
#include <bit>
#include <cmath>
#include <limits>

#include "kiln/backend/function_math.h"
#include "tests/backend/neural_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr float kInfF = std::numeric_limits<float>::infinity();
constexpr float kNanF = std::numeric_limits<float>::quiet_NaN();

// Floats of every exponent and sign, and many between -20 and 20, with the special ones.
std::vector<float> sample() {
  std::vector<float> out = {0.0f, -0.0f, 1.0f, -1.0f, kInfF, -kInfF, kNanF};
  Values random(7);
  for (uint32_t exponent = 0; exponent < 255; ++exponent) {
    for (int i = 0; i < 80; ++i) {
      const auto mantissa = static_cast<uint32_t>(random.next_int(1 << 23));
      const uint32_t sign = static_cast<uint32_t>(i & 1) << 31;
      out.push_back(std::bit_cast<float>(sign | exponent << 23 | mantissa));
    }
  }
  for (int i = 0; i < 60000; ++i) {
    out.push_back(static_cast<float>(random.next() * 20.0));
    out.push_back(static_cast<float>(random.next()));
  }
  for (int i = 0; i < 5000; ++i) out.push_back(static_cast<float>(random.next() * 105.0));
  return out;
}

// The distance of two floats around the magnitude of x, which is in the range of normal and
// subnormal floats.
double unit_at(double x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  return std::ldexp(1.0, std::max(exponent - 24, -149));
}

// Units in the last place between a float and the exact value.
double distance(float got, double want) {
  if (std::isnan(got) && std::isnan(want)) return 0.0;
  if (got == static_cast<float>(want)) {
    return std::signbit(got) == std::signbit(want) ? 0.0 : kInfF;  // of zeros
  }
  // The last float may stand in for an infinity that is hardly past it.
  if (std::isinf(got) || std::isinf(static_cast<float>(want))) {
    const double largest = std::numeric_limits<float>::max();
    const double a = std::isinf(got) ? std::copysign(largest, got) : got;
    const double b = std::abs(want) > largest ? std::copysign(largest, want) : want;
    return std::abs(a - b) / unit_at(largest) + 1.0;
  }
  return std::abs(static_cast<double>(got) - want) / unit_at(want);
}

double exact_sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

struct Function {
  const char* name;
  HostHandle (*cpu)(Arg<HostHandle>);
  double (*exact)(double);
  double bound;  // with fused multiply-add
  double plain;  // without
};

const Function kFunctions[] = {
    {"exp", CpuOps::float_exp, std::exp, 1.0, 1.5},
    {"expm1", CpuOps::float_expm1, std::expm1, 2.0, 2.5},
    {"log", CpuOps::float_log, std::log, 1.0, 1.5},
    {"sigmoid", CpuOps::float_sigmoid, exact_sigmoid, 2.5, 2.5},
    {"tanh", CpuOps::float_tanh, std::tanh, 2.0, 2.5},
    {"erf", CpuOps::float_erf, std::erf, 1.5, 2.5},
    {"log1p", CpuOps::float_log1p, std::log1p, 0.6, 0.6},
    {"log2", CpuOps::float_log2, std::log2, 0.6, 0.6},
    {"log10", CpuOps::float_log10, std::log10, 0.6, 0.6},
    {"sin", CpuOps::float_sin, std::sin, 0.6, 0.6},
    {"cos", CpuOps::float_cos, std::cos, 0.6, 0.6},
    {"tan", CpuOps::float_tan, std::tan, 0.6, 0.6},
    {"asin", CpuOps::float_asin, std::asin, 0.6, 0.6},
    {"acos", CpuOps::float_acos, std::acos, 0.6, 0.6},
    {"atan", CpuOps::float_atan, std::atan, 0.6, 0.6},
    {"sinh", CpuOps::float_sinh, std::sinh, 0.6, 0.6},
    {"cosh", CpuOps::float_cosh, std::cosh, 0.6, 0.6},
    {"asinh", CpuOps::float_asinh, std::asinh, 0.6, 0.6},
    {"acosh", CpuOps::float_acosh, std::acosh, 0.6, 0.6},
    {"atanh", CpuOps::float_atanh, std::atanh, 0.6, 0.6},
};

HostHandle floats(const std::vector<float>& values) {
  return host::from_data(TensorData(values, Shape{static_cast<int64_t>(values.size())}), Device());
}

std::vector<float> floats_of(const HostHandle& x) {
  const TensorData data = host::into_data(x);
  const auto values = data.as<float>();
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("Cpu: elementary functions of float stay within their bounds") {
  const std::vector<float> inputs = sample();
  const HostHandle x = floats(inputs);
  at_every_target([&] {
    const bool fused = std::string(cpu::target_name()) != "Scalar";
    for (const Function& f : kFunctions) {
      CAPTURE(f.name);
      const std::vector<float> got = floats_of(f.cpu(x));
      double worst = 0.0;
      float at = 0.0f;
      for (size_t i = 0; i < inputs.size(); ++i) {
        const double error = distance(got[i], f.exact(static_cast<double>(inputs[i])));
        if (!(error <= worst)) {
          worst = error;
          at = inputs[i];
        }
      }
      CAPTURE(at);
      CHECK(worst <= (fused ? f.bound : f.plain));
    }
  });
}

TEST_CASE("Cpu: a function's value does not depend on its neighbours") {
  const std::vector<float> inputs = sample();
  const HostHandle x = floats(inputs);
  at_every_target([&] {
    for (const Function& f : kFunctions) {
      CAPTURE(f.name);
      const std::vector<float> whole = floats_of(f.cpu(x));
      for (size_t i = 0; i < inputs.size(); i += 997) {
        const std::vector<float> alone = floats_of(f.cpu(floats({inputs[i]})));
        CHECK(std::bit_cast<uint32_t>(alone[0]) == std::bit_cast<uint32_t>(whole[i]));
      }
    }
  });
}

TEST_CASE("Cpu: elementary functions of double are libm's") {
  Values random(3);
  std::vector<double> inputs = {0.0, -0.0, 1.0, -1.0, kInfF, -kInfF, kNanF, 1e-310, 1e300, 5e5};
  for (int i = 0; i < 500; ++i) inputs.push_back(random.next() * 30.0);
  const HostHandle x =
      host::from_data(TensorData(inputs, Shape{static_cast<int64_t>(inputs.size())}), Device());
  for (const Function& f : kFunctions) {
    CAPTURE(f.name);
    const std::vector<double> got = values_of(f.cpu(x));
    for (size_t i = 0; i < inputs.size(); ++i) {
      CAPTURE(inputs[i]);
      const double want = f.exact(inputs[i]);
      if (std::isnan(want)) {
        CHECK(std::isnan(got[i]));
      } else if (want != got[i]) {
        CHECK(std::abs(got[i] - want) <= 4e-16 * std::abs(want));
      }
    }
  }
}

TEST_CASE("Cpu: activations and their gradients against double precision") {
  Values random(11);
  std::vector<float> inputs = {0.0f, -0.0f, 30.0f, -30.0f, 90.0f, -90.0f, 1e10f, -1e10f, kNanF};
  std::vector<float> upstream = {1.0f, 1.0f, 1.0f, 1.0f, 2.0f, 2.0f, 1.0f, 1.0f, 1.0f};
  for (int i = 0; i < 20000; ++i) {
    inputs.push_back(static_cast<float>(random.next() * 12.0));
    upstream.push_back(static_cast<float>(random.next()));
  }
  const HostHandle x = floats(inputs);
  const HostHandle g = floats(upstream);
  const HostHandle x64 = CpuOps::float_cast(x, f64);
  const HostHandle g64 = CpuOps::float_cast(g, f64);
  const auto phi = [](double v) { return std::exp(-0.5 * v * v) * 0.39894228040143267794; };
  const auto cdf = [](double v) { return 0.5 * std::erfc(-v * 0.70710678118654752440); };
  const auto u = [](double v) { return 0.79788456080286535588 * (v + 0.044715 * v * v * v); };
  const auto du = [](double v) { return 0.79788456080286535588 * (1.0 + 0.134145 * v * v); };
  const auto check = [&](const HostHandle& got, const HostHandle& got64, auto&& exact,
                         double bound = 5e-7) {
    const std::vector<double> a = values_of(got);
    const std::vector<double> b = values_of(got64);
    for (size_t i = 0; i < a.size(); ++i) {
      const double want = exact(static_cast<double>(inputs[i]), static_cast<double>(upstream[i]));
      CAPTURE(inputs[i]);
      if (std::isnan(want)) {
        CHECK(std::isnan(a[i]));
        CHECK(std::isnan(b[i]));
        continue;
      }
      CHECK(std::abs(a[i] - want) <= bound * std::max(1.0, std::abs(want)));
      CHECK(std::abs(b[i] - want) <= 1e-14 * std::max(1.0, std::abs(want)));
    }
  };
  at_every_target([&] {
    check(CpuOps::float_silu(x), CpuOps::float_silu(x64),
          [](double v, double) { return v * exact_sigmoid(v); });
    check(
        CpuOps::float_gelu(x, false), CpuOps::float_gelu(x64, false),
        [&](double v, double) { return v * cdf(v); }, 1.2e-7);
    check(CpuOps::float_gelu(x, true), CpuOps::float_gelu(x64, true),
          [&](double v, double) { return 0.5 * v * (1.0 + std::tanh(u(v))); });
    check(CpuOps::float_silu_backward(g, x), CpuOps::float_silu_backward(g64, x64),
          [](double v, double d) {
            const double s = exact_sigmoid(v);
            return d * s * (1.0 + v * exact_sigmoid(-v));
          });
    check(
        CpuOps::float_gelu_backward(g, x, false), CpuOps::float_gelu_backward(g64, x64, false),
        [&](double v, double d) { return d * (cdf(v) + v * phi(v)); }, 2.5e-7);
    check(CpuOps::float_gelu_backward(g, x, true), CpuOps::float_gelu_backward(g64, x64, true),
          [&](double v, double d) {
            if (std::abs(v) > 1e3) return v > 0 ? d : 0.0;
            const double t = std::tanh(u(v));
            const double sech2 = 1.0 / (std::cosh(u(v)) * std::cosh(u(v)));
            return d * (0.5 * (1.0 + t) + 0.5 * v * sech2 * du(v));
          });
  });
}

TEST_CASE("Cpu: the functions of functions.h of float stay within their bounds") {
  using U = UnaryFunction::Type;
  struct Range {
    UnaryFunction f;
    double low, high;
    double bound;
    double absolute = 0.0;  // near zeros
  };
  // 0.6 where double precision is rounded once.
  const Range ranges[] = {
      {{U::exp2}, -10, 10, 1.5},
      {{U::exp2}, -150, 128, 1.5},
      {{U::softplus, 1.0, 20.0}, -90, 25, 2.5},
      {{U::softplus, 2.5, 3.0}, -2, 8, 6.0},  // 2.5 x is rounded first
      {{U::log_sigmoid}, -20, 90, 2.5},
      {{U::frexp_mantissa}, -100, 100, 0.0},
      {{U::frexp_exponent}, -100, 100, 0.0},
      {{U::erfc}, -4, 10.2, 0.6},
      {{U::erfcx}, -9, 30, 0.6},
      {{U::erfinv}, -1, 1, 0.6},
      {{U::erfinv}, 0.99, 1, 0.6},
      {{U::ndtr}, -14, 6, 0.6},
      {{U::ndtri}, 0, 1, 0.6},
      {{U::ndtri}, 0, 1e-4, 0.6},
      {{U::ndtri}, 1e-42, 1e-35, 0.6},
      {{U::log_ndtr}, -100, 12, 0.6},
      {{U::logit, -1.0}, 0, 1, 0.6},
      {{U::sinc}, -30, 30, 0.6, 1e-16},
      {{U::sinc, 1.0}, -3, 3, 0.6, 1e-12},
      {{U::lgamma}, -5, 30, 0.6, 1e-12},
      {{U::digamma}, -5, 30, 0.6, 1e-12},
      {{U::polygamma, 1.0}, -5, 30, 0.6},
      {{U::bessel_i0}, -80, 80, 0.6},
      {{U::bessel_i0e}, -80, 80, 0.6},
      {{U::bessel_i1}, -80, 80, 0.6},
      {{U::bessel_i1e}, -80, 80, 0.6},
      {{U::bessel_j0}, -30, 30, 0.6, 1e-12},
      {{U::bessel_j1}, -30, 30, 0.6, 1e-12},
      {{U::bessel_y0}, 0, 30, 0.6, 1e-12},
      {{U::bessel_y1}, 0, 30, 0.6, 1e-12},
      {{U::bessel_j0}, 1e4, 1e8, 0.6, 1e-12},
      {{U::bessel_y1}, 1e4, 1e8, 0.6, 1e-12},
      {{U::bessel_k0}, 0, 80, 0.6},
      {{U::bessel_k1}, 0, 80, 0.6},
      {{U::bessel_k0e}, 0, 80, 0.6},
      {{U::bessel_k1e}, 0, 80, 0.6},
      {{U::airy_ai}, -30, 15, 0.6, 1e-12},
  };
  Values random(13);
  for (const Range& range : ranges) {
    CAPTURE(static_cast<int>(range.f.type));
    std::vector<float> inputs;
    std::vector<double> exact;
    for (int i = 0; i < 3000; ++i) {
      const double at = 0.5 * (random.next() + 1.0);
      inputs.push_back(static_cast<float>(range.low + at * (range.high - range.low)));
      exact.push_back(math::evaluate(range.f, static_cast<double>(inputs.back())));
    }
    const HostHandle x = floats(inputs);
    at_every_target([&] {
      const std::vector<float> got = floats_of(CpuOps::float_unary(x, range.f));
      for (size_t i = 0; i < got.size(); ++i) {
        const double off = std::abs(static_cast<double>(got[i]) - exact[i]);
        if (off <= range.absolute || distance(got[i], exact[i]) <= range.bound) continue;
        CAPTURE(inputs[i]);
        CHECK(static_cast<double>(got[i]) == exact[i]);
      }
      for (size_t i = 0; i < inputs.size(); i += 499) {
        const std::vector<float> alone =
            floats_of(CpuOps::float_unary(floats({inputs[i]}), range.f));
        CHECK(std::bit_cast<uint32_t>(alone[0]) == std::bit_cast<uint32_t>(got[i]));
      }
    });
  }
}

TEST_CASE("Cpu: K and Ai of double are near the reference's") {
  using U = UnaryFunction::Type;
  Values random(17);
  std::vector<double> inputs;
  for (int i = 0; i < 500; ++i) inputs.push_back((random.next() + 1.0) * (i % 2 == 0 ? 1.0 : 15.0));
  const auto count = static_cast<int64_t>(inputs.size());
  const HostHandle x = host::from_data(TensorData(inputs, Shape{count}), Device());
  for (const U type : {U::bessel_k0, U::bessel_k1, U::bessel_k0e, U::bessel_k1e, U::airy_ai}) {
    CAPTURE(static_cast<int>(type));
    at_every_target([&] {
      const std::vector<double> got = values_of(CpuOps::float_unary(x, {type}));
      for (size_t i = 0; i < got.size(); ++i) {
        CAPTURE(inputs[i]);
        const double want = math::evaluate({type}, inputs[i]);
        const double bound = type == U::airy_ai ? 2.2e-15 : 9e-16;
        CHECK(std::abs(got[i] - want) <= bound * std::abs(want));
      }
    });
  }
}

TEST_CASE("Cpu: powers") {
  Values random(5);
  std::vector<float> bases = {0.0f, -0.0f, 1.0f, -1.0f, kInfF, -kInfF, kNanF, 2.0f, -2.0f, 1e-40f};
  std::vector<float> exponents = {0.0f,  -0.0f, 1.0f,  -1.0f, kInfF, -kInfF,
                                  kNanF, 3.0f,  -3.0f, 0.5f,  2.5f,  1e30f};
  for (int i = 0; i < 60; ++i) {
    bases.push_back(static_cast<float>(std::exp(random.next() * 20.0)));
    bases.push_back(static_cast<float>(-std::exp(random.next() * 20.0)));
    exponents.push_back(static_cast<float>(random.next() * 10.0));
  }
  for (int i = -6; i < 7; ++i) exponents.push_back(static_cast<float>(i));
  std::vector<float> a;
  std::vector<float> b;
  for (float base : bases) {
    for (float exponent : exponents) {
      a.push_back(base);
      b.push_back(exponent);
    }
  }
  at_every_target([&] {
    const std::vector<float> got = floats_of(CpuOps::float_pow(floats(a), floats(b)));
    for (size_t i = 0; i < a.size(); ++i) {
      CAPTURE(a[i]);
      CAPTURE(b[i]);
      const double want = std::pow(static_cast<double>(a[i]), static_cast<double>(b[i]));
      CHECK(distance(got[i], want) <= 0.6);
    }
    for (const double exponent : {0.0, 1.0, 2.0, 3.0, -1.0, 0.5, 2.5}) {
      const std::vector<float> powers =
          floats_of(CpuOps::float_pow_scalar(floats(bases), exponent));
      for (size_t i = 0; i < bases.size(); ++i) {
        CAPTURE(bases[i]);
        CAPTURE(exponent);
        CHECK(distance(powers[i], std::pow(static_cast<double>(bases[i]), exponent)) <= 1.5);
      }
    }
  });
}
