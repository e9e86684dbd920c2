// Tensors made from nothing, and grids, triangles and combinations of given ones.
#include "tests/ops/case.h"

namespace kiln::ops {

KILN_OP_CASES(sequences) {
  const auto made = [](const char* name, const char* python, auto f) -> Case& {
    return op(name, python, [f](const Tensors&) { return f(); }, {}).dtypes({f32}).no_gradient();
  };
  made("arange", "torch.arange(5)", [] { return arange(5); });
  made("arange", "torch.arange(1, 4)", [] { return arange(1, 4); });
  made("arange", "torch.arange(1, 2.5, 0.5)", [] { return arange(1, 2.5, 0.5); });
  made("arange", "torch.arange(5, 1, -2)", [] { return arange(5, 1, -2); });
  made("arange", "torch.arange(0.5, 3, dtype=torch.float64)",
       [] { return arange(0.5, 3, 1, {f64}); });
  made("arange", "torch.arange(0, 1, 0.1, dtype=torch.float16)",
       [] { return arange(0, 1, 0.1, {f16}); });
  made("range", "torch.range(1, 4)", [] { return kiln::range(1, 4); });
  made("range", "torch.range(1, 4, 0.5)", [] { return kiln::range(1, 4, 0.5); });
  made("linspace", "torch.linspace(3, 10, 5)", [] { return linspace(3, 10, 5); });
  made("linspace", "torch.linspace(-1, 1, 1)", [] { return linspace(-1, 1, 1); });
  made("linspace", "torch.linspace(0, 10, 0)", [] { return linspace(0, 10, 0); });
  made("logspace", "torch.logspace(-2, 2, 5)", [] { return logspace(-2, 2, 5); });
  made("logspace", "torch.logspace(0, 8, 5, base=2.0)", [] { return logspace(0, 8, 5, 2); });
  made("eye", "torch.eye(3)", [] { return eye(3); });
  made("eye", "torch.eye(2, 4)", [] { return eye(2, 4); });
  made("eye", "torch.eye(4, 2, dtype=torch.int64)", [] { return eye(4, 2, {i64}); });
  made("full", "torch.full((2, 3), 7)", [] { return full({2, 3}, 7); });
  made("full", "torch.full((2, 3), 1.5)", [] { return full({2, 3}, 1.5); });
  made("full", "torch.full((), True)", [] { return full({}, true); });
  made("zeros", "torch.zeros(2, 0, 3)", [] { return zeros({2, 0, 3}); });
  made("ones", "torch.ones(2, 3, dtype=torch.bool)", [] { return ones({2, 3}, {bool_}); });
  made("scalar_tensor", "torch.scalar_tensor(3)", [] { return scalar_tensor(3); });
  for (const int64_t offset : {-2, 0, 1, 5}) {
    const std::string text = std::to_string(offset);
    op("tril_indices", "torch.tril_indices(3, 4, " + text + ")",
       [offset](const Tensors&) { return tril_indices(3, 4, offset); }, {})
        .dtypes({f32});
    op("triu_indices", "torch.triu_indices(4, 3, " + text + ")",
       [offset](const Tensors&) { return triu_indices(4, 3, offset); }, {})
        .dtypes({f32});
    op("tril", "torch.tril(a, " + text + ")",
       [offset](const Tensors& x) { return tril(x[0], offset); }, {real({2, 4, 3})})
        .dtypes(kAll);
    op("triu", "torch.triu(a, " + text + ")",
       [offset](const Tensors& x) { return triu(x[0], offset); }, {real({3, 5})})
        .dtypes(kAll);
  }
  op("nn.functional.one_hot", "F.one_hot(a, 5)", [](const Tensors& x) { return one_hot(x[0], 5); },
     {index({2, 3}, 0, 5)})
      .dtypes({f32});
  op("tril", "torch.tril(a)", [](const Tensors& x) { return tril(x[0]); }, {real({4, 4})})
      .big({real({1024, 1024})});
  op("triu", "torch.triu(a)", [](const Tensors& x) { return triu(x[0]); }, {real({0, 3})});
}

KILN_OP_CASES(likes) {
  op("zeros_like", "torch.zeros_like(a)", [](const Tensors& x) { return zeros_like(x[0]); },
     {constant({2, 3})})
      .dtypes(kAll);
  op("ones_like", "torch.ones_like(a)", [](const Tensors& x) { return ones_like(x[0]); },
     {constant({2, 3})})
      .dtypes(kAll);
  op("full_like", "torch.full_like(a, 3)", [](const Tensors& x) { return full_like(x[0], 3); },
     {constant({2, 3})})
      .dtypes(kAll);
  op("empty_like", "torch.empty_like(a)", [](const Tensors& x) { return empty_like(x[0]); },
     {constant({2, 3})})
      .dtypes(kAll)
      .shapes_only("its values are not initialized");
}

KILN_OP_CASES(grids) {
  op("meshgrid", "torch.meshgrid(a, b, indexing='ij')",
     [](const Tensors& x) { return meshgrid(x); }, {real({3}), real({2})})
      .dtypes(kAll);
  op("meshgrid", "torch.meshgrid(a, b, c, indexing='xy')",
     [](const Tensors& x) { return meshgrid(x, "xy"); }, {real({3}), real({2}), real({})});
  op("cartesian_prod", "torch.cartesian_prod(a, b)",
     [](const Tensors& x) { return cartesian_prod(x); }, {real({3}), real({2})})
      .dtypes(kAll);
  op("cartesian_prod", "torch.cartesian_prod(a)",
     [](const Tensors& x) { return cartesian_prod(x); }, {real({3})});
  op("combinations", "torch.combinations(a)", [](const Tensors& x) { return combinations(x[0]); },
     {real({4})})
      .dtypes(kAll);
  op("combinations", "torch.combinations(a, 3, with_replacement=True)",
     [](const Tensors& x) { return combinations(x[0], 3, true); }, {real({3})});
  op("combinations", "torch.combinations(a, 5)",
     [](const Tensors& x) { return combinations(x[0], 5); }, {real({4})});
  op("vander", "torch.vander(a)", [](const Tensors& x) { return vander(x[0]); },
     {real({4}, 0.5, 2)})
      .dtypes({f64, f32, i64, i32, i16, i8, u8, bool_});
  op("vander", "torch.vander(a, 3, increasing=True)",
     [](const Tensors& x) { return vander(x[0], 3, true); }, {real({4}, 0.5, 2)})
      .dtypes({f64, f32, i64});
}

KILN_OP_CASES(random) {
  const char* const why = "random numbers";
  op("normal", "torch.normal(a, b)", [](const Tensors& x) { return normal(x[0], x[1]); },
     {constant({3, 1}), constant({4}, 0.5, 2)})
      .shapes_only(why);
  op("bernoulli", "torch.bernoulli(a)", [](const Tensors& x) { return bernoulli(x[0]); },
     {constant({3, 4}, 0, 1)})
      .shapes_only(why);
  op("multinomial", "torch.multinomial(a, 2)",
     [](const Tensors& x) { return multinomial(x[0], 2); }, {constant({3, 4}, 0.1, 1)})
      .shapes_only(why);
  op("multinomial", "torch.multinomial(a, 7, replacement=True)",
     [](const Tensors& x) { return multinomial(x[0], 7, true); }, {constant({4}, 0.1, 1)})
      .shapes_only(why);
  op("poisson", "torch.poisson(a)", [](const Tensors& x) { return poisson(x[0]); },
     {constant({3, 4}, 0, 20)})
      .shapes_only(why);
  op("binomial", "torch.binomial(a, b)", [](const Tensors& x) { return binomial(x[0], x[1]); },
     {values({1, 10, 100}, {3, 1}), constant({3, 4}, 0, 1)})
      .dtypes(kDoubles)
      .shapes_only(why)
      .no_peer("PyTorch does not broadcast these");
  op("randint_like", "torch.randint_like(a, 2, 9)",
     [](const Tensors& x) { return randint_like(x[0], 2, 9); }, {constant({3, 4})})
      .dtypes(kReals)
      .shapes_only(why);
#define KILN_FILLING(name, python, ...)    \
  op("Tensor." #name, "a.clone()." python, \
     [](const Tensors& v) {                \
       Tensor x = v[0].clone();            \
       return __VA_ARGS__;                 \
     },                                    \
     {constant({3, 4})})                   \
      .shapes_only(why)
  KILN_FILLING(uniform_, "uniform_(-1, 1)", uniform_(x, -1, 1));
  KILN_FILLING(normal_, "normal_(1, 2)", normal_(x, 1, 2));
  KILN_FILLING(exponential_, "exponential_(2)", exponential_(x, 2));
  KILN_FILLING(geometric_, "geometric_(0.3)", geometric_(x, 0.3)).dtypes(kReals);
  KILN_FILLING(cauchy_, "cauchy_()", cauchy_(x));
  KILN_FILLING(log_normal_, "log_normal_()", log_normal_(x));
  KILN_FILLING(bernoulli_, "bernoulli_(0.3)", bernoulli_(x, 0.3)).dtypes(kAll);
  KILN_FILLING(random_, "random_()", random_(x)).dtypes(kReals);
  KILN_FILLING(random_, "random_(5)", random_(x, 5)).dtypes(kReals);
  KILN_FILLING(random_, "random_(3, 9)", random_(x, 3, 9)).dtypes(kReals);
#undef KILN_FILLING
}

}  // namespace kiln::ops
