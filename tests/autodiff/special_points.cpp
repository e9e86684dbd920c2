// Second derivatives where formulas like to divide 0 by 0: wherever differences of the function say
// that there is one, autodiff gives it. Every row of functions.def, at points around 0 and 1.
#include <cmath>
#include <functional>

#include <doctest/doctest.h>

#include "kiln/kiln.h"
#include "kiln/tensor/tensor_impl.h"

using namespace kiln;

namespace {

using Numbers = std::vector<double>;
using Tensors = std::vector<Tensor>;
using OfTensors = std::function<Tensor(const Tensors&)>;

Tensors leaves(const Numbers& at) {
  Tensors out;
  for (const double x : at) out.push_back(full({1}, x, {.dtype = f64, .requires_grad = true}));
  return out;
}

double value(const OfTensors& f, Numbers at, size_t i, double a, size_t j, double b) {
  at[i] += a;
  at[j] += b;
  NoGradGuard guard;
  return f(leaves(at)).item();
}

bool near(double a, double b) { return std::abs(a - b) <= 2e-2 * (1.0 + std::abs(a)); }

// The second derivative with respect to i and j by differences to every side; NaN where they
// disagree: there is no limit.
double by_differences(const OfTensors& f, const Numbers& at, size_t i, size_t j) {
  constexpr double kStep = 1e-3;
  std::vector<double> found;
  for (const double h : {kStep, -kStep, 0.5 * kStep, -0.5 * kStep}) {
    for (const double k : {h, -h}) {
      const double both = value(f, at, i, h, j, k), one = value(f, at, i, h, j, 0),
                   other = value(f, at, i, 0, j, k), none = value(f, at, i, 0, j, 0);
      found.push_back((both - one - other + none) / (h * k));
    }
  }
  for (const double x : found) {
    if (!std::isfinite(x) || !near(found[0], x)) return NAN;
  }
  return found.back();
}

// Throws NotImplementedError for what has no derivative.
double by_autodiff(const OfTensors& f, const Numbers& at, size_t i, size_t j) {
  const Tensors x = leaves(at);
  const Tensor y = f(x);
  const auto slope = [](const Tensor& of, const Tensor& to, bool again) -> Tensor {
    if (!of.requires_grad()) return zeros_like(to);
    const Tensor found = grad(std::span(&of, 1), std::span(&to, 1),
                              {.create_graph = again, .allow_unused = true})[0];
    return found.defined() ? found : zeros_like(to);
  };
  return slope(slope(y, x[i], true), x[j], false).item();
}

int checked = 0;

void check(const std::string& name, const OfTensors& f, const Numbers& at) {
  for (size_t i = 0; i < at.size(); ++i) {
    for (size_t j = 0; j < at.size(); ++j) {
      const double want = by_differences(f, at, i, j);
      if (std::isnan(want)) continue;
      CAPTURE(name);
      CAPTURE(at[0]);
      CAPTURE(at.back());
      double got = 0.0;
      try {
        got = by_autodiff(f, at, i, j);
      } catch (const Error&) {
        continue;
      }
      ++checked;
      if (!near(got, want)) {
        FAIL_CHECK("derivative by ", i, " and ", j, " is ", got, "; expected ", want);
      }
    }
  }
}

const Numbers kPoints = {0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, -3.0};

using AD = Autodiff<Dispatch>;

OfTensors unary(UnaryFunction f) {
  return [f](const Tensors& x) {
    return detail::wrap(AD::float_unary(detail::value_of("test", x[0]), f));
  };
}

// Of functions with numbers beside the operand: some that make sense.
UnaryFunction with_numbers(UnaryFunction::Type type) {
  using enum UnaryFunction::Type;
  switch (type) {
    case polygamma:
    case bessel_j_over:
    case bessel_i_over:
      return {type, 1.0};
    case logit:
      return {type, -1.0};
    case softplus:
      return {type, 1.5, 20.0};
    case leaky_relu:
      return {type, 0.25};
    case threshold:
      return {type, 0.25, -1.0};
    case hardtanh:
      return {type, -1.0, 1.0};
    case hardshrink:
    case softshrink:
      return {type, 0.5};
    case elu:
      return {type, 1.0, 1.0, 1.0};
    default:
      return {type};
  }
}

}  // namespace

TEST_CASE("second derivatives at special points: functions of one number") {
  checked = 0;
  for (const double at : kPoints) {
#define KILN_UNARY(name, group, doc) \
  check(#name, [](const Tensors& x) { return kiln::name(x[0]); }, {at});
#define KILN_UNARY_FUNCTION(type, ...) \
  check(#type, unary(with_numbers(UnaryFunction::Type::type)), {at});
#include "kiln/backend/functions.def"
    check("sinc, second derivative", unary({UnaryFunction::Type::sinc, 2.0}), {at});
    check("bessel_j_over, 2", unary({UnaryFunction::Type::bessel_j_over, 2.0}), {at});
    check("bessel_i_over, scaled", unary({UnaryFunction::Type::bessel_i_over, 2.0, 1.0}), {at});
    for (const double n : {0.0, 1.0, 2.0, 3.0, 2.5, -1.0}) {
      check("pow", [n](const Tensors& x) { return pow(x[0], n); }, {at});
    }
  }
  CHECK(checked > 300);
}

TEST_CASE("second derivatives at special points: functions of two numbers") {
  checked = 0;
  for (const double a : kPoints) {
    for (const double b : kPoints) {
#define KILN_BINARY_FUNCTION(type, node, memory, doc, ...)                                 \
  if (doc[0] != '\0') {                                                                    \
    check(#type,                                                                           \
          [](const Tensors& x) {                                                           \
            return detail::wrap(AD::float_binary(detail::value_of("test", x[0]),           \
                                                 detail::value_of("test", x[1]),           \
                                                 {BinaryFunction::Type::type, 1.0, 1.0})); \
          },                                                                               \
          {a, b});                                                                         \
  }
#include "kiln/backend/functions.def"
      check("pow", [](const Tensors& x) { return pow(x[0], x[1]); }, {a, b});
      check("atan2", [](const Tensors& x) { return atan2(x[0], x[1]); }, {a, b});
    }
  }
  CHECK(checked > 300);
}

TEST_CASE("derivatives of Bessel functions at 0") {
  // From the power series: the k-th derivative is k! times the coefficient of x^k.
  struct Known {
    const char* name;
    OfTensors f;
    Numbers derivatives;  // the value first
  };
  const Known all[] = {
      {"j0", [](const Tensors& x) { return special::bessel_j0(x[0]); }, {1, 0, -0.5, 0, 0.375}},
      {"j1", [](const Tensors& x) { return special::bessel_j1(x[0]); }, {0, 0.5, 0, -0.375, 0}},
      {"i0", [](const Tensors& x) { return special::i0(x[0]); }, {1, 0, 0.5, 0, 0.375}},
      {"i1", [](const Tensors& x) { return special::i1(x[0]); }, {0, 0.5, 0, 0.375, 0}},
      {"sinc",
       [](const Tensors& x) { return sinc(x[0]); },
       {1, 0, -std::pow(M_PI, 2) / 3, 0, std::pow(M_PI, 4) / 5}}};
  for (const Known& known : all) {
    const Tensors x = leaves({0.0});
    Tensor y = known.f(x);
    for (size_t order = 0; order < known.derivatives.size(); ++order) {
      CAPTURE(known.name);
      CAPTURE(order);
      CHECK(y.item() == doctest::Approx(known.derivatives[order]).epsilon(1e-12));
      y = grad(std::span(&y, 1), x, {.create_graph = true})[0];
    }
  }
}

TEST_CASE("derivatives of incomplete gamma functions at the edge of their domain") {
  // P(1, y) = 1 - e^-y;  P(2, y) = 1 - (1 + y) e^-y;  P(3, y)'s derivative is y^2 e^-y / 2.
  const std::pair<double, Numbers> all[] = {
      {1.0, {0, 1, -1, 1}}, {2.0, {0, 0, 1, -2}}, {3.0, {0, 0, 0, 1}}};
  for (const auto& [order, derivatives] : all) {
    CAPTURE(order);
    const Tensor a = full({1}, order, {.dtype = f64});
    const Tensors x = leaves({0.0});
    Tensor lower = special::gammainc(a, x[0]);
    Tensor upper = special::gammaincc(a, x[0]);
    for (size_t k = 0; k < derivatives.size(); ++k) {
      CAPTURE(k);
      CHECK(lower.item() == doctest::Approx(derivatives[k]));
      CHECK(upper.item() == doctest::Approx(k == 0 ? 1 - derivatives[k] : -derivatives[k]));
      lower = grad(std::span(&lower, 1), x, {.create_graph = true})[0];
      upper = grad(std::span(&upper, 1), x, {.create_graph = true})[0];
    }
  }
  // Still finite where powers overflow in f32.
  const Tensor y = full({1}, 60.0, {.dtype = f32, .requires_grad = true});
  const Tensor p = special::gammainc(full({1}, 50.0), y);
  CHECK(std::isfinite(grad(std::span(&p, 1), std::span(&y, 1))[0].item()));
}
