// Optimizer steps and dropout, element by element: optimizer_formulas.def and ops.def.
#include <algorithm>
#include <array>
#include <cmath>

#include "kiln/backend/dynamic_code.h"
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

namespace {

// Numbers in place of the codes of a tensor, block by block.
std::vector<double> decoded(const Tensor& codes, const Tensor& largest, const DynamicCode& code,
                            int64_t block) {
  const std::vector<int64_t> at = read<int64_t>(codes);
  const std::vector<double> scales = read<double>(largest);
  std::vector<double> out(at.size());
  for (size_t i = 0; i < out.size(); ++i) {
    const double number = code.numbers[static_cast<size_t>(at[i])];
    out[i] = number * scales[i / static_cast<size_t>(block)];
  }
  return out;
}

void encode(const std::vector<double>& x, const Tensor& codes, const Tensor& largest,
            const DynamicCode& code, int64_t block) {
  std::vector<double> scales(static_cast<size_t>(largest->numel()), 0.0);
  const auto scale_of = [&](size_t i) -> double& { return scales[i / static_cast<size_t>(block)]; };
  for (size_t i = 0; i < x.size(); ++i) scale_of(i) = larger(std::abs(x[i]), scale_of(i));
  std::vector<int64_t> found(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double share = scale_of(i) > 0.0 ? x[i] / scale_of(i) : x[i];
    found[i] = code.code_of(static_cast<float>(share));
  }
  overwrite(codes.get(), found);
  overwrite(largest.get(), scales);
}

}  // namespace

void Ops::float_adamw_8bit(Tensor param, Tensor grad, Tensor codes1, Tensor largest1, Tensor codes2,
                           Tensor largest2, const AdamW8bitStep& step) {
  std::vector<double> p = read<double>(param);
  const std::vector<double> g = read<double>(grad);
  std::vector<double> m = decoded(codes1, largest1, dynamic_code(true), step.block);
  std::vector<double> v = decoded(codes2, largest2, dynamic_code(false), step.block);
  const Formula<AdamStep> formula(step.adam());
  double none = 0.0;
  for (size_t i = 0; i < p.size(); ++i) formula(p[i], g[i], m[i], v[i], none, none);
  overwrite(param.get(), p);
  encode(m, codes1, largest1, dynamic_code(true), step.block);
  encode(v, codes2, largest2, dynamic_code(false), step.block);
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
