// Divergences of distributions of classes and vectors, and of those made of others.
#include <cmath>

#include "kiln/distributions/dirichlet.h"
#include "kiln/distributions/independent.h"
#include "kiln/distributions/kl_formulas.h"
#include "kiln/distributions/matrices.h"
#include "kiln/distributions/multinomial.h"
#include "kiln/distributions/multivariate_normal.h"
#include "kiln/distributions/one_hot_categorical.h"
#include "kiln/distributions/support.h"
#include "kiln/distributions/transformed_distribution.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

namespace {

void check_same_events(const Distribution& p, const Distribution& q) {
  if (p.event_shape() == q.event_shape()) return;
  throw_error<ShapeError>("kl_divergence: event_shape must be the same; got ", p.event_shape(),
                          " and ", q.event_shape());
}

Tensor same_classes(const ClassDistribution& p, const ClassDistribution& q) {
  if (p.num_classes() != q.num_classes()) {
    throw_error<ShapeError>("kl_divergence: both must have the same number of classes; got ",
                            p.num_classes(), " and ", q.num_classes());
  }
  const Tensor mine = p.probs(), theirs = q.probs();
  const Tensor terms = mine * (p.logits() - q.logits());
  // Logits of probabilities 0 are finite, and so would be the result.
  return where(mine == 0, 0.0, where(theirs == 0, INFINITY, terms)).sum(-1);
}

Tensor same_multinomial(const Multinomial& p, const Multinomial& q) {
  if (p.total_count() != q.total_count()) {
    throw_error<NotImplementedError>(
        "kl_divergence: the two Multinomial must have one total_count; got ", p.total_count(),
        " and ", q.total_count());
  }
  return p.total_count() * same_classes(p, q);
}

Tensor same_dirichlet(const Dirichlet& p, const Dirichlet& q) {
  check_same_events(p, q);
  const Tensor &a = p.concentration(), &b = q.concentration();
  const Tensor total = a.sum(-1);
  const Tensor constants = lgamma(total) - lgamma(b.sum(-1)) + (lgamma(b) - lgamma(a)).sum(-1);
  const Tensor slopes = digamma(a) - digamma(total).unsqueeze(-1);
  return constants + ((a - b) * slopes).sum(-1);
}

Tensor same_independent(const Independent& p, const Independent& q) {
  if (p.dims() != q.dims()) {
    throw_error<NotImplementedError>(
        "kl_divergence: the two Independent must have the same dims; got ", p.dims(), " and ",
        q.dims());
  }
  check_same_events(p, q);
  return sum_rightmost(kl_divergence(p.base(), q.base()), static_cast<int>(p.dims()));
}

// A bijection changes nothing, if it is the same for both.
Tensor same_transformed(const TransformedDistribution& p, const TransformedDistribution& q) {
  if (!p.transform().equals(q.transform()) || p.event_shape() != q.event_shape()) {
    throw_error<NotImplementedError>(
        "kl_divergence: two TransformedDistribution must have equal transforms and event_shape");
  }
  return kl_divergence(p.base(), q.base());
}

Tensor same_multivariate(const MultivariateNormal& p, const MultivariateNormal& q) {
  check_same_events(p, q);
  const Tensor log_det = 2 * (q.half_log_det() - p.half_log_det());
  const Tensor distance = squared_distance(q.factor(), q.loc() - p.loc());
  const Tensor trace = trace_of_ratio(q.factor(), p.factor());
  return 0.5 * (log_det + trace + distance - static_cast<double>(p.event_shape()[0]));
}

}  // namespace

void add_kl_of_joint(KLFormulas& formulas) {
  formulas.insert(
      formulas.end(),
      {
          kl_formula<Categorical, Categorical>(same_classes),
          kl_formula<OneHotCategorical, OneHotCategorical>(same_classes),
          kl_formula<Multinomial, Multinomial>(same_multinomial),
          kl_formula<Dirichlet, Dirichlet>(same_dirichlet),
          kl_formula<Independent, Independent>(same_independent),
          kl_formula<TransformedDistribution, TransformedDistribution>(same_transformed),
          kl_formula<MultivariateNormal, MultivariateNormal>(same_multivariate),
      });
}

}  // namespace kiln::distributions
