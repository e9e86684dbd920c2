#include "kiln/distributions/standard_gamma.h"

#include <array>
#include <cmath>
#include <numbers>

#include "kiln/distributions/support.h"
#include "kiln/tensor/autograd/custom_function.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/special.h"
#include "kiln/tensor/index/advanced_index.h"
#include "kiln/tensor/index/scatter.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/shape/rearranging.h"

namespace kiln::distributions {

namespace {

// Where the integrand below is cut off: e^-40 is less than the rounding of f64.
constexpr double kCut = 40.0;
// Below, a power series converges in few terms; above, the integrand is smooth.
constexpr double kSmall = 2.0;
constexpr int kTerms = 40;
constexpr int kNodes = 48;

struct Node {
  double place, weight;
};

// The Gauss-Legendre rule on [0, 1]: the roots of the Legendre polynomial by Newton's method.
std::array<Node, kNodes> gauss_legendre() {
  std::array<Node, kNodes> nodes;
  for (int i = 0; i < kNodes; ++i) {
    double x = std::cos(std::numbers::pi * (i + 0.75) / (kNodes + 0.5)), slope = 1.0;
    for (int step = 0; step < 8; ++step) {
      double before = 1.0, now = x;
      for (int k = 2; k <= kNodes; ++k) {
        const double next = ((2 * k - 1) * x * now - (k - 1) * before) / k;
        before = now;
        now = next;
      }
      slope = kNodes * (x * now - before) / (x * x - 1);
      x -= now / slope;
    }
    nodes[static_cast<size_t>(i)] = {(1 + x) / 2, 1 / ((1 - x * x) * slope * slope)};
  }
  return nodes;
}

// (dx/da) / x at constant P(a, x), for x <= 2, by the series
// P(a, x) = x^a e^-x / G(a + 1) sum_n x^n / ((a + 1) .. (a + n)).
Tensor slope_by_series(const Tensor& a, const Tensor& x, const Tensor& log_x) {
  Tensor term = ones_like(a), harmonic = zeros_like(a), total = ones_like(a), slope = zeros_like(a);
  for (int n = 1; n < kTerms; ++n) {
    term = term * x / (a + n);
    harmonic = harmonic + 1 / (a + n);
    total = total + term;
    slope = slope - term * harmonic;
  }
  return -((log_x - digamma(a + 1)) * total + slope) / a;
}

// The same for x > 2, by the integral of dp/da over one side of x. With t = x e^(+-s) the integrand
// falls from 1 as exp(-phi(s)), where phi is convex. Left of a the side from 0 to x is taken, right
// of it the other one, whose integral is the negative.
Tensor slope_by_integral(const Tensor& a, const Tensor& x, const Tensor& log_x) {
  const Tensor right = x > a;
  const Tensor sign = where(right, ones_like(a), -1.0);
  const Tensor gap = (x - a).abs();
  // x e^s - a s without the parts that cancel.
  const auto phi = [&](const Tensor& s) { return gap * s + x * ((sign * s).expm1() - sign * s); };

  // The end: phi(end) = kCut. Newton's method comes from the right, since phi is convex.
  Tensor end = minimum(kCut / gap, (2 * kCut / x).sqrt() + where(right, 0.0, kCut / a));
  for (int i = 0; i < 6; ++i) {
    const Tensor slope = gap + x * sign * (sign * end).expm1();
    end = (end - (phi(end) - kCut) / slope).abs();
  }
  static const std::array<Node, kNodes> nodes = gauss_legendre();
  const Tensor level = log_x - digamma(a);
  Tensor total = zeros_like(a);
  for (const auto& [place, weight] : nodes) {
    const Tensor s = end * place;
    total = total + weight * (-phi(s)).exp() * (level + sign * s);
  }
  return sign * total * end;
}

// (dx/da) / x at constant P(a, x): -(dP/da) / (x p(x; a)). Both f64.
Tensor relative_slope(const Tensor& a, const Tensor& log_x) {
  const Tensor x = log_x.exp();
  const Tensor small = x <= kSmall;
  // Each formula gets harmless numbers where the other one holds.
  Tensor series =
      slope_by_series(where(small, a, 1.0), where(small, x, 1.0), where(small, log_x, 0.0));
  if (small.all().item<bool>()) return series;
  const Tensor integral = slope_by_integral(where(small, 4.0, a), where(small, 4.0, x),
                                            where(small, std::log(4.0), log_x));
  return where(small, series, integral);
}

// Logs of draws for a flat f64 tensor of concentrations. Those below 1 are raised by 1, and the
// draw is multiplied by u^(1 / a); in logs this cannot underflow.
Tensor draw_logs(const Tensor& a) {
  const Tensor raised = a < 1;
  const Tensor d = where(raised, a + 1, a) - 1.0 / 3;
  Tensor result = a.log();  // of what is no concentration (0, inf, NaN): the limit
  Tensor pending = nonzero(a.isfinite() & (a > 0)).select(1, 0);
  while (pending.numel() > 0) {
    const Tensor d_now = d.index_select(0, pending);
    const Tensor normal = normal_numbers(d_now.shape(), a);
    const Tensor uniform = 1 - uniform_numbers(d_now.shape(), a);
    const Tensor cube = (1 + normal / (9 * d_now).sqrt()).pow(3);
    const Tensor log_cube = cube.clamp(1e-300).log();
    const Tensor bound = 0.5 * normal * normal + d_now * (1 - cube + log_cube);
    const Tensor accepted = (cube > 0) & (uniform.log() < bound);
    result = index_copy(result, 0, masked_select(pending, accepted),
                        masked_select(d_now.log() + log_cube, accepted));
    pending = masked_select(pending, !accepted);
  }
  const Tensor uniform = 1 - uniform_numbers(a.shape(), a);
  return where(raised & (a > 0), result + uniform.log() / a, result);
}

// f() as a tensor whose derivative is refused: `inputs` are what it depends on.
Tensor without_second_derivative(const TensorList& inputs, const std::function<Tensor()>& f) {
  return call_function(
      "GammaGradient", inputs, [&](FunctionContext&, const TensorList&) { return TensorList{f()}; },
      [](FunctionContext&, const TensorList&) -> TensorList {
        throw_error<AutodiffError>(
            "backward: draws of gamma distributions, and their cdf by its concentration, have no "
            "second derivative");
      })[0];
}

struct LogStandardGamma : Function<LogStandardGamma> {
  static Tensor forward(FunctionContext& ctx, const Tensor& a) {
    Tensor logs = draw_logs(a.reshape({-1})).reshape(a.shape());
    ctx.save_for_backward({a, logs});
    return logs;
  }
  static TensorList backward(FunctionContext& ctx, const TensorList& grads) {
    const TensorList saved = ctx.saved_tensors();
    return {without_second_derivative({grads[0], saved[0], saved[1]}, [&] {
      return grads[0] * relative_slope(saved[0], saved[1]);
    })};
  }
};

struct GammaIncOfBoth : Function<GammaIncOfBoth> {
  static Tensor forward(FunctionContext& ctx, const Tensor& a, const Tensor& x) {
    ctx.save_for_backward({a, x});
    return special::gammainc(a, x);
  }
  static TensorList backward(FunctionContext& ctx, const TensorList& grads) {
    const TensorList saved = ctx.saved_tensors();
    const Tensor &a = saved[0], &x = saved[1];
    // x p(x; a)
    const auto mass = [&](const Tensor& log_x) {
      return (a.to(f64) * log_x - x.to(f64) - lgamma(a.to(f64))).exp();
    };
    Tensor by_a, by_x;
    if (ctx.needs_input_grad(0)) {
      by_a = without_second_derivative({grads[0], a, x}, [&] {
        const Tensor log_x = x.to(f64).log();
        const Tensor slope = -relative_slope(a.to(f64), log_x) * mass(log_x);
        return grads[0] * where(x > 0, slope, 0.0).to(a.dtype());
      });
    }
    if (ctx.needs_input_grad(1)) {
      const Tensor inner = where(x > 0, x, 1.0).to(f64);
      by_x = grads[0] * where(x > 0, mass(inner.log()) / inner, 0.0).to(x.dtype());
    }
    return {by_a, by_x};
  }
};

}  // namespace

Tensor log_standard_gamma(const Tensor& concentration) {
  return LogStandardGamma::apply(concentration.to(f64));
}

Tensor standard_gamma(const Tensor& concentration) {
  const Tensor draws = log_standard_gamma(concentration).exp().to(concentration.dtype());
  return draws.clamp(smallest_of(draws.dtype()));
}

Tensor gammainc_of_both(const Tensor& a, const Tensor& x) {
  const std::vector<Tensor> same = broadcast_tensors({a, x});
  return GammaIncOfBoth::apply(same[0], same[1]);
}

}  // namespace kiln::distributions
