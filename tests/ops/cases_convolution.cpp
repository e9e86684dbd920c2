// Convolutions, transposed and deformable ones, windows as columns, bilinear forms.
#include "tests/ops/case.h"

namespace kiln::ops {

namespace F = kiln::functional;

KILN_OP_CASES(convolution) {
  op("nn.functional.conv1d", "F.conv1d(a, b, c, 2, 1)",
     [](const Tensors& x) { return F::conv1d(x[0], x[1], x[2], 2, 1); },
     {real({2, 4, 9}), real({6, 4, 3}), real({6})})
      .loose(4)
      .big({real({16, 32, 2048}), real({32, 32, 3}, -0.2, 0.2), real({32})});
  op("nn.functional.conv1d", "F.conv1d(a, b, None, 1, 'same', 2, 2)",
     [](const Tensors& x) { return F::conv1d(x[0], x[1], {}, 1, "same", 2, 2); },
     {real({4, 9}), real({6, 2, 4})})
      .loose(4);
  op("nn.functional.conv2d", "F.conv2d(a, b, c, (2, 1), (1, 2), (1, 2))",
     [](const Tensors& x) {
       return F::conv2d(x[0], x[1], x[2], {2, 1}, Sizes(1, 2), {1, 2});
     },
     {real({2, 3, 6, 7}), real({4, 3, 3, 2}), real({4})})
      .loose(4)
      .big({real({8, 32, 64, 64}), real({32, 32, 3, 3}, -0.2, 0.2), real({32})});
  op("nn.functional.conv2d", "F.conv2d(a, b, None, 1, 'same', 1, 2)",
     [](const Tensors& x) { return F::conv2d(x[0], x[1], {}, 1, "same", 1, 2); },
     {real({1, 4, 5, 6}), real({4, 2, 2, 3})})
      .loose(4);
  op("nn.functional.conv2d", "F.conv2d(a, b, padding=((0, 2), (1, 0)))",
     [](const Tensors& x) {
       return F::conv2d(x[0], x[1], {}, 1, Padding::sides({0, 1}, {2, 0}));
     },
     {real({1, 2, 5, 6}), real({3, 2, 2, 3})})
      .loose(4)
      .no_peer("padding of one side is Burn's, not PyTorch's");
  op("nn.functional.conv1d", "F.conv1d(a, b, c, activation='relu')",
     [](const Tensors& x) {
       return F::conv1d(x[0], x[1], x[2], 1, 0, 1, 1, {.activation = Activation::relu});
     },
     {real({2, 4, 9}), real({6, 4, 3}), real({6})})
      .loose(4)
      .no_peer("PyTorch's conv1d has no activation");
  op("nn.functional.conv1d", "F.conv1d(a, b, None, 2, 'valid', activation='tanh', residual=c)",
     [](const Tensors& x) {
       return F::conv1d(x[0], x[1], {}, 2, "valid", 1, 1,
                        {.activation = Activation::tanh, .residual = x[2]});
     },
     {real({4, 9}), real({6, 4, 3}), real({6, 4})})
      .loose(4)
      .no_peer("PyTorch's conv1d has no activation");
  for (const auto& [name, activation] : {std::pair{"none", Activation::none},
                                         {"relu", Activation::relu},
                                         {"gelu", Activation::gelu},
                                         {"silu", Activation::silu},
                                         {"relu6", Activation::relu6},
                                         {"hardswish", Activation::hardswish}}) {
    const std::string call = std::string("F.conv2d(a, b, c, 1, 1, activation='") + name + "'";
    op("nn.functional.conv2d", call + ", residual=d)",
       [=](const Tensors& x) {
         return F::conv2d(x[0], x[1], x[2], 1, 1, 1, 1,
                          {.activation = activation, .residual = x[3]});
       },
       {real({2, 3, 4, 5}), real({4, 3, 3, 3}), real({4}), real({2, 4, 4, 5})})
        .loose(4)
        .no_peer("PyTorch's conv2d has no activation");
    op("nn.functional.conv2d", call + ", groups=3)",
       [=](const Tensors& x) {
         return F::conv2d(x[0], x[1], x[2], 1, 1, 1, 3, {.activation = activation});
       },
       {real({1, 3, 6, 5}), real({3, 1, 3, 3}), real({3})})
        .loose(4)
        .no_peer("PyTorch's conv2d has no activation");
  }
  op("nn.functional.conv3d", "F.conv3d(a, b, c, 1, 1)",
     [](const Tensors& x) { return F::conv3d(x[0], x[1], x[2], 1, 1); },
     {real({1, 2, 3, 4, 4}), real({2, 2, 2, 3, 2}), real({2})})
      .loose(4)
      .big({real({2, 16, 16, 32, 32}), real({16, 16, 3, 3, 3}, -0.2, 0.2), real({16})});
  op("nn.functional.conv3d", "F.conv3d(a, b, None, (2, 1, 1), (1, 0, 1), (1, 2, 1), 2)",
     [](const Tensors& x) {
       return F::conv3d(x[0], x[1], {}, {2, 1, 1}, Sizes(1, 0, 1), {1, 2, 1}, 2);
     },
     {real({4, 3, 5, 3}), real({2, 2, 2, 2, 2})})
      .loose(4);
  op("nn.functional.conv_transpose1d", "F.conv_transpose1d(a, b, c, 2, 1, 1)",
     [](const Tensors& x) { return F::conv_transpose1d(x[0], x[1], x[2], 2, 1, 1); },
     {real({2, 4, 5}), real({4, 3, 3}), real({3})})
      .loose(4);
  op("nn.functional.conv_transpose1d", "F.conv_transpose1d(a, b, None, 1, 2, 1, 2, 2)",
     [](const Tensors& x) { return F::conv_transpose1d(x[0], x[1], {}, 1, 2, 1, 2, 2); },
     {real({4, 6}), real({4, 2, 3})})
      .loose(4);
  op("nn.functional.conv_transpose2d", "F.conv_transpose2d(a, b, c, (2, 3), (1, 0), (1, 2))",
     [](const Tensors& x) {
       return F::conv_transpose2d(x[0], x[1], x[2], {2, 3}, {1, 0}, {1, 2});
     },
     {real({2, 2, 3, 4}), real({2, 3, 3, 2}), real({3})})
      .loose(4)
      .big({real({8, 32, 32, 32}), real({32, 32, 3, 3}, -0.2, 0.2), real({32})});
  op("nn.functional.conv_transpose2d", "F.conv_transpose2d(a, b, None, 1, 1, (0, 1), 2, (1, 3))",
     [](const Tensors& x) {
       return F::conv_transpose2d(x[0], x[1], {}, 1, 1, {0, 1}, 2, {1, 3});
     },
     {real({1, 4, 3, 4}), real({4, 1, 2, 2})})
      .loose(4);
  op("nn.functional.conv_transpose3d", "F.conv_transpose3d(a, b, c, 2, 1, (1, 0, 1))",
     [](const Tensors& x) {
       return F::conv_transpose3d(x[0], x[1], x[2], 2, 1, {1, 0, 1});
     },
     {real({1, 2, 3, 2, 2}), real({2, 2, 3, 2, 3}), real({2})})
      .loose(4);
  op("nn.functional.conv_transpose3d",
     "F.conv_transpose3d(a, b, None, (1, 2, 1), 0, 0, 2, (2, 1, 1))",
     [](const Tensors& x) {
       return F::conv_transpose3d(x[0], x[1], {}, {1, 2, 1}, 0, 0, 2, {2, 1, 1});
     },
     {real({4, 2, 2, 3}), real({4, 1, 2, 1, 2})})
      .loose(4);
  op("nn.functional.conv_transpose2d", "F.conv_transpose2d(a, b, c, 2, 1, 1, activation='relu6')",
     [](const Tensors& x) {
       return F::conv_transpose2d(x[0], x[1], x[2], 2, 1, 1, 1, 1, Activation::relu6);
     },
     {real({2, 2, 3, 4}), real({2, 3, 3, 2}), real({3})})
      .loose(4)
      .no_peer("PyTorch's conv_transpose2d has no activation");
  op("nn.functional.conv_transpose1d",
     "F.conv_transpose1d(a, b, c, 1, 0, 1, 1, 2, activation='silu')",
     [](const Tensors& x) {
       return F::conv_transpose1d(x[0], x[1], x[2], 1, 0, 1, 1, 2, Activation::silu);
     },
     {real({4, 6}), real({4, 2, 3}), real({2})})
      .loose(4)
      .no_peer("PyTorch's conv_transpose1d has no activation");
  op("nn.functional.separable_conv2d", "F.separable_conv2d(a, b, c, 2, 1, activation='silu')",
     [](const Tensors& x) {
       return F::separable_conv2d(x[0], x[1], x[2], 2, 1, 1, {.activation = Activation::silu});
     },
     {real({2, 3, 5, 6}), real({3, 1, 3, 3}), real({3})})
      .loose(4)
      .no_peer("a block of mobile networks, of three of PyTorch's conv2d");
  op("nn.functional.separable_conv2d",
     "F.separable_conv2d(a, b, c, 1, 1, activation='relu6', expand_weight=d, expand_bias=e, "
     "expand_activation='tanh', project_weight=f, residual=a)",
     [](const Tensors& x) {
       return F::separable_conv2d(x[0], x[1], x[2], 1, 1, 1,
                                  {.activation = Activation::relu6,
                                   .expand = {x[3], x[4], Activation::tanh},
                                   .project = {.weight = x[5]},
                                   .residual = x[0]});
     },
     {real({2, 3, 5, 4}), real({6, 1, 3, 3}), real({6}), real({6, 3, 1, 1}), real({6}),
      real({3, 6, 1, 1})})
      .loose(4)
      .no_peer("a block of mobile networks, of three of PyTorch's conv2d");
  // Offsets that keep sampling points away from pixels, where the gradient jumps.
  const auto between = [](Tensor x) { return (x * 0.2 + 0.5) + x.round(); };
  op("nn.functional.deform_conv2d", "F.deform_conv2d(a, b, c, d, 1, 1, 1, e)",
     [](const Tensors& x) { return F::deform_conv2d(x[0], x[1], x[2], x[3], 1, 1, 1, x[4]); },
     {real({1, 2, 4, 4}), real({1, 16, 5, 5}).away_from(0.5, 1.0).then(between), real({4, 1, 2, 2}),
      real({4}), real({1, 8, 5, 5})})
      .loose(4)
      .no_peer("torchvision's, not PyTorch's");
  op("nn.functional.unfold", "F.unfold(a, (2, 3), (1, 2), (1, 0), (2, 1))",
     [](const Tensors& x) {
       return F::unfold(x[0], {2, 3}, {1, 2}, {1, 0}, {2, 1});
     },
     {real({2, 3, 5, 6})})
      .big({real({4, 16, 64, 64})});
  op("nn.functional.unfold", "F.unfold(a, 2)", [](const Tensors& x) { return F::unfold(x[0], 2); },
     {real({2, 3, 4})});
  op("nn.functional.fold", "F.fold(a, (4, 5), (2, 3), 1, (1, 0), (2, 1))",
     [](const Tensors& x) {
       return F::fold(x[0], {4, 5}, {2, 3}, 1, {1, 0}, {2, 1});
     },
     {real({2, 12, 9})})
      .loose(2);
  op("nn.functional.fold", "F.fold(a, 3, 2)", [](const Tensors& x) { return F::fold(x[0], 3, 2); },
     {real({8, 4})})
      .loose(2);
  op("nn.functional.bilinear", "F.bilinear(a, b, c, d)",
     [](const Tensors& x) { return F::bilinear(x[0], x[1], x[2], x[3]); },
     {real({2, 3, 4}), real({2, 3, 5}), real({6, 4, 5}), real({6})})
      .loose(8);
  for (const auto& [name, activation] : {std::pair{"none", Activation::none},
                                         {"relu", Activation::relu},
                                         {"gelu", Activation::gelu},
                                         {"gelu_tanh", Activation::gelu_tanh},
                                         {"silu", Activation::silu},
                                         {"tanh", Activation::tanh},
                                         {"sigmoid", Activation::sigmoid},
                                         {"relu6", Activation::relu6},
                                         {"hardswish", Activation::hardswish},
                                         {"hardsigmoid", Activation::hardsigmoid}}) {
    const std::string call = std::string("F.linear(a, b, c, activation='") + name + "'";
    op("nn.functional.linear", call + ")",
       [=](const Tensors& x) { return F::linear(x[0], x[1], x[2], {.activation = activation}); },
       {real({2, 3, 5}), real({4, 5}), real({4})})
        .no_peer("PyTorch's linear has no activation");
    op("nn.functional.linear", call + ", residual=d)",
       [=](const Tensors& x) {
         return F::linear(x[0], x[1], x[2], {.activation = activation, .residual = x[3]});
       },
       {real({2, 3, 5}), real({4, 5}), real({4}), real({2, 3, 4})})
        .no_peer("PyTorch's linear has no activation");
  }
  op("nn.functional.linear", "F.linear(a, b, c)",
     [](const Tensors& x) { return F::linear(x[0], x[1], x[2]); },
     {real({2, 3, 4}), real({5, 4}), real({5})})
      .loose(4)
      .big({real({1024, 1024}), real({256, 1024}, -0.1, 0.1), real({256})});
}

}  // namespace kiln::ops
