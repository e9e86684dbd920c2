// Ops that only the Python package has, since they are short compositions: the C++ half of a case
// spells the composition.
#include "tests/ops/case.h"

namespace kiln::ops {
namespace {

TensorOptions like(const Tensor& x) { return {.dtype = x.dtype(), .device = x.device()}; }

}  // namespace

KILN_OP_CASES(compositions) {
  const auto pdist_of = [](double p) {
    return [p](const Tensors& x) {
      const int64_t n = x[0].size(0);
      const std::vector<Tensor> pair = triu_indices(n, n, 1).to(x[0].device()).unbind(0);
      const Tensor difference = x[0].index_select(0, pair[0]) - x[0].index_select(0, pair[1]);
      return cdist(difference.unsqueeze(1), zeros_like(difference).unsqueeze(1), p).flatten();
    };
  };
  op("pdist", "torch.pdist(a)", pdist_of(2.0), {real({5, 3})}).dtypes(kDoubles);
  op("pdist", "torch.pdist(a, 3.0)", pdist_of(3.0), {real({4, 3})}).dtypes(kDoubles);
  op("unravel_index", "torch.unravel_index(a, (3, 4, 5))",
     [](const Tensors& x) {
       return std::vector<Tensor>{floor_divide(x[0], 20), remainder(floor_divide(x[0], 5), 4),
                                  remainder(x[0], 5)};
     },
     {index({2, 7}, 0, 60)})
      .no_gradient();
  op("sum_to_size", "a.sum_to_size(3, 1)",
     [](const Tensors& x) {
       return x[0].sum({0, 2}, true).reshape({3, 1});
     },
     {real({2, 3, 4})})
      .dtypes(kFloats);
  op("Tensor.new_full", "a.new_full((2, 3), 5)",
     [](const Tensors& x) {
       return full({2, 3}, 5, like(x[0]));
     },
     {real({4})})
      .dtypes(kReals)
      .no_gradient();
  op("Tensor.new_ones", "a.new_ones(2, 3)",
     [](const Tensors& x) {
       return ones({2, 3}, like(x[0]));
     },
     {real({4})})
      .dtypes(kReals)
      .no_gradient();
  op("Tensor.new_zeros", "a.new_zeros((3,))",
     [](const Tensors& x) { return zeros({3}, like(x[0])); }, {real({4})})
      .dtypes(kReals)
      .no_gradient();
  op("nonzero_static", "torch.nonzero_static(a, size=4)",
     [](const Tensors& x) { return nonzero(x[0]).narrow(0, 0, 4); }, {values({1, 0, 2, 3, 4, 5})})
      .dtypes(kReals);
  op("nonzero_static", "torch.nonzero_static(a, size=3, fill_value=-7)",
     [](const Tensors& x) {
       const Tensor found = nonzero(x[0]);
       return cat({found, full_like(found, -7).narrow(0, 0, 1)});
     },
     {values({1, 0, 2, 0}, {2, 2})})
      .dtypes(kReals);
  op("narrow_copy", "torch.narrow_copy(a, 1, 1, 2)",
     [](const Tensors& x) { return x[0].narrow(1, 1, 2).clone(); }, {real({2, 4})});
  op("fill", "torch.fill(a, 2)", [](const Tensors& x) { return full_like(x[0], 2); },
     {constant({2, 3})})
      .dtypes(kReals);
  op("fill", "torch.fill(a, b)", [](const Tensors& x) { return x[1].expand(x[0].shape()).clone(); },
     {real({2, 3}), real({})});
  op("constant_pad_nd", "torch.constant_pad_nd(a, (1, 2), 3)",
     [](const Tensors& x) {
       return cat({full({2, 1}, 3, like(x[0])), x[0], full({2, 2}, 3, like(x[0]))}, 1);
     },
     {real({2, 3})});
  // PyTorch gives `a` the gradient of the places that it does not cover; tests/python/test_names.py
  // has the right one.
  op("as_strided_scatter", "torch.as_strided_scatter(a, b, (2, 2), (1, 3), 1)",
     [](const Tensors& x) {
       Tensor y = x[0].clone();
       y.narrow(1, 1, 2).copy_(x[1].t());
       return y;
     },
     {constant({2, 3}), real({2, 2})});
  op("histogramdd", "torch.histogramdd(a, [2, 3], range=[-1., 1., -2., 2.], weight=b)",
     [](const Tensors& x) {
       const std::vector<Tensor> column = x[0].unbind(1);
       const Tensor inside = column[0].abs().le(1);
       const Tensor box =
           column[0].ge(0).to(i64) * 3 +
           searchsorted(linspace(-2, 2, 4, like(x[0])), column[1], true).clamp(1, 3) - 1;
       const Tensor counts = bincount(masked_select(box, inside), masked_select(x[1], inside), 6);
       return Tensors{counts.to(x[0].dtype()).reshape({2, 3}), linspace(-1, 1, 3, like(x[0])),
                      linspace(-2, 2, 4, like(x[0]))};
     },
     {constant({30, 2}), constant({30}, 0.5, 2)})
      .dtypes(kDoubles);
}

}  // namespace kiln::ops
