// The formulas that kl_divergence() knows from the start, by family.
#pragma once

#include <vector>

#include "kiln/distributions/kl.h"

namespace kiln::distributions {

using KLFormulas = std::vector<KLFormula>;

void add_kl_of_same(KLFormulas& formulas);   // two distributions of numbers of one kind
void add_kl_of_mixed(KLFormulas& formulas);  // two kinds
void add_kl_of_joint(KLFormulas& formulas);  // classes, vectors, and what is made of others

}  // namespace kiln::distributions
