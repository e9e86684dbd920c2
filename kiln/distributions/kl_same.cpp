// Divergences of two distributions of numbers of one kind.
#include <cmath>

#include "kiln/distributions/bernoulli.h"
#include "kiln/distributions/beta.h"
#include "kiln/distributions/binomial.h"
#include "kiln/distributions/cauchy.h"
#include "kiln/distributions/exponential.h"
#include "kiln/distributions/gamma.h"
#include "kiln/distributions/geometric.h"
#include "kiln/distributions/gumbel.h"
#include "kiln/distributions/half_normal.h"
#include "kiln/distributions/kl_formulas.h"
#include "kiln/distributions/laplace.h"
#include "kiln/distributions/log_normal.h"
#include "kiln/distributions/pareto.h"
#include "kiln/distributions/poisson.h"
#include "kiln/distributions/support.h"
#include "kiln/distributions/uniform.h"
#include "kiln/tensor/elementwise/special.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

namespace {

Tensor same_bernoulli(const BinaryDistribution& p, const BinaryDistribution& q) {
  const Tensor a = p.logits(), b = q.logits(), mine = p.probs(), theirs = q.probs();
  const Tensor success = mine * (log1p_exp(-b) - log1p_exp(-a));
  const Tensor failure = (1 - mine) * (log1p_exp(b) - log1p_exp(a));
  // Logits of probabilities 0 and 1 are finite, and so would be the result.
  const Tensor missing = ((theirs == 0) & (mine > 0)) | ((theirs == 1) & (mine < 1));
  return where(missing, INFINITY, success + failure);
}

Tensor same_binomial(const Binomial& p, const Binomial& q) {
  const Tensor &n = p.total_count(), &m = q.total_count();
  if ((n < m).any().item<bool>()) {
    throw_error<NotImplementedError>(
        "kl_divergence: for Binomial the total_count of p must be >= that of q");
  }
  return where(n > m, INFINITY, n * same_bernoulli(p, q));
}

Tensor same_beta(const Beta& p, const Beta& q) {
  const Tensor &p1 = p.concentration1(), &p0 = p.concentration0();
  const Tensor &q1 = q.concentration1(), &q0 = q.concentration0();
  const Tensor total_p = p1 + p0, total_q = q1 + q0;
  const Tensor constants =
      lgamma(q1) + lgamma(q0) - lgamma(total_q) - (lgamma(p1) + lgamma(p0) - lgamma(total_p));
  const Tensor slopes = (p1 - q1) * digamma(p1) + (p0 - q0) * digamma(p0);
  return constants + slopes - (total_p - total_q) * digamma(total_p);
}

// Chyzak and Nielsen, 2019.
Tensor same_cauchy(const Cauchy& p, const Cauchy& q) {
  const Tensor distance = (p.scale() + q.scale()).square() + (p.loc() - q.loc()).square();
  return (distance / (4 * p.scale() * q.scale())).log();
}

Tensor same_exponential(const Exponential& p, const Exponential& q) {
  const Tensor ratio = q.rate() / p.rate();
  return ratio - 1 - ratio.log();
}

Tensor same_gamma(const Gamma& p, const Gamma& q) {
  const Tensor &a = p.concentration(), &b = q.concentration();
  return b * (p.rate() / q.rate()).log() + lgamma(b) - lgamma(a) + (a - b) * digamma(a) +
         (q.rate() - p.rate()) * (a / p.rate());
}

Tensor same_geometric(const Geometric& p, const Geometric& q) {
  const Tensor mine = p.probs(), theirs = q.probs();
  // Failures are counted only where p has them: q may be certain where p is.
  const Tensor failures = special::xlog1py(1 / mine - 1, -theirs);
  return -p.entropy() - failures - theirs.log();
}

// The mean of -log q: E z + E exp(-z) + log scale, with z = (x - q.loc) / q.scale.
Tensor same_gumbel(const Gumbel& p, const Gumbel& q) {
  const Tensor ratio = p.scale() / q.scale(), distance = (p.loc() - q.loc()) / q.scale();
  const Tensor growth = (lgamma(1 + ratio) - distance).exp();
  return distance + kEulerGamma * ratio + growth - ratio.log() - (1 + kEulerGamma);
}

Tensor same_laplace(const Laplace& p, const Laplace& q) {
  const Tensor ratio = p.scale() / q.scale(), distance = (p.loc() - q.loc()).abs();
  return ratio * (-distance / p.scale()).exp() + distance / q.scale() - ratio.log() - 1;
}

Tensor normal_of_scales(const Tensor& p_scale, const Tensor& q_scale) {
  const Tensor ratio = (p_scale / q_scale).square();
  return 0.5 * (ratio - 1 - ratio.log());
}

Tensor same_normal(const Normal& p, const Normal& q) {
  const Tensor away = ((p.loc() - q.loc()) / q.scale()).square();
  return normal_of_scales(p.scale(), q.scale()) + 0.5 * away;
}

Tensor same_log_normal(const LogNormal& p, const LogNormal& q) {
  return same_normal(p.base(), q.base());
}

Tensor same_half_normal(const HalfNormal& p, const HalfNormal& q) {
  return normal_of_scales(p.scale(), q.scale());
}

Tensor same_pareto(const Pareto& p, const Pareto& q) {
  const Tensor ratio = q.alpha() / p.alpha();
  const Tensor result = q.alpha() * (p.scale() / q.scale()).log() - ratio.log() + ratio - 1;
  return where(p.scale() < q.scale(), INFINITY, result);
}

Tensor same_poisson(const Poisson& p, const Poisson& q) {
  return xlogy(p.rate(), p.rate() / q.rate()) - (p.rate() - q.rate());
}

Tensor same_uniform(const Uniform& p, const Uniform& q) {
  const Tensor result = ((q.high() - q.low()) / (p.high() - p.low())).log();
  return where((q.low() > p.low()) | (q.high() < p.high()), INFINITY, result);
}

}  // namespace

void add_kl_of_same(KLFormulas& formulas) {
  formulas.insert(formulas.end(), {
                                      kl_formula<Bernoulli, Bernoulli>(same_bernoulli),
                                      kl_formula<Beta, Beta>(same_beta),
                                      kl_formula<Binomial, Binomial>(same_binomial),
                                      kl_formula<Cauchy, Cauchy>(same_cauchy),
                                      kl_formula<Exponential, Exponential>(same_exponential),
                                      kl_formula<Gamma, Gamma>(same_gamma),
                                      kl_formula<Geometric, Geometric>(same_geometric),
                                      kl_formula<Gumbel, Gumbel>(same_gumbel),
                                      kl_formula<HalfNormal, HalfNormal>(same_half_normal),
                                      kl_formula<Laplace, Laplace>(same_laplace),
                                      kl_formula<LogNormal, LogNormal>(same_log_normal),
                                      kl_formula<Normal, Normal>(same_normal),
                                      kl_formula<Pareto, Pareto>(same_pareto),
                                      kl_formula<Poisson, Poisson>(same_poisson),
                                      kl_formula<Uniform, Uniform>(same_uniform),
                                  });
}

}  // namespace kiln::distributions
