// Accuracy of Cpu's elementary functions of double against the C library's in long double, at every
// instruction set.
#include <cmath>
#include <limits>

#include "kiln/backend/functions.h"
#include "tests/backend/neural_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

using Wide = long double;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const std::vector<double> kSpecial = {0.0,    -0.0,   1.0,    -1.0,     kInf,   -kInf,  kNan,
                                      5e-324, 1e-310, -1e-20, 1e-8,     0.5,    -0.5,   0.46875,
                                      2.0,    26.5,   709.7,  709.79,   710.4,  -708.5, -744.4,
                                      1e5,    1.6e6,  1e22,   1.79e308, 1e-300, -1e300, 2e154};

// Of numbers spread evenly over [-16, 16], and over the exponents.
std::vector<double> double_sample(int count) {
  std::vector<double> out = kSpecial;
  Values random(5);
  for (int i = 0; i < count; ++i) {
    out.push_back(random.next() * 16.0);
    out.push_back(random.next());
    out.push_back(std::copysign(std::exp2(random.next() * 60.0), random.next()));
  }
  for (int i = 0; i < count / 10; ++i) out.push_back(random.next() * 745.0);
  return out;
}

HostHandle doubles(const std::vector<double>& values) {
  return host::from_data(TensorData(values, Shape{static_cast<int64_t>(values.size())}), Device());
}

// Units in the last place between a double and the exact value.
double double_distance(double got, Wide want) {
  const auto rounded = static_cast<double>(want);
  if (std::isnan(got) || std::isnan(want)) {
    return std::isnan(got) && std::isnan(want) ? 0.0 : kInf;
  }
  if (got == rounded) return std::signbit(got) == std::signbit(rounded) ? 0.0 : kInf;
  // The last double may stand in for an infinity that is hardly past it.
  constexpr double largest = std::numeric_limits<double>::max();
  if (std::isinf(got) || std::isinf(rounded)) {
    return std::abs(got) >= largest && std::abs(rounded) >= largest ? 1.0 : kInf;
  }
  int exponent = 0;
  std::frexp(rounded, &exponent);
  const Wide unit = std::ldexp(Wide(1), std::max(exponent - 53, -1074));
  return static_cast<double>(std::abs(got - want) / unit);
}

Wide wide_sigmoid(Wide x) { return 1 / (1 + std::exp(-x)); }
HostHandle exp2_of(Arg<HostHandle> x) {
  return CpuOps::float_unary(std::move(x), UnaryFunction(UnaryFunction::Type::exp2));
}
HostHandle erfc_of(Arg<HostHandle> x) {
  return CpuOps::float_unary(std::move(x), UnaryFunction(UnaryFunction::Type::erfc));
}
HostHandle hypot_of(Arg<HostHandle> x, Arg<HostHandle> y) {
  return CpuOps::float_binary(std::move(x), std::move(y),
                              BinaryFunction(BinaryFunction::Type::hypot));
}

struct DoubleFunction {
  const char* name;
  HostHandle (*cpu)(Arg<HostHandle>);
  Wide (*exact)(Wide);
  double bound;
};
const DoubleFunction kDoubleFunctions[] = {
    {"exp", CpuOps::float_exp, std::exp, 1.0},
    {"exp2", exp2_of, std::exp2, 1.0},
    {"expm1", CpuOps::float_expm1, std::expm1, 1.2},
    {"log", CpuOps::float_log, std::log, 1.0},
    {"log1p", CpuOps::float_log1p, std::log1p, 1.0},
    {"log2", CpuOps::float_log2, std::log2, 1.0},
    {"log10", CpuOps::float_log10, std::log10, 1.0},
    {"sigmoid", CpuOps::float_sigmoid, wide_sigmoid, 2.2},
    {"tanh", CpuOps::float_tanh, std::tanh, 2.2},
    {"sinh", CpuOps::float_sinh, std::sinh, 2.0},
    {"cosh", CpuOps::float_cosh, std::cosh, 1.5},
    {"asinh", CpuOps::float_asinh, std::asinh, 2.0},
    {"acosh", CpuOps::float_acosh, std::acosh, 2.2},
    {"atanh", CpuOps::float_atanh, std::atanh, 2.0},
    {"erf", CpuOps::float_erf, std::erf, 1.7},
    {"erfc", erfc_of, std::erfc, 2.2},
    {"sin", CpuOps::float_sin, std::sin, 1.0},
    {"cos", CpuOps::float_cos, std::cos, 1.0},
    {"tan", CpuOps::float_tan, std::tan, 2.2},
    {"asin", CpuOps::float_asin, std::asin, 1.0},
    {"acos", CpuOps::float_acos, std::acos, 1.0},
    {"atan", CpuOps::float_atan, std::atan, 1.0},
};

struct DoubleFunctionOfTwo {
  const char* name;
  HostHandle (*cpu)(Arg<HostHandle>, Arg<HostHandle>);
  Wide (*exact)(Wide, Wide);
  double bound;
};
const DoubleFunctionOfTwo kDoubleFunctionsOfTwo[] = {
    {"pow", CpuOps::float_pow, std::pow, 1.0},
    {"atan2", CpuOps::float_atan2, std::atan2, 1.6},
    {"hypot", hypot_of, std::hypot, 1.3},
};

}  // namespace

TEST_CASE("Cpu: elementary functions of double stay within their bounds") {
  const std::vector<double> inputs = double_sample(20000);
  const HostHandle x = doubles(inputs);
  at_every_target([&] {
    for (const DoubleFunction& f : kDoubleFunctions) {
      CAPTURE(f.name);
      const std::vector<double> got = values_of(f.cpu(x));
      double worst = 0.0, at = 0.0;
      for (size_t i = 0; i < inputs.size(); ++i) {
        const double error = double_distance(got[i], f.exact(inputs[i]));
        if (error > worst) {
          worst = error;
          at = inputs[i];
        }
      }
      CAPTURE(at);
      CHECK(worst <= f.bound);
    }
  });
}

TEST_CASE("Cpu: functions of two doubles stay within their bounds") {
  std::vector<double> first, second;
  for (double a : kSpecial) {
    for (double b : kSpecial) {
      first.push_back(a);
      second.push_back(b);
    }
  }
  const std::vector<double> sample = double_sample(10000);
  for (size_t i = 0; i < sample.size(); ++i) {
    first.push_back(i % 3 == 0 ? std::abs(sample[i]) : sample[i]);
    second.push_back(sample[sample.size() - 1 - i]);
    if (i % 2 == 0) {
      first.push_back(std::abs(sample[i]));
      second.push_back(std::round(sample[(i * 7) % sample.size()]));
    }
  }
  const HostHandle x = doubles(first), y = doubles(second);
  at_every_target([&] {
    for (const DoubleFunctionOfTwo& f : kDoubleFunctionsOfTwo) {
      CAPTURE(f.name);
      const std::vector<double> got = values_of(f.cpu(x, y));
      double worst = 0.0, a = 0.0, b = 0.0;
      for (size_t i = 0; i < first.size(); ++i) {
        const double error = double_distance(got[i], f.exact(first[i], second[i]));
        if (error > worst) {
          worst = error;
          a = first[i];
          b = second[i];
        }
      }
      CAPTURE(a);
      CAPTURE(b);
      CHECK(worst <= f.bound);
    }
  });
}

TEST_CASE("Cpu: activations, losses and their gradients of double against wider numbers") {
  Values random(7);
  std::vector<double> g{1, 1, 1, 1, 2, 1, 1, 1, -1},
      x{0, -0.0, 30, -30, 90, -800, 1e10, -1e10, kNan}, y{0, 1, 0.5, 0.25, 1, 0, 1, 0, 1};
  for (int i = 0; i < 5000; ++i) {
    g.push_back(random.next() * 3.0);
    x.push_back(random.next() * (i % 2 == 0 ? 40.0 : 1.0));
    y.push_back(std::abs(random.next()));
  }
  const HostHandle hg = doubles(g), hx = doubles(x), hy = doubles(y);
  // Within so many roundings of the value.
  const auto check = [&](const char* name, const HostHandle& got, auto exact) {
    CAPTURE(name);
    const std::vector<double> values = values_of(got);
    double worst = 0.0;
    for (size_t i = 0; i < x.size(); ++i) {
      const Wide want = exact(Wide(g[i]), Wide(x[i]), Wide(y[i]));
      if (std::isnan(want)) {
        if (!std::isnan(values[i])) worst = kInf;
        continue;
      }
      const double scale = std::max({static_cast<double>(std::abs(want)), 1e-300});
      worst = std::max(worst, static_cast<double>(std::abs(values[i] - want)) / scale);
    }
    CHECK(worst <= 16 * 0x1p-53);
  };
  const auto of_two = [](BinaryFunction f, const HostHandle& a, const HostHandle& b) {
    return CpuOps::float_binary(a, b, f);
  };
  using U = UnaryFunction::Type;
  using B = BinaryFunction::Type;
  using W = TernaryFunction::Type;
  const auto log_sum = [](Wide size) { return std::log1p(std::exp(-size)); };
  at_every_target([&] {
    check("softplus", CpuOps::float_unary(hx, UnaryFunction{U::softplus, 1.0, 1e300}),
          [&](Wide, Wide v, Wide) { return std::max(v, Wide(0)) + log_sum(std::abs(v)) + 0 * v; });
    check("log_sigmoid", CpuOps::float_unary(hx, UnaryFunction{U::log_sigmoid}),
          [&](Wide, Wide v, Wide) { return std::min(v, Wide(0)) - log_sum(std::abs(v)) + 0 * v; });
    check("glu", of_two({B::glu}, hg, hx),
          [](Wide d, Wide v, Wide) { return d * wide_sigmoid(v); });
    check("bce_with_logits",
          of_two({B::bce_with_logits}, hx, doubles(std::vector<double>(x.size()))),
          [&](Wide, Wide v, Wide) { return std::max(v, Wide(0)) + log_sum(std::abs(v)) + 0 * v; });
    check("elu_backward", of_two({B::elu_backward, 1.5, 0.5, 2.0}, hg, hx),
          [](Wide d, Wide v, Wide) { return d * (v > 0 ? 2 : 1.5L * std::exp(v * 0.5L)); });
    check("softplus_backward", of_two({B::softplus_backward, 2.0, 20.0}, hg, hx),
          [](Wide d, Wide v, Wide) { return 2 * v > 20 ? d : d * wide_sigmoid(2 * v); });
    check("glu_backward", CpuOps::float_ternary(hg, hy, hx, TernaryFunction{W::glu_backward}),
          [](Wide d, Wide v, Wide t) { return d * t * wide_sigmoid(v) * wide_sigmoid(-v); });
    check("prelu_backward", CpuOps::float_ternary(hg, hx, hy, TernaryFunction{W::prelu_backward}),
          [](Wide d, Wide v, Wide t) { return v > 0 ? d : t * d; });
    check("huber_backward",
          CpuOps::float_ternary(hg, hx, hy, TernaryFunction{W::huber_backward, 2.0, 4.0}),
          [](Wide d, Wide v, Wide t) {
            return std::isnan(v)
                       ? v
                       : d * Wide(double(std::clamp(double(v) - double(t), -2.0, 2.0))) / 4;
          });
    check("bce_with_logits_backward",
          CpuOps::float_ternary(hg, hx, doubles(std::vector<double>(x.size(), 0.0)),
                                TernaryFunction{W::bce_with_logits_backward}),
          [](Wide d, Wide v, Wide) { return d * wide_sigmoid(v); });
    check("logaddexp2", of_two({B::logaddexp2}, hx, doubles(std::vector<double>(x.size(), 0.0))),
          [](Wide, Wide v, Wide) {
            return std::max(v, Wide(0)) + std::log1p(std::exp2(-std::abs(v))) / std::log(Wide(2)) +
                   0 * v;
          });
  });
}

TEST_CASE("Cpu: a function's value of a double does not depend on its neighbours") {
  const std::vector<double> inputs = double_sample(200);
  const HostHandle x = doubles(inputs);
  at_every_target([&] {
    for (const DoubleFunction& f : kDoubleFunctions) {
      CAPTURE(f.name);
      const std::vector<double> whole = values_of(f.cpu(x));
      for (size_t i = 0; i < inputs.size(); i += 7) {
        const double alone = values_of(f.cpu(doubles({inputs[i]})))[0];
        CHECK((alone == whole[i] || (std::isnan(alone) && std::isnan(whole[i]))));
      }
    }
  });
}

TEST_CASE("Cpu: the whole part of a quotient by one number is exact") {
  std::vector<float> numbers, want;
  const float divisors[] = {3.0f, -3.0f, 0.1f, -7.5f, 1e-20f, 0.99999994f, 1e30f, 1e-40f, 0.0f};
  Values random(9);
  for (int i = 0; i < 3000; ++i) {
    numbers.push_back(static_cast<float>(random.next() * 50.0));
    numbers.push_back(static_cast<float>(random.next_int(200) - 100));
    numbers.push_back(static_cast<float>(std::exp2(random.next() * 100.0)));
  }
  numbers.insert(numbers.end(), {INFINITY, -INFINITY, NAN, 0.0f, -0.0f});
  const HostHandle x =
      host::from_data(TensorData(numbers, Shape{static_cast<int64_t>(numbers.size())}), Device());
  at_every_target([&] {
    for (float divisor : divisors) {
      CAPTURE(divisor);
      for (int multiple = 0; multiple < 2; ++multiple) {
        const HostHandle y =
            host::from_data(TensorData(std::vector<float>{divisor}, Shape{1}), Device());
        const HostHandle wide = host::expand(y, x->shape());
        // Multiples of the divisor, rounded, are the hard ones.
        const HostHandle a = multiple == 1 ? CpuOps::float_mul(x, wide) : x;
        const std::vector<double> from = values_of(a);
        const std::vector<double> got = values_of(
            CpuOps::float_binary(a, wide, BinaryFunction(BinaryFunction::Type::trunc_divide)));
        int wrong = 0;
        for (size_t i = 0; i < got.size(); ++i) {
          const auto exact = static_cast<float>(std::trunc(from[i] / static_cast<double>(divisor)));
          const auto value = static_cast<float>(got[i]);
          wrong += std::isnan(exact) ? !std::isnan(value)
                                     : value != exact || std::signbit(value) != std::signbit(exact);
        }
        CHECK(wrong == 0);
      }
    }
  });
}
