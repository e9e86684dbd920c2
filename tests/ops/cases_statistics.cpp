// Quantiles, modes, histograms, covariances.
#include <cmath>

#include "tests/ops/call.h"

namespace kiln::ops {

KILN_OP_CASES(statistics) {
  const double nan = std::nan("");
  const auto q_row = [] { return values({0, 0.1, 0.5, 0.77, 1}); };
  const auto row = [] { return std::vector<Input>{real({1 << 20})}; };
  op("quantile", "torch.quantile(a, 0.3)", KILN_CALL(quantile(x[0], 0.3)), {real({3, 5})})
      .dtypes(kDoubles)
      .big(row());
  op("quantile", "torch.quantile(a, b, 1)", KILN_CALL(quantile(x[0], x[1], 1)),
     {real({3, 6}), q_row()})
      .dtypes(kDoubles);
  op("quantile", "torch.quantile(a, b, 0, keepdim=True)", KILN_CALL(quantile(x[0], x[1], 0, true)),
     {real({6, 2}), q_row()})
      .dtypes(kDoubles);
  for (const std::string between : {"lower", "higher", "midpoint", "nearest"}) {
    op("quantile", "torch.quantile(a, b, 1, interpolation='" + between + "')",
       [between](const Tensors& x) { return quantile(x[0], x[1], 1, false, between); },
       {real({3, 6}), q_row()})
        .dtypes(kDoubles);
  }
  op("quantile", "torch.quantile(a, 0.5, 1)", KILN_CALL(quantile(x[0], 0.5, 1)),
     {values({1, nan, 2, 3, 4, 5}, {2, 3})})
      .dtypes(kDoubles);
  op("nanquantile", "torch.nanquantile(a, b, 1)", KILN_CALL(nanquantile(x[0], x[1], 1)),
     {values({1, nan, 2, 7, nan, nan, nan, nan, 4, 5, 6, 0}, {3, 4}), q_row()})
      .dtypes(kDoubles);
  op("nanquantile", "torch.nanquantile(a, 0.25)", KILN_CALL(nanquantile(x[0], 0.25)),
     {real({3, 5})})
      .dtypes(kDoubles);
  op("mode", "torch.mode(a)[0]", KILN_CALL(mode(x[0]).first), {real({4, 9})}).dtypes(kReals);
  op("mode", "torch.mode(a, 0, keepdim=True)", KILN_CALL(mode(x[0], 0, true)),
     {values({1, 2, 2, 3, 1, 2, 5, 2, 1, 3}, {5, 2})});
  op("bincount", "torch.bincount(a)", KILN_CALL(bincount(x[0])), {index({20}, 0, 6)})
      .dtypes({f32})
      .big({index({1 << 20}, 0, 1000)});
  op("bincount", "torch.bincount(a, b, minlength=9)", KILN_CALL(bincount(x[0], x[1], 9)),
     {index({20}, 0, 6), constant({20})})
      .dtypes(kDoubles)
      .big({index({1 << 20}, 0, 1000), constant({1 << 20})});
  op("histc", "torch.histc(a, 5)", KILN_CALL(histc(x[0], 5)), {constant({30})}).dtypes(kDoubles);
  op("histc", "torch.histc(a, 4, -1, 1)", KILN_CALL(histc(x[0], 4, -1, 1)),
     {values({-1, 1, 0, 2, -2, 0.5, nan})})
      .dtypes(kDoubles)
      .big({constant({1 << 20})});
  op("histogram", "torch.histogram(a, 5)", KILN_CALL(histogram(x[0], 5)), {constant({30})})
      .dtypes(kDoubles);
  op("histogram", "torch.histogram(a, 4, range=(-1., 1.), weight=b, density=True)",
     KILN_CALL(histogram(x[0], 4, {.range = {{-1.0, 1.0}}, .weight = x[1], .density = true})),
     {constant({30}), constant({30}, 0.5, 2)})
      .dtypes(kDoubles);
  op("histogram", "torch.histogram(a, b)", KILN_CALL(histogram(x[0], x[1])),
     {constant({3, 10}), values({-1, 0, 0.5, 2})})
      .dtypes(kDoubles);
  op("cov", "torch.cov(a)", KILN_CALL(cov(x[0])), {real({3, 6})}).dtypes(kDoubles);
  op("cov", "torch.cov(a, correction=0)", KILN_CALL(cov(x[0], 0)), {real({6})}).dtypes(kDoubles);
  op("cov", "torch.cov(a, fweights=b, aweights=c)", KILN_CALL(cov(x[0], 1, x[1], x[2])),
     {real({3, 6}), indices({1, 2, 1, 3, 2, 1}, {6}), constant({6}, 0.5, 2)})
      .dtypes(kDoubles);
  op("corrcoef", "torch.corrcoef(a)", KILN_CALL(corrcoef(x[0])), {real({3, 6})})
      .dtypes(kDoubles)
      .gradient_tolerance(1e-5);
  op("gradient", "torch.gradient(a)", KILN_CALL(gradient(x[0])), {real({4, 5})}).dtypes(kDoubles);
  op("gradient", "torch.gradient(a, spacing=0.5, dim=(1, 0), edge_order=2)",
     KILN_CALL(gradient(x[0], 0.5, {1, 0}, 2)), {real({4, 5})})
      .dtypes({f64, f32, DType::c128})
      .big({real({1024, 1024})});
  op("gradient", "torch.gradient(a, spacing=(0.5, 2.))",
     KILN_CALL(gradient(x[0], std::vector<double>{0.5, 2})), {real({4, 5})})
      .dtypes(kDoubles);
  for (const int order : {1, 2}) {
    op("gradient", concat("torch.gradient(a, spacing=(b,), dim=1, edge_order=", order, ")"),
       [order](const Tensors& x) { return gradient(x[0], std::vector<Tensor>{x[1]}, {1}, order); },
       {real({3, 5}), values({-1, 0.5, 1, 3, 3.5})})
        .dtypes(kDoubles);
  }
  op("gradient", "torch.gradient(a, dim=-1)", KILN_CALL(gradient(x[0], 1.0, {-1})), {real({2, 4})})
      .dtypes({i64, i32, u8})
      .no_gradient();
  for (const std::string p : {"1", "2", "inf", "2.5"}) {
    op("renorm", "torch.renorm(a, " + p + ", 1, 1.5)",
       [p](const Tensors& x) { return renorm(x[0], std::stod(p), 1, 1.5); }, {real({3, 4, 2})});
  }
  op("renorm", "torch.renorm(a, 2, 0, 3.5)", KILN_CALL(renorm(x[0], 2, 0, 3.5)), {real({6, 7})})
      .big({real({1024, 1024})});
  op("renorm", "torch.renorm(a, 2, 0, 2)", KILN_CALL(renorm(x[0], 2, 0, 2)), {complex_({3, 4})})
      .dtypes(kComplex);
  op("Tensor.renorm_", "a.clone().renorm_(2, 0, 1.5)",
     [](const Tensors& x) {
       Tensor y = x[0].clone();
       renorm_(y, 2, 0, 1.5);
       return y;
     },
     {real({3, 4})});
}

}  // namespace kiln::ops
