// Reductions.
#include <cmath>

#include "kiln/tensor/reduce/reductions.h"
#include "tests/ops/call.h"

namespace kiln::ops {

KILN_OP_CASES(sums) {
  const double nan = std::nan("");
  const double inf = INFINITY;
  const auto wide = [] { return std::vector<Input>{real({1024, 1024})}; };
  op("sum", "torch.sum(a)", KILN_CALL(x[0].sum()), {real({3, 4})}).dtypes(kAll).big(wide());
  op("sum", "torch.sum(a, 1)", KILN_CALL(x[0].sum(1)), {real({3, 4})}).dtypes(kAll).big(wide());
  op("sum", "torch.sum(a, (0, 2), keepdim=True)", KILN_CALL(x[0].sum({0, 2}, true)),
     {real({2, 3, 4})})
      .big({real({64, 128, 128})});
  op("sum", "torch.sum(a, 0)", KILN_CALL(x[0].sum(0)), {real({1024, 2})}).dtypes({f32}).big(wide());
  op("sum", "torch.sum(a, 1, dtype=torch.float64)", KILN_CALL(x[0].to(f64).sum(1)), {real({3, 4})})
      .dtypes({f32, f16, i32, bool_});
  op("sum", "torch.sum(a, 0)", KILN_CALL(x[0].sum(0)), {real({0, 3})}).dtypes(kReals);
  op("sum", "torch.sum(a)", KILN_CALL(x[0].sum()), {real({})});
  op("nansum", "torch.nansum(a)", KILN_CALL(nansum(x[0])), {real({3, 4})})
      .dtypes(kReals)
      .big(wide());
  op("nansum", "torch.nansum(a, 1)", KILN_CALL(nansum(x[0], {1})),
     {values({1, nan, 2, nan, nan, nan, inf, 1, nan}, {3, 3})})
      .big(wide());
  op("nanmean", "torch.nanmean(a, 0, keepdim=True)", KILN_CALL(nanmean(x[0], {0}, true)),
     {real({3, 4})})
      .big(wide());
  op("nanmean", "torch.nanmean(a, 1)", KILN_CALL(nanmean(x[0], {1})),
     {values({1, nan, 2, nan, nan, nan, inf, 1, nan}, {3, 3})});
  op("mean", "torch.mean(a)", KILN_CALL(x[0].mean()), {real({3, 4})}).big(wide());
  op("mean", "torch.mean(a, (0, 1), keepdim=True)", KILN_CALL(x[0].mean({0, 1}, true)),
     {real({2, 3, 4})});
  op("mean", "torch.mean(a.to(torch.int32), 1, dtype=torch.float32)",
     KILN_CALL(x[0].to(i32).to(f32).mean(1)), {constant({3, 4})})
      .dtypes({f32});
  op("mean", "torch.mean(a, 0)", KILN_CALL(x[0].mean(0)), {real({0, 3})});
  op("prod", "torch.prod(a)", KILN_CALL(x[0].prod()), {real({3, 4})})
      .dtypes(kAll)
      .big({real({1024, 1024}, 0.9999, 1.0001)});
  op("prod", "torch.prod(a, 1)", KILN_CALL(x[0].prod(1)), {real({3, 4})})
      .dtypes(kAll)
      .big({real({1024, 1024}, 0.99, 1.01)});
  op("prod", "torch.prod(a, 0, keepdim=True)", KILN_CALL(x[0].prod(0, true)), {real({3, 4})});
  op("prod", "torch.prod(a * torch.tensor([1., 0., 1., 0.], dtype=a.dtype), 1)",
     KILN_CALL((x[0] * tensor({1.0, 0.0, 1.0, 0.0}, {x[0].dtype(), x[0].device()})).prod(1)),
     {real({2, 4})})
      .dtypes(kDoubles);
  op("prod", "torch.prod(a)", KILN_CALL(x[0].prod()), {real({0})});
  op("logsumexp", "torch.logsumexp(a, 1)", KILN_CALL(x[0].logsumexp(1)), {real({3, 4})})
      .big(wide());
  op("logsumexp", "torch.logsumexp(a, (0, 1), keepdim=True)",
     KILN_CALL(x[0].logsumexp({0, 1}, true)), {real({3, 4})});
  op("logsumexp", "torch.logsumexp(a, 1)", KILN_CALL(x[0].logsumexp(1)),
     {values({-inf, -inf, 1, inf, 2, nan}, {3, 2})});
  op("logsumexp", "torch.logsumexp(a.to(torch.int64), 0)", KILN_CALL(x[0].to(i64).logsumexp(0)),
     {constant({4})})
      .dtypes({f32});
  op("count_nonzero", "torch.count_nonzero(a)", KILN_CALL(count_nonzero(x[0])), {constant({3, 4})})
      .dtypes(kAll)
      .big(wide());
  op("count_nonzero", "torch.count_nonzero(a, (0, 1))", KILN_CALL(count_nonzero(x[0], {0, 1})),
     {values({0, 1, nan, 0, -0.0, 2}, {1, 2, 3})});
}

KILN_OP_CASES(moments) {
  const auto wide = [] { return std::vector<Input>{real({1024, 1024})}; };
  op("var", "torch.var(a)", KILN_CALL(x[0].var()), {real({3, 4})}).big(wide());
  op("var", "torch.var(a, 1, correction=0, keepdim=True)", KILN_CALL(x[0].var({1}, 0, true)),
     {real({3, 4})})
      .big(wide());
  op("var", "torch.var(a, (0, 2), correction=2)", KILN_CALL(x[0].var({0, 2}, 2)),
     {real({2, 3, 4})});
  op("var", "torch.var(a, 0, False)", KILN_CALL(x[0].var({0}, 0)), {real({3, 4})});
  op("var", "torch.var(a, 0)", KILN_CALL(x[0].var(0)), {constant({1, 3})});
  op("std", "torch.std(a, 1)", KILN_CALL(x[0].std(1)), {real({3, 4})}).big(wide());
  op("std", "torch.std(a, unbiased=False)", KILN_CALL(x[0].std({}, 0)), {real({3, 4})});
  op("std", "torch.std(a, (0, 1), keepdim=True)", KILN_CALL(x[0].std({0, 1}, 1, true)),
     {real({3, 4, 2})});
  op("var_mean", "torch.var_mean(a, 1)", KILN_CALL(var_mean(x[0], {1})), {real({3, 4})});
  op("std_mean", "torch.std_mean(a, (0, 1), correction=0, keepdim=True)",
     KILN_CALL(std_mean(x[0], {0, 1}, 0, true)), {real({3, 4})});
  op("norm", "torch.norm(a)", KILN_CALL(norm(x[0])), {real({3, 4})}).big(wide());
  op("norm", "torch.norm(a, 2, 1)", KILN_CALL(norm(x[0], 2, {1})), {real({3, 4})}).big(wide());
  op("norm", "torch.norm(a, 1, (0, 1), keepdim=True)", KILN_CALL(norm(x[0], 1, {0, 1}, true)),
     {real({3, 4}).away_from(0)})
      .big(wide());
  op("norm", "torch.norm(a, 3, 0)", KILN_CALL(norm(x[0], 3, {0})), {real({3, 4})}).big(wide());
  op("norm", "torch.norm(a, 0.5, 1)", KILN_CALL(norm(x[0], 0.5, {1})), {real({3, 4}).away_from(0)})
      .loose(10);
  op("norm", "torch.norm(a, inf, 1)", KILN_CALL(norm(x[0], INFINITY, {1})), {real({3, 4})})
      .big(wide());
  op("norm", "torch.norm(a, -inf, 1)", KILN_CALL(norm(x[0], -INFINITY, {1})),
     {real({3, 4}).away_from(0)});
  op("norm", "torch.norm(a, 0, 1)", KILN_CALL(norm(x[0], 0, {1})),
     {values({0, 1, 2, 0, 0, 0}, {2, 3})});
  op("norm", "torch.norm(a, -1, 0)", KILN_CALL(norm(x[0], -1, {0})), {real({3, 4}).away_from(0)})
      .loose(10);
  op("norm", "torch.norm(a, 2, 1)", KILN_CALL(norm(x[0], 2, {1})), {real({3, 0})});
  op("norm", "torch.norm(a)", KILN_CALL(norm(x[0])), {real({})});
}

KILN_OP_CASES(extrema) {
  const double nan = std::nan("");
  const auto wide = [] { return std::vector<Input>{real({1024, 1024})}; };
  op("amax", "torch.amax(a)", KILN_CALL(x[0].amax()), {real({3, 4})}).dtypes(kAll).big(wide());
  op("amax", "torch.amax(a, (0, 2), keepdim=True)", KILN_CALL(x[0].amax({0, 2}, true)),
     {real({2, 3, 4})})
      .dtypes(kAll);
  op("amax", "torch.amax(a, 1)", KILN_CALL(x[0].amax(1)), {values({1, nan, 2, 2}, {2, 2})});
  op("amin", "torch.amin(a, 1)", KILN_CALL(x[0].amin(1)), {real({3, 4})}).dtypes(kAll).big(wide());
  op("amax", "torch.amax(torch.round(a), 1)", KILN_CALL(x[0].round().amax(1)), {real({3, 4})});
  op("aminmax", "torch.aminmax(a)", KILN_CALL(aminmax(x[0])), {real({3, 4})})
      .dtypes(kAll)
      .big(wide());
  op("aminmax", "torch.aminmax(a, dim=1, keepdim=True)", KILN_CALL(aminmax(x[0], 1, true)),
     {real({3, 4})});
  op("max", "torch.max(a)", KILN_CALL(x[0].max()), {real({3, 4})}).dtypes(kAll);
  op("max", "torch.max(a, 1)", KILN_CALL(x[0].max(1)), {real({3, 4})}).big(wide());
  op("max", "torch.max(a, 0, keepdim=True)[0]", KILN_CALL(x[0].max(0, true).first), {real({3, 4})})
      .dtypes(kAll);
  op("max", "torch.max(a, b)", KILN_CALL(x[0].maximum(x[1])), {real({3, 4}), real({4})})
      .dtypes(kAll);
  op("min", "torch.min(a)", KILN_CALL(x[0].min()), {real({3, 4})}).dtypes(kAll);
  op("min", "torch.min(a, 0)", KILN_CALL(x[0].min(0)), {real({3, 4})}).big(wide());
  op("min", "torch.min(a, b)", KILN_CALL(x[0].minimum(x[1])), {real({3, 4}), real({3, 1})})
      .dtypes(kAll);
  op("argmax", "torch.argmax(a)", KILN_CALL(x[0].argmax()), {constant({3, 4})}).big(wide());
  op("argmax", "torch.argmax(a, 1, keepdim=True)", KILN_CALL(x[0].argmax(1, true)),
     {constant({3, 4})})
      .dtypes(kReals)
      .big(wide());
  op("argmax", "torch.argmax(a, 1)", KILN_CALL(x[0].argmax(1)),
     {values({1, nan, nan, 2, 2, 1}, {2, 3})});
  op("argmin", "torch.argmin(a, 0)", KILN_CALL(x[0].argmin(0)), {constant({3, 4})})
      .dtypes(kReals)
      .big(wide());
  op("any", "torch.any(a)", KILN_CALL(any(x[0])), {constant({3, 4})}).dtypes(kAll).big(wide());
  op("any", "torch.any(a, 1, keepdim=True)", KILN_CALL(any(x[0], {1}, true)),
     {values({0, 0, 0, nan, 1, 0}, {3, 2})})
      .dtypes(kFloats);
  op("any", "torch.any(a, (0, 2))", KILN_CALL(any(x[0], {0, 2})), {mask({2, 3, 4})});
  op("all", "torch.all(a)", KILN_CALL(all(x[0])), {constant({3, 4})}).dtypes(kAll).big(wide());
  op("all", "torch.all(a, (0, 1))", KILN_CALL(all(x[0], {0, 1})), {mask({2, 3, 4})});
  op("all", "torch.all(a, 0)", KILN_CALL(all(x[0], {0})), {mask({0, 3})});
}

}  // namespace kiln::ops
