// Divergences of two distributions of different kinds. All are -(entropy of p) - (mean of log q(x)
// for draws x of p).
#include <cmath>
#include <numbers>

#include "kiln/distributions/bernoulli.h"
#include "kiln/distributions/beta.h"
#include "kiln/distributions/binomial.h"
#include "kiln/distributions/exponential.h"
#include "kiln/distributions/gamma.h"
#include "kiln/distributions/gumbel.h"
#include "kiln/distributions/kl_formulas.h"
#include "kiln/distributions/laplace.h"
#include "kiln/distributions/normal.h"
#include "kiln/distributions/pareto.h"
#include "kiln/distributions/poisson.h"
#include "kiln/distributions/support.h"
#include "kiln/distributions/uniform.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

namespace {

// ---- Draws of p that q cannot have

Tensor infinite_kl(const Distribution& p, const Distribution& q) {
  const Tensor like = p.mean();
  return full(broadcast_shapes("kl_divergence", p.batch_shape(), q.batch_shape()), INFINITY,
              {like.dtype(), like.device()});
}

// Infinite for each P of a list and this Q.
template <class Q, class... P>
void add_infinite(KLFormulas& formulas) {
  (formulas.push_back(kl_formula<P, Q>(infinite_kl)), ...);
}

// The result; infinite where draws of p are below low or above high.
Tensor within(const Uniform& p, const Tensor& low, const Tensor& result) {
  return where(p.low() < low, INFINITY, result);
}
Tensor within(const Uniform& p, double low, double high, const Tensor& result) {
  return where((p.low() < low) | (p.high() > high), INFINITY, result);
}

// ---- Means of log x and of exp(-x / scale)

Tensor mean_log(const Beta& p) {
  return digamma(p.concentration1()) - digamma(p.concentration1() + p.concentration0());
}
Tensor mean_log(const Exponential& p) { return -p.rate().log() - kEulerGamma; }
Tensor mean_log(const Pareto& p) { return p.scale().log() + 1 / p.alpha(); }
Tensor mean_log_between(const Tensor& from, const Tensor& to) {
  const Tensor low = from.clamp(0), high = to.clamp(0);
  return (xlogy(high, high) - xlogy(low, low)) / (to - from) - 1;
}
Tensor mean_log(const Uniform& p) { return mean_log_between(p.low(), p.high()); }

Tensor mean_fall(const Exponential& p, const Tensor& scale) {
  return p.rate() / (p.rate() + 1 / scale);
}
Tensor mean_fall(const Gamma& p, const Tensor& scale) {
  return (-p.concentration() * (1 / (scale * p.rate())).log1p()).exp();
}
Tensor mean_fall(const Normal& p, const Tensor& scale) {
  return (0.5 * (p.scale() / scale).square() - p.loc() / scale).exp();
}
Tensor mean_fall(const Uniform& p, const Tensor& scale) {
  const Tensor width = p.high() - p.low();
  return -(-p.low() / scale).exp() * (-width / scale).expm1() * scale / width;
}

// ---- By q

Tensor to_normal(const Distribution& p, const Normal& q) {
  const Tensor spread = p.variance() + (p.mean() - q.loc()).square();
  return spread / (2 * q.scale().square()) + q.scale().log() +
         0.5 * std::log(2 * std::numbers::pi) - p.entropy();
}

Tensor to_exponential(const Distribution& p, const Exponential& q) {
  return q.rate() * p.mean() - q.rate().log() - p.entropy();
}

template <class P>
Tensor to_gamma(const P& p, const Gamma& q) {
  const Tensor& c = q.concentration();
  return lgamma(c) - c * q.rate().log() + q.rate() * p.mean() - (c - 1) * mean_log(p) - p.entropy();
}

template <class P>
Tensor to_gumbel(const P& p, const Gumbel& q) {
  const Tensor fall = (q.loc() / q.scale()).exp() * mean_fall(p, q.scale());
  return q.scale().log() + (p.mean() - q.loc()) / q.scale() + fall - p.entropy();
}

// A Pareto has no variance for alpha <= 2 and no mean for alpha <= 1: the divergence is infinite
// then, and the formula, which would have no slope, gets a harmless alpha.
template <class Q, class F>
Tensor from_pareto(const Pareto& p, const Q& q, double least, F formula) {
  const Tensor exists = p.alpha() > least;
  const Pareto finite(p.scale(), where(exists, p.alpha(), least + 1), false);
  return where(exists, formula(finite, q), INFINITY);
}

Tensor pareto_to_normal(const Pareto& p, const Normal& q) {
  return from_pareto(p, q, 2, to_normal);
}
Tensor pareto_to_exponential(const Pareto& p, const Exponential& q) {
  return from_pareto(p, q, 1, to_exponential);
}
Tensor pareto_to_gamma(const Pareto& p, const Gamma& q) {
  return from_pareto(p, q, 1, to_gamma<Pareto>);
}

Tensor uniform_to_exponential(const Uniform& p, const Exponential& q) {
  return within(p, 0, INFINITY, to_exponential(p, q));
}
Tensor uniform_to_gamma(const Uniform& p, const Gamma& q) {
  return within(p, 0, INFINITY, to_gamma(p, q));
}

Tensor uniform_to_beta(const Uniform& p, const Beta& q) {
  const Tensor &c1 = q.concentration1(), &c0 = q.concentration0();
  const Tensor logs =
      (c1 - 1) * mean_log(p) + (c0 - 1) * mean_log_between(1 - p.high(), 1 - p.low());
  const Tensor constant = lgamma(c1) + lgamma(c0) - lgamma(c1 + c0);
  return within(p, 0, 1, constant - logs - p.entropy());
}

Tensor uniform_to_pareto(const Uniform& p, const Pareto& q) {
  const Tensor constant = -q.alpha().log() - q.alpha() * q.scale().log();
  return within(p, q.scale(), constant + (q.alpha() + 1) * mean_log(p) - p.entropy());
}

Tensor beta_to_uniform(const Beta& p, const Uniform& q) {
  const Tensor result = (q.high() - q.low()).log() - p.entropy();
  return where((q.low() > 0) | (q.high() < 1), INFINITY, result);
}

// The mean of |x - q.loc| is that of a folded normal distribution.
Tensor normal_to_laplace(const Normal& p, const Laplace& q) {
  const Tensor distance = p.loc() - q.loc(), z = distance / p.scale();
  const Tensor folded = std::sqrt(2 / std::numbers::pi) * p.scale() * (-0.5 * z.square()).exp() +
                        distance * (z / std::numbers::sqrt2).erf();
  return (2 * q.scale()).log() + folded / q.scale() - p.entropy();
}

Tensor bernoulli_to_poisson(const Bernoulli& p, const Poisson& q) {
  return q.rate() - p.probs() * q.rate().log() - p.entropy();
}

}  // namespace

void add_kl_of_mixed(KLFormulas& formulas) {
  add_infinite<Pareto, Beta, Exponential, Gamma, Gumbel, Laplace, Normal>(formulas);
  add_infinite<Beta, Exponential, Gamma, Gumbel, Laplace, Normal, Pareto>(formulas);
  add_infinite<Uniform, Exponential, Gamma, Gumbel, Laplace, Normal, Pareto>(formulas);
  add_infinite<Exponential, Gumbel, Laplace, Normal>(formulas);
  add_infinite<Gamma, Gumbel, Laplace, Normal>(formulas);
  add_infinite<Bernoulli, Poisson>(formulas);
  add_infinite<Binomial, Poisson>(formulas);
  formulas.insert(formulas.end(), {
                                      kl_formula<Beta, Normal>(to_normal),
                                      kl_formula<Exponential, Normal>(to_normal),
                                      kl_formula<Gamma, Normal>(to_normal),
                                      kl_formula<Gumbel, Normal>(to_normal),
                                      kl_formula<Laplace, Normal>(to_normal),
                                      kl_formula<Pareto, Normal>(pareto_to_normal),
                                      kl_formula<Uniform, Normal>(to_normal),
                                      kl_formula<Beta, Exponential>(to_exponential),
                                      kl_formula<Gamma, Exponential>(to_exponential),
                                      kl_formula<Pareto, Exponential>(pareto_to_exponential),
                                      kl_formula<Uniform, Exponential>(uniform_to_exponential),
                                      kl_formula<Beta, Gamma>(to_gamma<Beta>),
                                      kl_formula<Exponential, Gamma>(to_gamma<Exponential>),
                                      kl_formula<Pareto, Gamma>(pareto_to_gamma),
                                      kl_formula<Uniform, Gamma>(uniform_to_gamma),
                                      kl_formula<Exponential, Gumbel>(to_gumbel<Exponential>),
                                      kl_formula<Gamma, Gumbel>(to_gumbel<Gamma>),
                                      kl_formula<Normal, Gumbel>(to_gumbel<Normal>),
                                      kl_formula<Uniform, Gumbel>(to_gumbel<Uniform>),
                                      kl_formula<Uniform, Beta>(uniform_to_beta),
                                      kl_formula<Uniform, Pareto>(uniform_to_pareto),
                                      kl_formula<Beta, Uniform>(beta_to_uniform),
                                      kl_formula<Normal, Laplace>(normal_to_laplace),
                                      kl_formula<Bernoulli, Poisson>(bernoulli_to_poisson),
                                  });
}

}  // namespace kiln::distributions
