// Activations.
#include "tests/ops/case.h"

namespace kiln::ops {

namespace F = kiln::functional;

KILN_OP_CASES(activations) {
  const auto big = [] { return std::vector<Input>{real({1024, 1024}, -4, 4)}; };
  const auto plain = [&](const std::string& name, Tensor (*f)(const Tensor&), Input input) {
    op("nn.functional." + name, "F." + name + "(a)", [f](const Tensors& x) { return f(x[0]); },
       {std::move(input)})
        .big(big())
        .loose(10);  // PyTorch divides by a constant in single precision in some
  };
  plain("relu6", &F::relu6, real({3, 5}, -3, 9).away_from(0, 6));
  plain("selu", &F::selu, real({3, 5}, -4, 4).away_from(0));
  plain("mish", &F::mish, real({3, 5}, -4, 4));
  plain("hardsigmoid", &F::hardsigmoid, real({3, 5}, -5, 5).away_from(3, 6));
  plain("hardswish", &F::hardswish, real({3, 5}, -5, 5).away_from(3, 6));
  plain("logsigmoid", &F::logsigmoid, real({3, 5}, -6, 6).away_from(0));
  plain("softsign", &F::softsign, real({3, 5}, -3, 3).away_from(0));
  plain("tanhshrink", &F::tanhshrink, real({3, 5}));
  op("nn.functional.relu6", "F.relu6(a)", [](const Tensors& x) { return F::relu6(x[0]); },
     {values({-3, 0, 5, 6, 7, 100})})
      .dtypes({i64, i32, i16, i8});
  op("nn.functional.leaky_relu", "F.leaky_relu(a, 0.2)",
     [](const Tensors& x) { return F::leaky_relu(x[0], 0.2); }, {real({3, 5}).away_from(0)})
      .big(big());
  op("nn.functional.leaky_relu", "F.leaky_relu(a, -1.5)",
     [](const Tensors& x) { return F::leaky_relu(x[0], -1.5); }, {real({3, 5}).away_from(0)});
  op("nn.functional.rrelu", "F.rrelu(a, 0.1, 0.3)",
     [](const Tensors& x) { return F::rrelu(x[0], 0.1, 0.3); }, {real({3, 5}).away_from(0)});
  op("nn.functional.rrelu", "F.rrelu(a, training=True)",
     [](const Tensors& x) { return F::rrelu(x[0], 1.0 / 8, 1.0 / 3, true); }, {constant({3, 5})})
      .shapes_only("random slopes");
  op("nn.functional.elu", "F.elu(a, 0.5)", [](const Tensors& x) { return F::elu(x[0], 0.5); },
     {real({3, 5}, -4, 4).away_from(0)})
      .big(big());
  op("nn.functional.celu", "F.celu(a, 1.5)", [](const Tensors& x) { return F::celu(x[0], 1.5); },
     {real({3, 5}, -4, 4).away_from(0)})
      .big(big());
  op("nn.functional.hardshrink", "F.hardshrink(a, 0.7)",
     [](const Tensors& x) { return F::hardshrink(x[0], 0.7); }, {real({3, 5}).away_from(0.7, 1.4)})
      .big(big());
  op("nn.functional.softshrink", "F.softshrink(a, 0.7)",
     [](const Tensors& x) { return F::softshrink(x[0], 0.7); }, {real({3, 5}).away_from(0.7, 1.4)})
      .big(big());
  op("nn.functional.hardtanh", "F.hardtanh(a, -1, 1.5)",
     [](const Tensors& x) { return F::hardtanh(x[0], -1, 1.5); }, {real({3, 5}).away_from(-1, 2.5)})
      .big(big());
  op("nn.functional.threshold", "F.threshold(a, 0.5, -1)",
     [](const Tensors& x) { return F::threshold(x[0], 0.5, -1); }, {real({3, 5}).away_from(0.5)})
      .big(big());
  op("nn.functional.softplus", "F.softplus(a)", [](const Tensors& x) { return F::softplus(x[0]); },
     {real({3, 5}, -5, 25).away_from(20)})
      .big(big());
  op("nn.functional.softplus", "F.softplus(a, 2, 3)",
     [](const Tensors& x) { return F::softplus(x[0], 2, 3); }, {real({3, 5}).away_from(1.5)});
  op("nn.functional.shrink", "F.shrink(a, 0.7, 0.2)",
     [](const Tensors& x) { return F::shrink(x[0], 0.7, 0.2); }, {real({3, 5}).away_from(0.7, 1.4)})
      .no_peer("Burn's, not PyTorch's");
  op("nn.functional.thresholded_relu", "F.thresholded_relu(a, 0.7)",
     [](const Tensors& x) { return F::thresholded_relu(x[0], 0.7); }, {real({3, 5}).away_from(0.7)})
      .no_peer("Burn's, not PyTorch's");
  op("nn.functional.glu", "F.glu(a, 1)", [](const Tensors& x) { return F::glu(x[0], 1); },
     {real({3, 4, 2})})
      .big(big());
  op("nn.functional.swiglu", "F.swiglu(a, 1)", [](const Tensors& x) { return F::swiglu(x[0], 1); },
     {real({3, 4, 2})})
      .no_peer("Burn's, not PyTorch's");
  op("nn.functional.prelu", "F.prelu(a, b)", [](const Tensors& x) { return F::prelu(x[0], x[1]); },
     {real({2, 3, 4}).away_from(0), real({3})})
      .big({real({16, 64, 1024}), real({64})});
  op("nn.functional.prelu", "F.prelu(a, b)", [](const Tensors& x) { return F::prelu(x[0], x[1]); },
     {real({5}).away_from(0), real({1})});
  op("nn.functional.softmin", "F.softmin(a, 1)",
     [](const Tensors& x) { return F::softmin(x[0], 1); }, {real({2, 3, 4})})
      .big(big());
  op("nn.functional.softmin", "F.softmin(a, 0, dtype=torch.float32)",
     [](const Tensors& x) { return F::softmin(x[0], 0, f32); }, {constant({2, 3})})
      .dtypes({f32, f16, bf16, i64});
  op("nn.functional.softmax", "F.softmax(a, 0, dtype=torch.float32)",
     [](const Tensors& x) { return F::softmax(x[0], 0, f32); }, {constant({2, 3})})
      .dtypes({f32, f16, bf16, i64});
  op("nn.functional.quiet_softmax", "F.quiet_softmax(a, 1)",
     [](const Tensors& x) { return F::quiet_softmax(x[0], 1); }, {real({2, 3, 4})})
      .no_peer("Burn's, not PyTorch's");
  op("nn.functional.gumbel_softmax", "F.gumbel_softmax(a, 0.5, False, dim=1)",
     [](const Tensors& x) { return F::gumbel_softmax(x[0], 0.5, false, 1); }, {constant({2, 3, 4})})
      .shapes_only("random noise");
  op("nn.functional.gumbel_softmax", "F.gumbel_softmax(a, 0.5, True, dim=1).sum(1)",
     [](const Tensors& x) { return F::gumbel_softmax(x[0], 0.5, true, 1).sum(1); },
     {constant({2, 3, 4})});
  // Corners: signed zero, infinities, NaN.
  const auto corners = [&](const std::string& call, Tensor (*f)(const Tensor&)) {
    op("nn.functional." + call.substr(0, call.find('(')), "F." + call,
       [f](const Tensors& x) { return f(x[0]); },
       {values({0.0, -0.0, std::numeric_limits<double>::infinity(),
                -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(),
                100, -100, 1, -1, 0.5, -0.5, 3, -3, 6})});
  };
  corners("relu6(a)", &F::relu6);
  corners("selu(a)", &F::selu);
  corners("hardsigmoid(a)", &F::hardsigmoid);
  corners("logsigmoid(a)", &F::logsigmoid);
  corners("leaky_relu(a)", [](const Tensor& x) { return F::leaky_relu(x); });
  corners("elu(a)", [](const Tensor& x) { return F::elu(x); });
  corners("celu(a)", [](const Tensor& x) { return F::celu(x); });
  corners("hardshrink(a)", [](const Tensor& x) { return F::hardshrink(x); });
  corners("softshrink(a)", [](const Tensor& x) { return F::softshrink(x); });
  corners("hardtanh(a)", [](const Tensor& x) { return F::hardtanh(x); });
  corners("softplus(a)", [](const Tensor& x) { return F::softplus(x); });
  corners("threshold(a, 0, 1)", [](const Tensor& x) { return F::threshold(x, 0, 1); });
}

KILN_OP_CASES(dropout) {
  const auto off = [](const std::string& name, Tensor (*f)(const Tensor&, double, bool),
                      const Shape& shape) {
    op("nn.functional." + name, "F." + name + "(a, 0.5, False)",
       [f](const Tensors& x) { return f(x[0], 0.5, false); }, {real(shape)});
    op("nn.functional." + name, "F." + name + "(a, 0.5, True)",
       [f](const Tensors& x) { return f(x[0], 0.5, true); }, {constant(shape)})
        .shapes_only("random numbers");
    op("nn.functional." + name, "F." + name + "(a, 1.0, True)",
       [f](const Tensors& x) { return f(x[0], 1.0, true); }, {real(shape)});
  };
  off("dropout1d", &F::dropout1d, {2, 3, 4});
  off("dropout2d", &F::dropout2d, {2, 3, 4, 2});
  off("dropout3d", &F::dropout3d, {3, 4, 2, 2});
  off("alpha_dropout", &F::alpha_dropout, {3, 4});
  off("feature_alpha_dropout", &F::feature_alpha_dropout, {3, 4, 2});
}

}  // namespace kiln::ops
