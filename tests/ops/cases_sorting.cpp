// Sorting, searching, distinct values.
#include <cmath>

#include "tests/ops/call.h"

namespace kiln::ops {

namespace {

Tensors unique_parts(const Unique& u) {
  Tensors out{u.values};
  if (u.inverse.defined()) out.push_back(u.inverse);
  if (u.counts.defined()) out.push_back(u.counts);
  return out;
}

}  // namespace

KILN_OP_CASES(sorting) {
  const double nan = std::nan("");
  const double inf = INFINITY;
  const auto row = [] { return std::vector<Input>{real({1 << 20})}; };
  const auto wide = [] { return std::vector<Input>{real({1024, 1024})}; };
  op("sort", "torch.sort(a, stable=True)", KILN_CALL(x[0].sort()), {real({3, 5})})
      .dtypes(kAll)
      .big(row());
  op("sort", "torch.sort(a, 0, descending=True)", KILN_CALL(x[0].sort(0, true)), {real({6, 2})})
      .big(wide());
  op("sort", "torch.sort(a, stable=True)", KILN_CALL(x[0].sort()),
     {values({1, nan, -inf, 0, inf, nan, -0.0, 2})});
  op("argsort", "torch.argsort(a, dim=1, stable=True)", KILN_CALL(x[0].argsort(1)),
     {constant({3, 5})})
      .dtypes(kReals)
      .big({constant({1024, 1024})});
  op("msort", "torch.msort(a)", KILN_CALL(msort(x[0])), {real({4, 3})});
  op("topk", "torch.topk(a, 2)", KILN_CALL(x[0].topk(2)), {real({3, 6})}).big(row());
  op("topk", "torch.topk(a, 3, 0, largest=False)", KILN_CALL(x[0].topk(3, 0, false)),
     {real({5, 3})})
      .big({real({1024, 1024})});
  op("topk", "torch.topk(a, 2)[0]", KILN_CALL(x[0].topk(2).first), {real({3, 6})}).dtypes(kReals);
  op("topk", "torch.topk(a, 3)", KILN_CALL(x[0].topk(3)), {values({1, nan, 3, inf, 2})});
  op("kthvalue", "torch.kthvalue(a, 2)", KILN_CALL(x[0].kthvalue(2)), {real({3, 6})}).big(row());
  op("kthvalue", "torch.kthvalue(a, 3, 0, keepdim=True)", KILN_CALL(x[0].kthvalue(3, 0, true)),
     {real({5, 3})})
      .big(wide());
  op("median", "torch.median(a)", KILN_CALL(x[0].median()), {real({3, 4})})
      .dtypes(kReals)
      .big(row());
  op("median", "torch.median(a, 1)", KILN_CALL(x[0].median(1)), {real({3, 4})}).big(wide());
  op("median", "torch.median(a, 1)[0]", KILN_CALL(x[0].median(1).first),
     {values({1, nan, 3, 2, 5, 4}, {2, 3})});
  op("median", "torch.median(torch.round(a))", KILN_CALL(x[0].round().median()), {real({7})});
  op("nanmedian", "torch.nanmedian(a)", KILN_CALL(x[0].nanmedian()),
     {values({1, nan, 3, 2, nan, 4})});
  op("nanmedian", "torch.nanmedian(a, 1, keepdim=True)[0]",
     KILN_CALL(x[0].nanmedian(1, true).first), {values({1, nan, 3, 2, nan, nan}, {2, 3})});
  op("nanmedian", "torch.nanmedian(a, 0)", KILN_CALL(x[0].nanmedian(0)), {real({5, 3})});
  op("searchsorted", "torch.searchsorted(a, b)", KILN_CALL(searchsorted(x[0], x[1])),
     {values({-1, 0, 0, 1, 2}), constant({3, 4})})
      .dtypes(kReals)
      .big(
          {constant({1024}).then([](Tensor x) { return x.sort().first; }), constant({1024, 1024})});
  op("searchsorted", "torch.searchsorted(a, b, side='right', out_int32=True)",
     KILN_CALL(searchsorted(x[0], x[1], true, true)),
     {values({1, 3, 5, 2, 2, 8}, {2, 3}), values({2, 5, 9, 0, 8, 2, 3, 1}, {2, 4})})
      .dtypes(kReals);
  op("searchsorted", "torch.searchsorted(a, 2.5, right=True)",
     KILN_CALL(searchsorted(x[0], Scalar(2.5), true)), {values({1, 2, 3})});
  op("searchsorted", "torch.searchsorted(a, b, sorter=torch.argsort(a, stable=True))",
     KILN_CALL(searchsorted(x[0], x[1], false, false, x[0].argsort())),
     {constant({6}), constant({4})});
  op("bucketize", "torch.bucketize(a, b)", KILN_CALL(bucketize(x[0], x[1])),
     {constant({3, 4}), values({0, 1, 2})})
      .dtypes(kReals);
  op("bucketize", "torch.bucketize(a, b, right=True)", KILN_CALL(bucketize(x[0], x[1], true)),
     {values({nan, 1, -5, 9}), values({-1, 0, 1})});
}

KILN_OP_CASES(distinct) {
  const auto row = [] { return std::vector<Input>{index({1 << 20}, 0, 5000)}; };
  op("unique", "torch.unique(a)", KILN_CALL(unique(x[0]).values), {constant({3, 4})})
      .dtypes(kAll)
      .big({constant({1 << 20})});
  op("unique", "torch.unique(a, return_inverse=True, return_counts=True)",
     KILN_CALL(unique_parts(unique(x[0], true, true))), {index({4, 5}, -2, 3)})
      .dtypes({f32})
      .big(row());
  op("unique", "torch.unique(a, return_counts=True)",
     KILN_CALL(unique_parts(unique(x[0], false, true))), {index({0}, 0, 3)})
      .dtypes({f32});
  op("unique", "torch.unique(a, return_inverse=True, return_counts=True, dim=0)",
     KILN_CALL(unique_parts(unique(x[0], true, true, 0))), {index({8, 2}, 0, 2)})
      .dtypes({f32});
  op("unique", "torch.unique(a, dim=1)", KILN_CALL(unique(x[0], false, false, 1).values),
     {index({2, 9}, 0, 2)})
      .dtypes({f32});
  op("unique_consecutive", "torch.unique_consecutive(a, return_inverse=True, return_counts=True)",
     KILN_CALL(unique_parts(unique_consecutive(x[0], true, true))), {index({20}, 0, 2)})
      .dtypes({f32})
      .big(row());
  op("unique_consecutive", "torch.unique_consecutive(a, return_counts=True, dim=0)",
     KILN_CALL(unique_parts(unique_consecutive(x[0], false, true, 0))), {index({12, 1}, 0, 2)})
      .dtypes({f32});
}

}  // namespace kiln::ops
