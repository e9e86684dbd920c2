// Running results along a dim.
#include <cmath>

#include "kiln/tensor/reduce/cumulative.h"
#include "tests/ops/call.h"

namespace kiln::ops {

KILN_OP_CASES(cumulative) {
  const double nan = std::nan("");
  const double inf = INFINITY;
  const auto big = [] { return std::vector<Input>{real({1 << 20})}; };
  const auto wide = [] { return std::vector<Input>{real({1024, 1024})}; };
  op("cumsum", "torch.cumsum(a, 1)", KILN_CALL(x[0].cumsum(1)), {real({3, 4})})
      .dtypes(kAll)
      .big(wide());
  op("cumsum", "torch.cumsum(a, 0)", KILN_CALL(x[0].cumsum(0)), {real({3, 4, 2})}).big(big());
  op("cumsum", "torch.cumsum(a, -1)", KILN_CALL(x[0].cumsum(-1)),
     {values({1, nan, 2, inf, -inf, 3}, {2, 3})});
  op("cumsum", "torch.cumsum(a, 0, dtype=torch.float64)", KILN_CALL(x[0].to(f64).cumsum(0)),
     {real({5})})
      .dtypes({f32, i32});
  op("cumsum", "torch.cumsum(a, 0)", KILN_CALL(x[0].cumsum(0)), {real({})});
  op("cumsum", "torch.cumsum(a, 1)", KILN_CALL(x[0].cumsum(1)), {real({2, 0})});
  op("cumprod", "torch.cumprod(a, 1)", KILN_CALL(cumprod(x[0], 1)), {real({3, 4})})
      .dtypes(kAll)
      .big({real({1024, 1024}, 0.9, 1.1)});
  op("cumprod", "torch.cumprod(a, 0)", KILN_CALL(cumprod(x[0], 0)), {real({3, 4, 2})})
      .big({real({1 << 20}, 0.9999, 1.0001)});
  op("cumprod", "torch.cumprod(a, 0)", KILN_CALL(cumprod(x[0], 0)), {real({})});
  op("cumprod", "torch.cumprod(a * torch.tensor([1., 0., 1., 0., 1.], dtype=a.dtype), 0)",
     KILN_CALL(cumprod(x[0] * tensor({1.0, 0.0, 1.0, 0.0, 1.0}, {x[0].dtype(), x[0].device()}), 0)),
     {real({5})})
      .dtypes(kDoubles);
  op("cumprod", "torch.cumprod(a, 0)", KILN_CALL(cumprod(x[0], 0)),
     {values({1e300, 1e300, 0, 5, nan, 1})})
      .dtypes({f64});
  op("cummax", "torch.cummax(a, 1)", KILN_CALL(cummax(x[0], 1)), {real({3, 5})})
      .dtypes(kAll)
      .big(wide());
  op("cummax", "torch.cummax(a, 0)", KILN_CALL(cummax(x[0], 0)),
     {values({1, 1, nan, 0, nan, inf, 2, 2})})
      .big(big());
  op("cummax", "torch.cummax(a, 0)", KILN_CALL(cummax(x[0], 0)), {real({})});
  op("cummin", "torch.cummin(a, 0)", KILN_CALL(cummin(x[0], 0)), {real({3, 5})})
      .dtypes(kAll)
      .big(wide());
  op("cummin", "torch.cummin(a, 0)", KILN_CALL(cummin(x[0], 0)), {values({3, 3, -inf, nan, 2})});
  op("logcumsumexp", "torch.logcumsumexp(a, 1)", KILN_CALL(logcumsumexp(x[0], 1)), {real({3, 5})})
      .big(wide());
  op("logcumsumexp", "torch.logcumsumexp(a, 0)", KILN_CALL(logcumsumexp(x[0], 0)),
     {real({6}, -50, 50)})
      .dtypes(kDoubles)
      .big(big());
  op("logcumsumexp", "torch.logcumsumexp(a, 0)", KILN_CALL(logcumsumexp(x[0], 0)),
     {values({-inf, -inf, 1, 800, inf, 2})})
      .dtypes(kDoubles);
  op("diff", "torch.diff(a)", KILN_CALL(diff(x[0])), {real({3, 5})}).dtypes(kAll).big(wide());
  op("diff", "torch.diff(a, n=2, dim=0, prepend=b, append=c)",
     KILN_CALL(diff(x[0], 2, 0, x[1], x[2])), {real({3, 5}), real({1, 5}), real({2, 5})});
  op("diff", "torch.diff(a, n=9)", KILN_CALL(diff(x[0], 9)), {real({3})});
  op("trapezoid", "torch.trapezoid(a)", KILN_CALL(trapezoid(x[0])), {real({3, 5})});
  op("trapezoid", "torch.trapezoid(a, dx=0.5, dim=0)", KILN_CALL(trapezoid(x[0], 0.5, 0)),
     {real({3, 5})});
  op("trapezoid", "torch.trapezoid(a, b)", KILN_CALL(trapezoid(x[0], x[1])),
     {real({3, 5}), real({5})});
  op("trapezoid", "torch.trapezoid(a, b, dim=0)", KILN_CALL(trapezoid(x[0], x[1], 0)),
     {real({3, 5}), real({3, 5})});
  op("cumulative_trapezoid", "torch.cumulative_trapezoid(a, dx=2.0)",
     KILN_CALL(cumulative_trapezoid(x[0], 2.0)), {real({3, 5})});
  op("cumulative_trapezoid", "torch.cumulative_trapezoid(a, b)",
     KILN_CALL(cumulative_trapezoid(x[0], x[1])), {real({3, 5}), real({5})});
  op("linear_scan", "torch.linear_scan(a, b, 1)", KILN_CALL(linear_scan(x[0], x[1], 1)),
     {real({3, 5}), real({3, 5})})
      .no_peer("PyTorch has no linear recurrences")
      .big({real({1024, 1024}, -1, 1), real({1024, 1024}, -1, 1)});
  op("linear_scan", "torch.linear_scan(a, b, 0, reversed=True)",
     KILN_CALL(linear_scan(x[0], x[1], 0, true)), {real({3, 5}), real({3, 5})})
      .no_peer("PyTorch has no linear recurrences");
}

}  // namespace kiln::ops
