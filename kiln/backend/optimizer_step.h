// One step of an optimizer over many parameters, by rule: what the op float_optimizer_step takes.
//
// p is a parameter, g its gradient, t the number of the step (1 at first), and "decay" stands for
//   decoupled ? p *= 1 - lr weight_decay : g += weight_decay p.
// Each rule names its slots: the tensors of state that a parameter has, in their order.
// optimizer_formulas.def has the arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <variant>

namespace kiln {

// Stochastic gradient descent:
//   g += weight_decay p;  buf = momentum buf + (1 - dampening) g  (buf = g on the first step);
//   g = nesterov ? g + momentum buf : buf;  p -= lr g.
// Slots: buf, with momentum.
struct SgdStep {
  double lr = 0.0;
  double momentum = 0.0;
  double dampening = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;
  bool first_step = false;
  size_t slots() const { return momentum != 0.0 ? 1 : 0; }
};

// Adam (Kingma & Ba, 2015) or, with `decoupled`, AdamW (Loshchilov & Hutter, 2019):
//   decay;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
//   p -= lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps); amsgrad takes the largest v.
// `cautious` decays, decoupled, only what the step moves toward 0 (Cautious Weight Decay, Chen et
// al., 2025). Slots: m, v and, with amsgrad, the largest v.
struct AdamStep {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
  bool decoupled = false;
  bool amsgrad = false;
  int64_t step = 1;
  bool cautious = false;
  size_t slots() const { return amsgrad ? 3 : 2; }
};

// Adagrad (Duchi et al., 2011): decay;  sum += g^2;
//   p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(sum) + eps).
// Slots: sum.
struct AdagradStep {
  double lr = 1e-2;
  double lr_decay = 0.0;
  double weight_decay = 0.0;
  double eps = 1e-10;
  int64_t step = 1;
  size_t slots() const { return 1; }
};

// Adadelta (Zeiler, 2012): decay;  v = rho v + (1 - rho) g^2;
//   d = sqrt(u + eps) / sqrt(v + eps) g;  u = rho u + (1 - rho) d^2;  p -= lr d.
// Slots: v, u.
struct AdadeltaStep {
  double lr = 1.0;
  double rho = 0.9;
  double eps = 1e-6;
  double weight_decay = 0.0;
  size_t slots() const { return 2; }
};

// RMSprop (Hinton, 2012), centered as in Graves (2013): decay;  v = alpha v + (1 - alpha) g^2;
//   d = sqrt(centered ? v - mean^2 : v) + eps, where mean = alpha mean + (1 - alpha) g;
//   with momentum, buf = momentum buf + g / d and p -= lr buf; without, p -= lr g / d.
// Slots: v, with momentum buf, centered mean.
struct RMSpropStep {
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0.0;
  double momentum = 0.0;
  bool centered = false;
  size_t slots() const { return 1 + (momentum != 0.0 ? 1 : 0) + (centered ? 1 : 0); }
};

// Adamax (Kingma & Ba, 2015): decay;  m = beta1 m + (1 - beta1) g;  u = max(beta2 u, |g| + eps);
//   p -= lr / (1 - beta1^t) m / u.
// Slots: m, u.
struct AdamaxStep {
  double lr = 2e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
  int64_t step = 1;
  size_t slots() const { return 2; }
};

// NAdam (Dozat, 2016): decay;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
//   p -= lr ((1 - mu) / (1 - product) g + mu_next / (1 - product mu_next) m)
//        / (sqrt(v / (1 - beta2^t)) + eps).
// mu and mu_next are the momenta of this step and the next, product that of all up to this one.
// Slots: m, v.
struct NAdamStep {
  double lr = 2e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
  bool decoupled = false;
  double mu = 0.0;
  double mu_next = 0.0;
  double product = 0.0;
  int64_t step = 1;
  size_t slots() const { return 2; }
};

// RAdam (Liu et al., 2020): decay;  m and v as in Adam;  rho_inf = 2 / (1 - beta2) - 1;
//   rho = rho_inf - 2 t beta2^t / (1 - beta2^t);  up to rho = 5, p -= lr m / (1 - beta1^t); then
//   p -= lr r m / (1 - beta1^t) sqrt(1 - beta2^t) / (sqrt(v) + eps), where
//   r = sqrt((rho - 4) (rho - 2) rho_inf / ((rho_inf - 4) (rho_inf - 2) rho)).
// Slots: m, v.
struct RAdamStep {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
  bool decoupled = false;
  int64_t step = 1;
  size_t slots() const { return 2; }
};

// Rprop (Riedmiller & Braun, 1993): where g has the sign it had before, size *= eta_plus; where it
// has the other, size *= eta_minus and g = 0; size is kept in [size_min, size_max];
//   p -= size sign(g);  before = g.
// Slots: before, size.
struct RpropStep {
  double eta_minus = 0.5;
  double eta_plus = 1.2;
  double size_min = 1e-6;
  double size_max = 50.0;
  size_t slots() const { return 2; }
};

// Averaged SGD (Polyak & Juditsky, 1992): g += weight_decay p;  p *= 1 - lambd eta;  p -= eta g;
//   mean += mu (p - mean).
// eta is the rate of this step, mu the weight of the newest value (1: the mean is p itself).
// Slots: mean.
struct AsgdStep {
  double eta = 1e-2;
  double lambd = 1e-4;
  double mu = 1.0;
  double weight_decay = 0.0;
  size_t slots() const { return 1; }
};

// Lion (Chen et al., 2023): p *= 1 - lr weight_decay;  p -= lr sign(beta1 m + (1 - beta1) g);
//   m = beta2 m + (1 - beta2) g.
// Slots: m.
struct LionStep {
  double lr = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0.0;
  size_t slots() const { return 1; }
};

// Adan (Xie et al., 2022): d = g - before (0 on the first step);  m = beta1 m + (1 - beta1) g;
//   v = beta2 v + (1 - beta2) d;  n = beta3 n + (1 - beta3) (g + beta2 d)^2;
//   u = (m / (1 - beta1^t) + beta2 v / (1 - beta2^t)) / (sqrt(n / (1 - beta3^t)) + eps);
//   p = (p - lr u) / (1 + lr weight_decay) or, with no_prox, p (1 - lr weight_decay) - lr u;
//   before = g.
// Slots: m, v, n, before.
struct AdanStep {
  double lr = 1e-3;
  double beta1 = 0.98;
  double beta2 = 0.92;
  double beta3 = 0.99;
  double eps = 1e-8;
  double weight_decay = 0.0;
  bool no_prox = false;
  int64_t step = 1;
  size_t slots() const { return 4; }
};

// AdamW whose m and v are coded in blocks of so many adjacent elements (dynamic_code.h): what
// float_adamw_8bit takes. f32 computes in f32, f64 in f64, 16-bit floats in f32.
struct AdamW8bitStep {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;
  int64_t step = 1;
  int64_t block = 256;

  AdamStep adam() const {
    return {.lr = lr,
            .beta1 = beta1,
            .beta2 = beta2,
            .eps = eps,
            .weight_decay = weight_decay,
            .decoupled = true,
            .step = step};
  }
};

using OptimizerStep =
    std::variant<SgdStep, AdamStep, AdagradStep, AdadeltaStep, RMSpropStep, AdamaxStep, NAdamStep,
                 RAdamStep, RpropStep, AsgdStep, LionStep, AdanStep>;

// How many tensors of state each parameter has.
size_t slots_of(const OptimizerStep& step);

}  // namespace kiln
