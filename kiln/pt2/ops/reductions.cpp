// Reductions, running results and norms.
#include "kiln/tensor/reduce/reductions.h"

#include <cmath>

#include "kiln/pt2/ops/forms.h"
#include "kiln/tensor/reduce/cumulative.h"
#include "kiln/tensor/reduce/renorm.h"
#include "kiln/tensor/reduce/statistics.h"

namespace kiln::pt2 {

namespace {

void sum_of(Call& c) {
  c.out(in_dtype(in_dtype(c.x(), c.dtype()).sum(dims_or_all(c, "dim"), c.b("keepdim", false)),
                 c.dtype()));
}
void mean_of(Call& c) {
  c.out(in_dtype(c.x(), c.dtype()).mean(dims_or_all(c, "dim"), c.b("keepdim", false)));
}
void nansum_of(Call& c) {
  c.out(nansum(in_dtype(c.x(), c.dtype()), dims_or_all(c, "dim"), c.b("keepdim", false)));
}
void nanmean_of(Call& c) {
  c.out(nanmean(in_dtype(c.x(), c.dtype()), dims_or_all(c, "dim"), c.b("keepdim", false)));
}
void prod_of(Call& c) {
  const Tensor x = in_dtype(c.x(), c.dtype());
  const Tensor y = c.has("dim") ? x.prod(c.i("dim"), c.b("keepdim", false)) : x.prod();
  c.out(in_dtype(y, c.dtype()));
}
// How many elements are taken from the count of those that the squares are divided by.
double correction_of(Call& c) {
  if (c.has("correction")) return c.f("correction");
  return c.b("unbiased", true) ? 1.0 : 0.0;
}
void var_of(Call& c) {
  c.out(c.x().var(dims_or_all(c, "dim"), correction_of(c), c.b("keepdim", false)));
}
void std_of(Call& c) {
  c.out(c.x().std(dims_or_all(c, "dim"), correction_of(c), c.b("keepdim", false)));
}
void var_mean_of(Call& c) {
  c.out(var_mean(c.x(), dims_or_all(c, "dim"), correction_of(c), c.b("keepdim", false)));
}
void std_mean_of(Call& c) {
  c.out(std_mean(c.x(), dims_or_all(c, "dim"), correction_of(c), c.b("keepdim", false)));
}
void max_of(Call& c) {
  if (c.has("dim")) {
    c.out(c.x().max(c.i("dim"), c.b("keepdim", false)));
  } else {
    c.out(c.x().max());
  }
}
void min_of(Call& c) {
  if (c.has("dim")) {
    c.out(c.x().min(c.i("dim"), c.b("keepdim", false)));
  } else {
    c.out(c.x().min());
  }
}
void amax_of(Call& c) { c.out(c.x().amax(dims_or_all(c, "dim"), c.b("keepdim", false))); }
void amin_of(Call& c) { c.out(c.x().amin(dims_or_all(c, "dim"), c.b("keepdim", false))); }
void aminmax_of(Call& c) { c.out(aminmax(c.x(), c.maybe_i("dim"), c.b("keepdim", false))); }
template <Tensor (Tensor::*All)() const, Tensor (Tensor::*One)(int64_t, bool) const>
void place_of(Call& c) {
  const Tensor x = c.x();
  if (c.has("dim")) {
    c.out((x.*One)(c.i("dim"), c.b("keepdim", false)));
    return;
  }
  const Tensor y = (x.*All)();
  c.out(c.b("keepdim", false) ? y.reshape(Shape::filled(x.dim(), 1)) : y);
}
void any_of(Call& c) { c.out(kiln::any(c.x(), dims_or_all(c, "dim"), c.b("keepdim", false))); }
void all_of(Call& c) { c.out(kiln::all(c.x(), dims_or_all(c, "dim"), c.b("keepdim", false))); }
void count_nonzero_of(Call& c) { c.out(count_nonzero(c.x(), dims_or_all(c, "dim"))); }
void logsumexp_of(Call& c) { c.out(c.x().logsumexp(c.ints("dim"), c.b("keepdim", false))); }

void norm_of(Call& c) {
  const Tensor x = in_dtype(c.x(), c.dtype());
  c.out(kiln::norm(x, c.f("p", 2.0), dims_or_all(c, "dim"), c.b("keepdim", false)));
}
void frobenius(Call& c) {
  c.out(kiln::norm(c.x(), 2.0, dims_or_all(c, "dim"), c.b("keepdim", false)));
}
void renorm_of(Call& c) { c.out(renorm(c.x(), c.f("p"), c.i("dim"), c.f("maxnorm"))); }

void cumsum_of(Call& c) { c.out(in_dtype(c.x(), c.dtype()).cumsum(c.i("dim"))); }
void cumprod_of(Call& c) { c.out(cumprod(in_dtype(c.x(), c.dtype()), c.i("dim"))); }
void cummax_of(Call& c) { c.out(cummax(c.x(), c.i("dim"))); }
void cummin_of(Call& c) { c.out(cummin(c.x(), c.i("dim"))); }
void logcumsumexp_of(Call& c) { c.out(logcumsumexp(c.x(), c.i("dim"))); }
void diff_of(Call& c) {
  c.out(diff(c.x(), c.i("n", 1), c.i("dim", -1), c.maybe("prepend"), c.maybe("append")));
}
void trapezoid_of(Call& c) {
  if (c.has("x")) {
    c.out(trapezoid(c.t("y"), c.t("x"), c.i("dim", -1)));
  } else {
    c.out(trapezoid(c.t("y"), c.f("dx", 1.0), c.i("dim", -1)));
  }
}
void cumulative_trapezoid_of(Call& c) {
  if (c.has("x")) {
    c.out(cumulative_trapezoid(c.t("y"), c.t("x"), c.i("dim", -1)));
  } else {
    c.out(cumulative_trapezoid(c.t("y"), c.f("dx", 1.0), c.i("dim", -1)));
  }
}
void bincount_of(Call& c) { c.out(bincount(c.x(), c.maybe("weights"), c.i("minlength", 0))); }
void histc_of(Call& c) { c.out(histc(c.x(), c.i("bins", 100), c.f("min", 0.0), c.f("max", 0.0))); }
void cov_of(Call& c) {
  c.out(cov(c.x(), c.i("correction", 1), c.maybe("fweights"), c.maybe("aweights")));
}

constexpr Operator kReductionsOperators[] = {
    {"sum", "default dim_IntList", sum_of},
    {"mean", "default dim", mean_of},
    {"nansum", "default", nansum_of},
    {"nanmean", "default", nanmean_of},
    {"prod", "default dim_int", prod_of},
    {"var", "default dim correction", var_of},
    {"std", "default dim correction", std_of},
    {"var_mean", "default dim correction", var_mean_of},
    {"std_mean", "default dim correction", std_mean_of},
    {"max", "default dim", max_of},
    {"min", "default dim", min_of},
    {"amax", "default", amax_of},
    {"amin", "default", amin_of},
    {"aminmax", "default", aminmax_of},
    {"argmax", "default", place_of<&Tensor::argmax, &Tensor::argmax>},
    {"argmin", "default", place_of<&Tensor::argmin, &Tensor::argmin>},
    {"any", "default dim dims", any_of},
    {"all", "default dim dims", all_of},
    {"count_nonzero", "default dim_IntList", count_nonzero_of},
    {"logsumexp", "default", logsumexp_of},
    {"special_logsumexp", "default", logsumexp_of},
    {"norm", "Scalar ScalarOpt_dim ScalarOpt_dim_dtype ScalarOpt_dtype", norm_of},
    {"frobenius_norm", "dim", frobenius},
    {"renorm", "default", renorm_of},
    {"cumsum", "default", cumsum_of},
    {"cumprod", "default", cumprod_of},
    {"cummax", "default", cummax_of},
    {"cummin", "default", cummin_of},
    {"logcumsumexp", "default", logcumsumexp_of},
    {"diff", "default", diff_of},
    {"trapezoid", "x dx", trapezoid_of},
    {"trapz", "x dx", trapezoid_of},
    {"cumulative_trapezoid", "x dx", cumulative_trapezoid_of},
    {"bincount", "default", bincount_of},
    {"histc", "default", histc_of},
    {"cov", "default", cov_of},
    {"corrcoef", "default", unary_of<kiln::corrcoef>},
};

}  // namespace

std::span<const Operator> reduction_operators() { return kReductionsOperators; }

}  // namespace kiln::pt2
