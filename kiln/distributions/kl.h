// Kullback-Leibler divergences.
#pragma once

#include <concepts>
#include <functional>
#include <utility>

#include "kiln/distributions/distribution.h"

namespace kiln::distributions {

// KL(p || q): the mean of log p(x) - log q(x) for draws x of p, of shape batch_shape (both
// broadcast). It is infinite where p has draws that q cannot have. docs/distributions.md lists the
// pairs for which there are formulas; a class that is derived from another one has its formulas.
// Throws NotImplementedError where there is none.
Tensor kl_divergence(const Distribution& p, const Distribution& q);

// The divergence of p and q, or an undefined tensor if the formula is for other classes.
using KLFormula = std::function<Tensor(const Distribution& p, const Distribution& q)>;
// From now on, for all threads. The formulas that were registered last are asked first, so that
// those of derived classes may stand after those of their bases.
void register_kl(KLFormula formula);

// As a KLFormula: f(const P&, const Q&) for objects of these classes and of derived ones.
template <std::derived_from<Distribution> P, std::derived_from<Distribution> Q, class F>
KLFormula kl_formula(F f) {
  return [f = std::move(f)](const Distribution& p, const Distribution& q) {
    const auto* const a = dynamic_cast<const P*>(&p);
    const auto* const b = dynamic_cast<const Q*>(&q);
    return a && b ? f(*a, *b) : Tensor();
  };
}

// register_kl<Mine, Normal>([](const Mine& p, const Normal& q) { return ..; });
template <std::derived_from<Distribution> P, std::derived_from<Distribution> Q, class F>
void register_kl(F f) {
  register_kl(kl_formula<P, Q>(std::move(f)));
}

}  // namespace kiln::distributions
