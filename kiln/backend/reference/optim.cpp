// Optimizer steps and dropout, element by element: optimizer_formulas.def and ops.def.
#include <algorithm>
#include <array>
#include <cmath>

#include "kiln/backend/random_fill.h"
#include "kiln/backend/reference/elements.h"

namespace kiln {

using reference::finish;
using reference::Ops;
using reference::overwrite;
using reference::read;
using reference::Tensor;

namespace {

// Numbers of the formulas: doubles.
double add(double a, double b) { return a + b; }
double sub(double a, double b) { return a - b; }
double mul(double a, double b) { return a * b; }
double div(double a, double b) { return a / b; }
double scaled(double x, double c) { return c * x; }
double plus(double x, double c) { return x + c; }
double mul_add(double a, double b, double c) { return a * b + c; }
double scaled_add(double a, double c, double b) { return c * a + b; }
double root(double x) { return std::sqrt(x); }
double magnitude(double x) { return std::abs(x); }
double larger(double a, double b) { return a > b || std::isnan(a) ? a : b; }
double nothing(double) { return 0.0; }
double pick(double x, double a, double b) { return x > 0.0 ? a : b; }
double between(double x, double low, double high) { return std::min(std::max(x, low), high); }

#define KILN_FORMULA
#include "kiln/backend/optimizer_formulas.def"
#undef KILN_FORMULA

}  // namespace

void Ops::float_optimizer_step(std::span<HostHandle> params, std::span<const HostHandle> grads,
                               std::span<HostHandle> state, const OptimizerStep& step) {
  const size_t slots = slots_of(step);
  for (size_t i = 0; i < params.size(); ++i) {
    std::vector<double> p = read<double>(params[i]);
    const std::vector<double> g = read<double>(grads[i]);
    std::array<std::vector<double>, 4> s;
    for (size_t k = 0; k < 4; ++k) {
      s[k] = k < slots ? read<double>(state[k * params.size() + i]) : std::vector<double>(p.size());
    }
    std::visit(
        [&]<class Step>(const Step& rule) {
          const Formula<Step> formula(rule);
          for (size_t j = 0; j < p.size(); ++j) {
            formula(p[j], g[j], s[0][j], s[1][j], s[2][j], s[3][j]);
          }
        },
        step);
    overwrite(params[i], p);
    for (size_t k = 0; k < slots; ++k) overwrite(state[k * params.size() + i], s[k]);
  }
}

HostHandle Ops::float_dropout(Tensor x, double p, RandomStream stream) {
  std::vector<double> values = read<double>(x);
  for (size_t i = 0; i < values.size(); ++i) {
    const double draw = uniform_f32(stream.block(i / 4)[i % 4]);
    values[i] = draw >= p ? values[i] / (1.0 - p) : 0.0;
  }
  return finish(x, x->shape(), x->dtype(), values);
}

}  // namespace kiln
