#include "kiln/distributions/kl.h"

#include <mutex>
#include <shared_mutex>

#include "kiln/distributions/kl_formulas.h"

namespace kiln::distributions {

namespace {

struct KLTable {
  std::shared_mutex mutex;
  KLFormulas formulas;

  KLTable() {
    add_kl_of_mixed(formulas);
    add_kl_of_joint(formulas);
    add_kl_of_same(formulas);
  }
};

KLTable& kl_table() {
  static KLTable table;
  return table;
}

// The formulas of the moment: one of them may register another, or ask for a divergence.
KLFormulas all_kl_formulas() {
  KLTable& table = kl_table();
  const std::shared_lock lock(table.mutex);
  return table.formulas;
}

}  // namespace

Tensor kl_divergence(const Distribution& p, const Distribution& q) {
  const KLFormulas formulas = all_kl_formulas();
  for (size_t i = formulas.size(); i-- > 0;) {
    if (Tensor result = formulas[i](p, q); result.defined()) return result;
  }
  throw_error<NotImplementedError>("kl_divergence: there is no formula for p of ", p.name(),
                                   " and q of ", q.name(), "; register_kl() adds one");
}

void register_kl(KLFormula formula) {
  if (!formula) throw_error<ValueError>("register_kl: expected a function; got none");
  KLTable& table = kl_table();
  const std::unique_lock lock(table.mutex);
  table.formulas.push_back(std::move(formula));
}

}  // namespace kiln::distributions
