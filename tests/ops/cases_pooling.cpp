// Pooling.
#include "tests/ops/case.h"

namespace kiln::ops {

namespace F = kiln::functional;

KILN_OP_CASES(pooling) {
  op("nn.functional.max_pool1d", "F.max_pool1d(a, 3, 2, 1, 1, True, True)",
     [](const Tensors& x) { return F::max_pool1d_with_indices(x[0], 3, Sizes(2), 1, 1, true); },
     {real({2, 3, 8})})
      .big({real({16, 64, 1024})});
  op("nn.functional.max_pool1d", "F.max_pool1d(a, 2, None, 0, 2)",
     [](const Tensors& x) { return F::max_pool1d(x[0], 2, {}, 0, 2); }, {real({3, 8})});
  op("nn.functional.max_pool2d", "F.max_pool2d(a, (3, 2), (2, 1), (1, 1), 1, False, True)",
     [](const Tensors& x) {
       return F::max_pool2d_with_indices(x[0], {3, 2}, Sizes(2, 1), {1, 1});
     },
     {real({2, 3, 5, 6})})
      .big({real({8, 32, 64, 64})});
  op("nn.functional.max_pool2d", "F.max_pool2d(a, 2, 1, return_indices=True)",
     [](const Tensors& x) { return F::max_pool2d_with_indices(x[0], 2, Sizes(1)); },
     {constant({3, 5, 6}, -100, 100)})
      .dtypes({i64, i32, i16, i8});
  op("nn.functional.max_pool3d", "F.max_pool3d(a + 2**60, 2, 1, 1, return_indices=True)",
     [](const Tensors& x) {
       return F::max_pool3d_with_indices(x[0] + (int64_t{1} << 60), 2, Sizes(1), 1);
     },
     {constant({1, 3, 4, 3}, -100, 100)})
      .dtypes({i64});
  op("nn.functional.max_pool2d", "F.max_pool2d(a, 2, ceil_mode=True)",
     [](const Tensors& x) { return F::max_pool2d(x[0], Sizes(2), {}, 0, 1, true); },
     {real({3, 5, 5})});
  op("nn.functional.max_pool2d", "F.max_pool2d(a, 3, 1, 1, 2)",
     [](const Tensors& x) { return F::max_pool2d(x[0], 3, Sizes(1), 1, 2); }, {real({1, 1, 5, 5})});
  op("nn.functional.max_pool3d", "F.max_pool3d(a, 2, 1, 1, 1, False, True)",
     [](const Tensors& x) { return F::max_pool3d_with_indices(x[0], 2, Sizes(1), 1); },
     {real({1, 2, 3, 4, 3})})
      .big({real({2, 8, 32, 64, 64})});
  op("nn.functional.max_pool3d", "F.max_pool3d(a, (2, 3, 1), None, (1, 0, 0), (1, 1, 2), True)",
     [](const Tensors& x) {
       return F::max_pool3d(x[0], {2, 3, 1}, {}, {1, 0, 0}, {1, 1, 2}, true);
     },
     {real({2, 3, 5, 3})});
  op("nn.functional.max_pool3d", "F.max_pool3d(a, 2, return_indices=True)",
     [](const Tensors& x) { return F::max_pool3d_with_indices(x[0], 2); },
     {values({1, 1, 1, 1, 1, 1, 1, 1, 0, 2, 0, 2, 2, 0, 2, 0}, {1, 2, 2, 2, 2})});
  op("nn.functional.avg_pool1d", "F.avg_pool1d(a, 3, 2, 1, True, False)",
     [](const Tensors& x) { return F::avg_pool1d(x[0], 3, Sizes(2), 1, true, false); },
     {real({2, 3, 8})});
  op("nn.functional.avg_pool2d", "F.avg_pool2d(a, (3, 2), (2, 1), (1, 1), False, True)",
     [](const Tensors& x) {
       return F::avg_pool2d(x[0], {3, 2}, Sizes(2, 1), {1, 1});
     },
     {real({2, 3, 5, 6})})
      .big({real({8, 32, 64, 64})});
  op("nn.functional.avg_pool2d", "F.avg_pool2d(a, 3, 2, 1, True, False, 5)",
     [](const Tensors& x) { return F::avg_pool2d(x[0], 3, Sizes(2), 1, true, false, 5); },
     {real({3, 6, 6})});
  op("nn.functional.avg_pool2d", "F.avg_pool2d(a, 2, divisor_override=3)",
     [](const Tensors& x) { return F::avg_pool2d(x[0], 2, {}, 0, false, true, 3); },
     {real({3, 6, 6})});
  op("nn.functional.avg_pool3d", "F.avg_pool3d(a, 2, 1, 1, False, False)",
     [](const Tensors& x) { return F::avg_pool3d(x[0], 2, Sizes(1), 1, false, false); },
     {real({1, 2, 3, 4, 3})})
      .big({real({2, 8, 32, 64, 64})});
  op("nn.functional.avg_pool3d", "F.avg_pool3d(a, (2, 3, 2), 2, (1, 1, 0), True)",
     [](const Tensors& x) {
       return F::avg_pool3d(x[0], {2, 3, 2}, Sizes(2), {1, 1, 0}, true);
     },
     {real({2, 4, 5, 5})});
  op("nn.functional.avg_pool3d", "F.avg_pool3d(a, 2, 2, 1, True, True, 7)",
     [](const Tensors& x) { return F::avg_pool3d(x[0], 2, Sizes(2), 1, true, true, 7); },
     {real({2, 4, 5, 5})});
  op("nn.functional.lp_pool1d", "F.lp_pool1d(a, 2, 3, 2, True)",
     [](const Tensors& x) { return F::lp_pool1d(x[0], 2, 3, Sizes(2), true); },
     {real({2, 2, 8}).away_from(0)})
      .loose(2);
  op("nn.functional.lp_pool2d", "F.lp_pool2d(a, 3, (2, 3))",
     [](const Tensors& x) {
       return F::lp_pool2d(x[0], 3, {2, 3});
     },
     {real({2, 4, 6}, 0.5, 2)})
      .loose(2);
  op("nn.functional.lp_pool3d", "F.lp_pool3d(a, 2, 2)",
     [](const Tensors& x) { return F::lp_pool3d(x[0], 2, 2); }, {real({1, 2, 4, 4, 2}, 0.5, 2)})
      .loose(2);
  op("nn.functional.max_unpool1d", "F.max_unpool1d(*F.max_pool1d(a, 2, return_indices=True), 2)",
     [](const Tensors& x) {
       const auto [y, i] = F::max_pool1d_with_indices(x[0], 2);
       return F::max_unpool1d(y, i, 2);
     },
     {real({2, 2, 8})});
  op("nn.functional.max_unpool2d",
     "F.max_unpool2d(*F.max_pool2d(a, 2, return_indices=True), 2, output_size=(5, 5))",
     [](const Tensors& x) {
       const auto [y, i] = F::max_pool2d_with_indices(x[0], 2);
       return F::max_unpool2d(y, i, 2, {}, 0, Shape{5, 5});
     },
     {real({2, 2, 5, 5})});
  op("nn.functional.max_unpool3d", "F.max_unpool3d(*F.max_pool3d(a, 2, return_indices=True), 2)",
     [](const Tensors& x) {
       const auto [y, i] = F::max_pool3d_with_indices(x[0], 2);
       return F::max_unpool3d(y, i, 2);
     },
     {real({2, 4, 2, 4})});
}

KILN_OP_CASES(fractional_pooling) {
  const auto samples = [](const Tensor& x) {
    F::FractionalPoolOptions options;
    options.random_samples = x;
    return options;
  };
  op("nn.functional.fractional_max_pool2d",
     "F.fractional_max_pool2d(a, (2, 3), (5, 4), return_indices=True, _random_samples=b)",
     [=](const Tensors& x) {
       auto options = samples(x[1]);
       options.output_size = Sizes(5, 4);
       return F::fractional_max_pool2d_with_indices(x[0], {2, 3}, options);
     },
     {real({2, 3, 11, 9}), constant({2, 3, 2}, 0, 0.99)})
      .dtypes(kDoubles);
  op("nn.functional.fractional_max_pool2d",
     "F.fractional_max_pool2d(a, 2, output_ratio=(0.6, 0.5), _random_samples=b)",
     [=](const Tensors& x) {
       auto options = samples(x[1]);
       options.output_ratio = {0.6, 0.5};
       return F::fractional_max_pool2d(x[0], 2, options);
     },
     {real({3, 8, 9}), constant({1, 3, 2}, 0, 0.99)})
      .dtypes(kDoubles)
      .big({real({8, 32, 64, 64}), constant({8, 32, 2}, 0, 0.99)});
  op("nn.functional.fractional_max_pool3d",
     "F.fractional_max_pool3d(a, (2, 1, 3), (3, 1, 2), None, True, _random_samples=b)",
     [=](const Tensors& x) {
       auto options = samples(x[1]);
       options.output_size = Sizes(3, 1, 2);
       return F::fractional_max_pool3d_with_indices(x[0], {2, 1, 3}, options);
     },
     {real({2, 2, 7, 4, 5}), constant({2, 2, 3}, 0, 0.99)})
      .dtypes(kDoubles);
  op("nn.functional.fractional_max_pool3d",
     "F.fractional_max_pool3d(a, 2, output_ratio=0.5, _random_samples=b)",
     [=](const Tensors& x) {
       auto options = samples(x[1]);
       options.output_ratio = {0.5};
       return F::fractional_max_pool3d(x[0], 2, options);
     },
     {real({2, 6, 5, 7}), constant({1, 2, 3}, 0, 0.99)})
      .dtypes(kDoubles);
}

KILN_OP_CASES(adaptive_pooling) {
  op("nn.functional.adaptive_avg_pool1d", "F.adaptive_avg_pool1d(a, 3)",
     [](const Tensors& x) { return F::adaptive_avg_pool1d(x[0], 3); }, {real({2, 3, 8})});
  op("nn.functional.adaptive_avg_pool2d", "F.adaptive_avg_pool2d(a, (3, 2))",
     [](const Tensors& x) {
       return F::adaptive_avg_pool2d(x[0], {3, 2});
     },
     {real({2, 3, 7, 4})})
      .big({real({8, 64, 56, 56})});
  op("nn.functional.adaptive_avg_pool2d", "F.adaptive_avg_pool2d(a, 1)",
     [](const Tensors& x) { return F::adaptive_avg_pool2d(x[0], 1); }, {real({3, 5, 4})})
      .loose(2);
  op("nn.functional.adaptive_avg_pool2d", "F.adaptive_avg_pool2d(a, (None, 5))",
     [](const Tensors& x) {
       return F::adaptive_avg_pool2d(x[0], {-1, 5});
     },
     {real({3, 5, 3})});
  op("nn.functional.adaptive_avg_pool3d", "F.adaptive_avg_pool3d(a, (2, 3, 2))",
     [](const Tensors& x) {
       return F::adaptive_avg_pool3d(x[0], {2, 3, 2});
     },
     {real({1, 2, 5, 4, 4})});
  op("nn.functional.adaptive_max_pool1d", "F.adaptive_max_pool1d(a, 3, True)",
     [](const Tensors& x) { return F::adaptive_max_pool1d_with_indices(x[0], 3); },
     {real({2, 3, 8})});
  op("nn.functional.adaptive_max_pool2d", "F.adaptive_max_pool2d(a, (3, 2), True)",
     [](const Tensors& x) {
       return F::adaptive_max_pool2d_with_indices(x[0], {3, 2});
     },
     {real({2, 3, 7, 4})})
      .big({real({8, 64, 56, 56})});
  op("nn.functional.adaptive_max_pool2d", "F.adaptive_max_pool2d(a, 1)",
     [](const Tensors& x) { return F::adaptive_max_pool2d(x[0], 1); }, {real({3, 7, 4})});
  op("nn.functional.adaptive_max_pool3d", "F.adaptive_max_pool3d(a, 2, True)",
     [](const Tensors& x) { return F::adaptive_max_pool3d_with_indices(x[0], 2); },
     {real({1, 2, 5, 4, 3})});
}

}  // namespace kiln::ops
