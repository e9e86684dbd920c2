// Reading and writing at indices and masks.
#include <cmath>

#include "kiln/tensor/index/advanced_index.h"
#include "tests/ops/call.h"

namespace kiln::ops {

KILN_OP_CASES(index_put) {
  for (const bool accumulate : {false, true}) {
    const std::string rest = accumulate ? "((b,), c, True)" : "((b,), c)";
    const auto put = [accumulate](const Tensors& x) {
      Tensor y = x[0].clone();
      index_put_(y, std::vector<IndexEntry>{x[1]}, x[2], accumulate);
      return y;
    };
    // Without accumulation each row once: which of two writes stays is not defined.
    const Input rows = indices({4, 0, 2}, {3});
    op("Tensor.index_put", "a.index_put" + rest, put, {real({5, 2}), rows, real({3, 2})})
        .dtypes(kReals);
    op("Tensor.index_put_", "a.clone().index_put_" + rest, put, {real({5, 2}), rows, real({2})});
  }
}

KILN_OP_CASES(reading) {
  op("gather", "torch.gather(a, 1, b)", KILN_CALL(x[0].gather(1, x[1])),
     {real({3, 5}), index({3, 4}, 0, 5)})
      .dtypes(kAll)
      .big({real({1024, 1024}), index({1024, 1024}, 0, 1024)});
  op("gather", "torch.gather(a, 0, b)", KILN_CALL(x[0].gather(0, x[1])),
     {real({3, 5}), index({4, 2}, 0, 3)})
      .big({real({1024, 1024}), index({1024, 1024}, 0, 1024)});
  op("index_select", "torch.index_select(a, 0, b)", KILN_CALL(x[0].index_select(0, x[1])),
     {real({4, 3}), index({6}, 0, 4)})
      .dtypes(kAll)
      .big({real({1024, 1024}), index({1024}, 0, 1024)});
  op("index_select", "torch.index_select(a, 1, b)", KILN_CALL(x[0].index_select(1, x[1])),
     {real({2, 3, 2}), index({4}, 0, 3)})
      .big({real({1024, 1024}), index({1024}, 0, 1024)});
  op("take", "torch.take(a, b)", KILN_CALL(take(x[0], x[1])),
     {real({3, 5}), index({2, 4}, -15, 15)})
      .dtypes(kAll)
      .big({real({1024, 1024}), index({1 << 20}, 0, 1 << 20)});
  op("take_along_dim", "torch.take_along_dim(a, b, 1)", KILN_CALL(take_along_dim(x[0], x[1], 1)),
     {real({3, 5}), index({1, 4}, 0, 5)});
  op("take_along_dim", "torch.take_along_dim(a, b)", KILN_CALL(take_along_dim(x[0], x[1])),
     {real({3, 5}), index({7}, 0, 15)});
  op("masked_select", "torch.masked_select(a, b)", KILN_CALL(masked_select(x[0], x[1])),
     {real({3, 5}), mask({3, 5})})
      .dtypes(kAll)
      .big({real({1024, 1024}), mask({1024, 1024})});
  op("masked_select", "torch.masked_select(a, b)", KILN_CALL(masked_select(x[0], x[1])),
     {real({3, 1}), mask({4})});
  op("nonzero", "torch.nonzero(a)", KILN_CALL(nonzero(x[0])), {mask({3, 4, 2})})
      .dtypes({f32})
      .big({mask({1024, 1024})});
  op("nonzero", "torch.nonzero(torch.round(a))", KILN_CALL(nonzero(x[0].round())), {constant({9})})
      .big({constant({1 << 20})});
  op("nonzero", "torch.nonzero(a, as_tuple=True)", KILN_CALL(where(x[0])), {mask({3, 4})})
      .dtypes({f32});
  op("argwhere", "torch.argwhere(a)", KILN_CALL(argwhere(x[0])), {mask({3, 4})}).dtypes({f32});
  op("where", "torch.where(a, b, c)", KILN_CALL(where(x[0], x[1], x[2])),
     {mask({3, 4}), real({4}), real({3, 1})})
      .dtypes(kAll)
      .big({mask({1024, 1024}), real({1024, 1024}), real({1024, 1024})});
  op("where", "torch.where(a)", KILN_CALL(where(x[0])), {mask({3, 4})}).dtypes({f32});
  op("gather_nd", "torch.gather_nd(a, b)", KILN_CALL(gather_nd(x[0], x[1])),
     {real({3, 4, 2}), index({5, 2}, 0, 3)})
      .no_peer("Burn's op; PyTorch has none of this name");
}

KILN_OP_CASES(scattering) {
  const double nan = std::nan("");
  // Indices without repetition along dim 0.
  const auto distinct = [] { return indices({0, 2, 1, 3, 3, 0}, {2, 3}); };
  op("scatter", "torch.scatter(a, 0, b, c)", KILN_CALL(x[0].scatter(0, x[1], x[2])),
     {real({4, 3}), distinct(), real({2, 3})})
      .dtypes(kAll);
  op("scatter", "torch.scatter(a, 0, b, 1.5)", KILN_CALL(scatter(x[0], 0, x[1], Scalar(1.5))),
     {real({4, 3}), distinct()});
  op("scatter", "torch.scatter(a, 0, b, c, reduce='add')",
     KILN_CALL(scatter(x[0], 0, x[1], x[2], "add")),
     {constant({4, 3}), distinct(), constant({2, 3})})
      .dtypes(kReals);
  op("scatter", "torch.scatter(a, 0, b, c, reduce='multiply')",
     KILN_CALL(scatter(x[0], 0, x[1], x[2], "multiply")),
     {constant({4, 3}), distinct(), constant({2, 3})})
      .dtypes(kReals);
  op("scatter_add", "torch.scatter_add(a, 1, b, c)", KILN_CALL(x[0].scatter_add(1, x[1], x[2])),
     {real({3, 4}), index({3, 6}, 0, 4), real({3, 6})})
      .dtypes(kReals)
      .loose(4)
      .big({real({1024, 1024}), index({1024, 1024}, 0, 1024), real({1024, 1024})});
  for (const std::string reduce : {"sum", "prod", "mean", "amax", "amin"}) {
    for (const bool include_self : {true, false}) {
      op("scatter_reduce",
         "torch.scatter_reduce(a, 1, b, c, '" + reduce +
             "', include_self=" + (include_self ? "True" : "False") + ")",
         [=](const Tensors& x) {
           return scatter_reduce(x[0], 1, x[1], x[2], reduce, include_self);
         },
         {real({3, 5}), index({3, 4}, 0, 4), real({3, 4})})
          .dtypes(kReals)
          .loose(4)
          .big({real({1024, 1024}), index({1024, 1024}, 0, 1024), real({1024, 1024}, 0.9, 1.1)});
    }
  }
  op("scatter_reduce", "torch.scatter_reduce(a, 0, b, c, 'amax')",
     KILN_CALL(scatter_reduce(x[0], 0, x[1], x[2], "amax")),
     {values({1, nan, 2}), indices({0, 1, 2, 2}, {4}), values({nan, 5, INFINITY, -INFINITY})});
  op("index_add", "torch.index_add(a, 0, b, c)", KILN_CALL(x[0].index_add(0, x[1], x[2])),
     {real({4, 3}), index({6}, 0, 4), real({6, 3})})
      .dtypes(kAll)
      .loose(4)
      .big({real({1024, 1024}), index({1024}, 0, 1024), real({1024, 1024})});
  op("Tensor.index_add_", "a.clone().index_add_(1, b, c, alpha=2)",
     [](const Tensors& x) {
       Tensor y = x[0].clone();
       return index_add_(y, 1, x[1], x[2], 2);
     },
     {real({2, 3}), index({4}, 0, 3), real({2, 4})});
  op("index_copy", "torch.index_copy(a, 0, b, c)", KILN_CALL(index_copy(x[0], 0, x[1], x[2])),
     {real({4, 3}), indices({2, 0}, {2}), real({2, 3})})
      .dtypes(kAll)
      .big({real({1024, 1024}), index({1024}, 0, 1024), real({1024, 1024})});
  op("index_fill", "torch.index_fill(a, 1, b, 2)", KILN_CALL(index_fill(x[0], 1, x[1], Scalar(2))),
     {real({4, 3}), indices({2, 0}, {2})})
      .dtypes(kReals);
  for (const std::string reduce : {"prod", "mean", "amax", "amin"}) {
    op("index_reduce", "torch.index_reduce(a, 0, b, c, '" + reduce + "')",
       [=](const Tensors& x) { return index_reduce(x[0], 0, x[1], x[2], reduce); },
       {real({4, 3}), index({5}, 0, 4), real({5, 3})})
        .dtypes(kDoubles)
        .big({real({1024, 1024}), index({1024}, 0, 1024), real({1024, 1024})});
  }
  op("index_reduce", "torch.index_reduce(a, 1, b, c, 'amin', include_self=False)",
     KILN_CALL(index_reduce(x[0], 1, x[1], x[2], "amin", false)),
     {real({4, 3}), indices({2, 0, 2}, {3}), real({4, 3})})
      .dtypes(kDoubles);
  op("put", "torch.put(a, b, c)", KILN_CALL(put(x[0], x[1], x[2])),
     {real({3, 4}), indices({-1, 3, 0}, {3}), real({3})})
      .dtypes(kAll);
  op("put", "torch.put(a, b, c, accumulate=True)", KILN_CALL(put(x[0], x[1], x[2], true)),
     {real({3, 4}), indices({5, 5, 0}, {3}), real({3})})
      .dtypes(kReals);
  op("scatter_nd", "torch.scatter_nd(a, b, c)", KILN_CALL(scatter_nd(x[0], x[1], x[2])),
     {real({3, 4, 2}), indices({0, 1, 2, 3, 1, 1}, {3, 2}), real({3, 2})})
      .no_peer("Burn's op; PyTorch has none of this name");
  op("scatter_nd", "torch.scatter_nd(a, b, c, reduce='sum')",
     KILN_CALL(scatter_nd(x[0], x[1], x[2], "sum")),
     {real({3, 4}), indices({0, 2, 0}, {3, 1}), real({3, 4})})
      .no_peer("Burn's op; PyTorch has none of this name");
}

KILN_OP_CASES(masks_and_parts) {
  op("masked_fill", "torch.masked_fill(a, b, 2)", KILN_CALL(x[0].masked_fill(x[1], 2)),
     {real({3, 4}), mask({4})})
      .dtypes(kReals)
      .big({real({1024, 1024}), mask({1024, 1024})});
  op("masked_fill", "torch.masked_fill(a, b, c)", KILN_CALL(masked_fill(x[0], x[1], x[2])),
     {real({3, 4}), mask({3, 4}), real({})});
  op("masked_scatter", "torch.masked_scatter(a, b, c)", KILN_CALL(masked_scatter(x[0], x[1], x[2])),
     {real({3, 4}), mask({3, 4}), real({13})})
      .dtypes(kAll)
      .big({real({1024, 1024}), mask({1024, 1024}), real({1024, 1024})});
  op("select_scatter", "torch.select_scatter(a, b, 1, 2)",
     KILN_CALL(select_scatter(x[0], x[1], 1, 2)), {real({3, 4}), real({3})})
      .dtypes(kAll);
  op("slice_scatter", "torch.slice_scatter(a, b, 1, 1, 6, 2)",
     KILN_CALL(slice_scatter(x[0], x[1], 1, 1, 6, 2)), {real({2, 7}), real({2, 3})})
      .dtypes(kAll);
  op("diagonal_scatter", "torch.diagonal_scatter(a, b, 1)",
     KILN_CALL(diagonal_scatter(x[0], x[1], 1)), {real({3, 4}), real({3})})
      .dtypes(kAll);
  op("Tensor.fill_diagonal_", "a.clone().fill_diagonal_(3)",
     [](const Tensors& x) {
       Tensor y = x[0].clone();
       return fill_diagonal_(y, 3);
     },
     {real({5, 3})})
      .dtypes(kReals);
  op("Tensor.fill_diagonal_", "a.clone().fill_diagonal_(3, wrap=True)",
     [](const Tensors& x) {
       Tensor y = x[0].clone();
       return fill_diagonal_(y, 3, true);
     },
     {real({7, 3})});
}

}  // namespace kiln::ops
