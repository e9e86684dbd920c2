// Optimizer steps and dropout: the formulas of options.h and ops.def, element by element.
#include <algorithm>
#include <cmath>

#include "kiln/backend/random_fill.h"
#include "kiln/backend/reference/elements.h"

namespace kiln {

using reference::finish;
using reference::Ops;
using reference::overwrite;
using reference::read;
using reference::Tensor;

void Ops::float_sgd_step(std::span<HostHandle> params, std::span<const HostHandle> grads,
                         std::span<HostHandle> buffers, const SgdStep& step) {
  for (size_t i = 0; i < params.size(); ++i) {
    std::vector<double> p = read<double>(params[i]);
    std::vector<double> g = read<double>(grads[i]);
    std::vector<double> buffer;
    if (!buffers.empty()) buffer = read<double>(buffers[i]);
    for (size_t j = 0; j < p.size(); ++j) {
      double grad = g[j] + step.weight_decay * p[j];
      if (!buffers.empty()) {
        buffer[j] =
            step.first_step ? grad : step.momentum * buffer[j] + (1.0 - step.dampening) * grad;
        grad = step.nesterov ? grad + step.momentum * buffer[j] : buffer[j];
      }
      p[j] -= step.lr * grad;
    }
    overwrite(params[i], p);
    if (!buffers.empty()) overwrite(buffers[i], buffer);
  }
}

void Ops::float_adam_step(std::span<HostHandle> params, std::span<const HostHandle> grads,
                          std::span<HostHandle> first, std::span<HostHandle> second,
                          std::span<HostHandle> largest, const AdamStep& step) {
  const double correction1 = 1.0 - std::pow(step.beta1, static_cast<double>(step.step));
  const double correction2 = 1.0 - std::pow(step.beta2, static_cast<double>(step.step));
  for (size_t i = 0; i < params.size(); ++i) {
    std::vector<double> p = read<double>(params[i]);
    const std::vector<double> g = read<double>(grads[i]);
    std::vector<double> m = read<double>(first[i]);
    std::vector<double> v = read<double>(second[i]);
    std::vector<double> top;
    if (step.amsgrad) top = read<double>(largest[i]);
    for (size_t j = 0; j < p.size(); ++j) {
      double grad = g[j];
      if (step.decoupled) {
        p[j] *= 1.0 - step.lr * step.weight_decay;
      } else {
        grad += step.weight_decay * p[j];
      }
      m[j] = step.beta1 * m[j] + (1.0 - step.beta1) * grad;
      v[j] = step.beta2 * v[j] + (1.0 - step.beta2) * grad * grad;
      if (step.amsgrad) top[j] = std::max(top[j], v[j]);
      const double second_moment = step.amsgrad ? top[j] : v[j];
      p[j] -= step.lr * (m[j] / correction1) / (std::sqrt(second_moment / correction2) + step.eps);
    }
    overwrite(params[i], p);
    overwrite(first[i], m);
    overwrite(second[i], v);
    if (step.amsgrad) overwrite(largest[i], top);
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
