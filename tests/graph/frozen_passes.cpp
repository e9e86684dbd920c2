// Passes for frozen weights, and epilogues: each beside the graph without it.
#include <algorithm>

#include <doctest/doctest.h>

#include "kiln/compile/graph_model.h"
#include "kiln/graph/capture.h"
#include "kiln/graph/passes/passes.h"
#include "kiln/graph/plan.h"
#include "kiln/kiln.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {
namespace {

using graph::Graph;
using graph::PassOptions;

constexpr PassOptions kFrozen = {.freeze = true,
                                 .norm_folding = false,
                                 .merged_products = false,
                                 .epilogues = false,
                                 .fusion = false};

Graph graph_of_call(const Compiled::Function& f, const TensorList& inputs) {
  const NoGradGuard no_grad;
  graph::Capture capture;
  const auto inner = [](const Tensor& x) { return detail::value_of("test", x).inner; };
  for (const Tensor& x : inputs) capture.add_input(inner(x));
  std::vector<ErasedTensor> outputs;
  for (const Tensor& y : f(inputs)) outputs.push_back(inner(y));
  REQUIRE(capture.failure() == "");
  return capture.finish(outputs);
}

int rows(const Graph& graph, const std::string& name) {
  int n = 0;
  for (const auto& node : graph.nodes) n += node.name == name;
  return n;
}

// The graph after these passes. It computes what f does, to `tolerance` of the largest number; 0:
// bit for bit.
Graph after(const Compiled::Function& f, const TensorList& inputs, const PassOptions& options,
            double tolerance) {
  Graph graph = graph::optimized(graph_of_call(f, inputs), options);
  const graph::Plan plan(graph);
  const NoGradGuard no_grad;
  for (const double by : {1.0, -0.5}) {
    TensorList given;
    std::vector<ErasedTensor> inner;
    for (const Tensor& x : inputs) {
      given.push_back(x.is_floating_point() ? x * by : x);
      inner.push_back(detail::value_of("test", given.back()).inner);
    }
    const TensorList expected = f(given);
    const auto found = plan.run(inner);
    REQUIRE(found.size() == expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      const Tensor got = detail::wrap(found[i]);
      REQUIRE(got.shape() == expected[i].shape());
      if (tolerance == 0) {
        CHECK(got.equal(expected[i]));
      } else {
        const double scale = std::max(1.0, expected[i].abs().max().item<double>());
        CHECK((got - expected[i]).abs().max().item<double>() <= tolerance * scale);
      }
    }
  }
  return graph;
}

// A norm that changes what it is given.
template <class Norm>
Norm norm_of(int64_t channels) {
  Norm norm(channels);
  const NoGradGuard no_grad;
  Tensor mean = *norm.running_mean, var = *norm.running_var;
  mean.copy_(randn({channels}));
  var.copy_(rand({channels}) + 0.5);
  Tensor weight = *norm.weight, bias = *norm.bias;
  weight.copy_(randn({channels}));
  bias.copy_(randn({channels}));
  norm.eval();
  return norm;
}

template <class Layer, class Norm>
void check_folded(const Layer& layer, const Norm& norm, const Tensor& x, bool norm_first = false,
                  double tolerance = 2e-6) {
  const auto f = [&](const TensorList& xs) {
    return TensorList{norm_first ? layer(norm(xs[0])) : norm(layer(xs[0])).relu()};
  };
  PassOptions options = kFrozen;
  const Graph before = after(f, {x}, options, 0);
  options.norm_folding = true;
  const Graph folded = after(f, {x}, options, tolerance);
  CHECK(rows(before, "float_batch_norm_inference") == 1);
  CHECK(rows(folded, "float_batch_norm_inference") == 0);
  CHECK(rows(folded, "float_rsqrt") == 0);  // computed beforehand
  options.freeze = false;                   // weights may change: nothing is folded
  CHECK(rows(after(f, {x}, options, 0), "float_batch_norm_inference") == 1);
}

}  // namespace

TEST_CASE("frozen passes: norms behind and before products are folded") {
  manual_seed(1);
  const Tensor line = randn({2, 6, 9}), image = randn({2, 6, 9, 8}),
               volume = randn({2, 6, 5, 6, 7});
  const nn::Conv2dOptions grouped{.groups = 3}, bare{.bias = false};
  check_folded(nn::Conv1d(6, 4, 3), norm_of<nn::BatchNorm1d>(4), line);
  check_folded(nn::Conv2d(6, 4, 3), norm_of<nn::BatchNorm2d>(4), image);
  check_folded(nn::Conv2d(6, 9, 3, grouped), norm_of<nn::BatchNorm2d>(9), image);
  check_folded(nn::Conv2d(6, 4, 3, bare), norm_of<nn::BatchNorm2d>(4), image);
  check_folded(nn::Conv3d(6, 4, 3), norm_of<nn::BatchNorm3d>(4), volume);
  check_folded(nn::ConvTranspose1d(6, 4, 3), norm_of<nn::BatchNorm1d>(4), line);
  check_folded(nn::ConvTranspose2d(6, 4, 3), norm_of<nn::BatchNorm2d>(4), image);
  check_folded(nn::Linear(7, 4), norm_of<nn::BatchNorm1d>(4), randn({5, 7}));
  check_folded(nn::Linear(7, 4, false), norm_of<nn::BatchNorm1d>(4), randn({5, 7}));
  check_folded(nn::Linear(7, 4), norm_of<nn::BatchNorm1d>(7), randn({5, 7}), true);
  check_folded(nn::Conv2d(6, 4, 3), norm_of<nn::BatchNorm2d>(6), image, true);
}

TEST_CASE("frozen passes: norms of 16-bit floats are folded in f32") {
  manual_seed(1);
  const Tensor image = randn({2, 6, 9, 8}), row = randn({5, 7});
  for (const DType dtype : {bf16, f16}) {
    CAPTURE(to_string(dtype));
    // Eager results are rounded after each op, folded weights once.
    const double tolerance = dtype == bf16 ? 0x1p-5 : 0x1p-8;
    const auto cast = [&](auto module) {
      module.to(dtype);
      return module;
    };
    const auto check = [&](const auto& layer, const auto& norm, const Tensor& x, bool first) {
      check_folded(layer, norm, x.to(dtype), first, tolerance);
    };
    check(cast(nn::Conv2d(6, 4, 3)), cast(norm_of<nn::BatchNorm2d>(4)), image, false);
    check(cast(nn::Conv2d(6, 4, 3)), norm_of<nn::BatchNorm2d>(4), image, false);  // of f32
    check(cast(nn::Conv2d(6, 4, 3, {.bias = false})), cast(norm_of<nn::BatchNorm2d>(4)), image,
          false);
    check(cast(nn::ConvTranspose2d(6, 4, 3)), cast(norm_of<nn::BatchNorm2d>(4)), image, false);
    check(cast(nn::Linear(7, 4)), cast(norm_of<nn::BatchNorm1d>(4)), row, false);
    check(cast(nn::Linear(7, 4)), cast(norm_of<nn::BatchNorm1d>(7)), row, true);
    check(cast(nn::Conv2d(6, 4, 3)), cast(norm_of<nn::BatchNorm2d>(6)), image, true);
  }
}

TEST_CASE("frozen passes: norms that are not folded") {
  const nn::BatchNorm2d norm = norm_of<nn::BatchNorm2d>(4);
  const nn::Conv2d conv(4, 4, 3), padded(4, 4, 3, {.padding = 1});
  PassOptions options = kFrozen;
  options.norm_folding = true;
  const auto left = [&](const Compiled::Function& f) {
    return rows(after(f, {randn({2, 4, 8, 8})}, options, 1e-5), "float_batch_norm_inference");
  };
  // Its operand is seen elsewhere; zeros around it would have to be moved too; behind a function.
  CHECK(left([&](const TensorList& x) {
          const Tensor y = conv(x[0]);
          return TensorList{norm(y), y};
        }) == 1);
  CHECK(left([&](const TensorList& x) { return TensorList{padded(norm(x[0]))}; }) == 1);
  CHECK(left([&](const TensorList& x) { return TensorList{norm(conv(x[0]).tanh())}; }) == 1);
  // Two norms: one into the convolution before it, the other into the one behind it.
  const nn::BatchNorm2d second = norm_of<nn::BatchNorm2d>(4);
  CHECK(left([&](const TensorList& x) { return TensorList{conv(second(norm(conv(x[0]))))}; }) == 0);
}

TEST_CASE("frozen passes: products of one tensor are merged") {
  manual_seed(2);
  const nn::Linear q(8, 8), k(8, 4, false), v(8, 6);
  const Tensor table = randn({8, 5}), other = randn({8, 3});
  const auto f = [&](const TensorList& xs) {
    const Tensor& x = xs[0];
    const Tensor heads = q(x).reshape({2, 3, 2, 4}).transpose(1, 2);
    const Tensor keys = k(x).reshape({2, 3, 1, 4}).permute({0, 2, 3, 1});
    return TensorList{heads.matmul(keys).softmax(-1), v(x).gelu() * 2, x.matmul(table).exp(),
                      x.matmul(other).sum(0)};
  };
  const TensorList inputs{randn({2, 3, 8})};
  PassOptions options = kFrozen;
  const Graph before = after(f, inputs, options, 0);
  CHECK(rows(before, "float_linear") == 3);
  CHECK(rows(before, "float_matmul") == 3);
  options.merged_products = true;
  const Graph merged = after(f, inputs, options, 2e-6);
  CHECK(rows(merged, "float_linear") == 1);
  CHECK(rows(merged, "float_matmul") == 2);  // two were one; the scores stay
  CHECK(rows(merged, "float_cat") == 0);
  CHECK(rows(merged, "float_slice") == rows(before, "float_slice") + 5);
  options.epilogues = options.fusion = true;  // what follows sees windows of the product
  const auto g = [&](const TensorList& xs) {
    const Tensor a = q(xs[0]), b = v(xs[0]);
    return TensorList{a.reshape({2, 12000, 4}).exp() + 1, (b.sigmoid() * b + 1).tanh()};
  };
  const Graph all = after(g, {randn({2, 6000, 8})}, PassOptions{.freeze = true}, 2e-6);
  CHECK(rows(all, "float_linear") == 1);
  // A result that is given out, or written, has memory of its own.
  const auto given = [&](const TensorList& xs) { return TensorList{q(xs[0]), v(xs[0])}; };
  CHECK(rows(after(given, inputs, options, 0), "float_linear") == 2);
  const auto written = [&](const TensorList& xs) {
    Tensor a = q(xs[0]);
    a.select(-1, 0).add_(1);
    return TensorList{a * 2, v(xs[0]) * 3};
  };
  CHECK(rows(after(written, inputs, options, 0), "float_linear") == 2);
}

TEST_CASE("passes: activations and residuals join linear layers, bit for bit") {
  manual_seed(3);
  const nn::Linear a(8, 16), b(16, 8, false);
  const auto f = [&](const TensorList& xs) {
    const Tensor x = xs[0];
    return TensorList{b(a(x).gelu()) + x, x + b(gelu(a(x), "tanh")),
                      a(x).relu().sum(),  a(x).sigmoid(),
                      silu(a(x)),         a(x).tanh()};
  };
  PassOptions options = kFrozen;
  options.freeze = false;
  options.common_subexpressions = false;
  for (const DType dtype : {f32, f64}) {
    const NoGradGuard no_grad;
    nn::Linear c(8, 16, true, {.dtype = dtype});
    const TensorList inputs{randn({5, 8}, {.dtype = dtype})};
    options.epilogues = true;
    // The first of two layers takes their sum, after its own activation.
    for (const bool plain_first : {false, true}) {
      const auto each = [&](const TensorList& xs) {
        Tensor plain, active;
        if (plain_first) plain = c(xs[0]);
        active = c(xs[0]).tanh();
        if (!plain_first) plain = c(xs[0]);
        return TensorList{c(xs[0]).relu(), plain + active};
      };
      const Graph joined = after(each, inputs, options, 0);
      CHECK(rows(joined, "float_linear_activation") == (plain_first ? 3 : 2));
      CHECK(rows(joined, "float_relu") + rows(joined, "float_tanh") + rows(joined, "float_add") ==
            0);
    }
  }
  const TensorList inputs{randn({5, 8})};
  options.epilogues = false;
  const Graph before = after(f, inputs, options, 0);
  options.epilogues = true;
  const Graph joined = after(f, inputs, options, 0);
  CHECK(rows(before, "float_linear") == 8);
  CHECK(rows(joined, "float_linear") == 0);
  CHECK(rows(joined, "float_linear_activation") == 8);
  CHECK(rows(joined, "float_add") == 0);
  // What is seen elsewhere stays; so does what is written between the rows.
  Tensor bias = *a.bias;
  const auto kept = [&](const TensorList& xs) {
    const Tensor y = a(xs[0]), z = a(xs[0] + 1);
    Tensor writable = bias.detach();
    writable.mul_(0.5);
    return TensorList{y.relu(), y, z.relu()};
  };
  const Graph whole = graph::optimized(graph_of_call(kept, inputs), options);
  CHECK(rows(whole, "float_linear") == 2);
}

TEST_CASE("epilogues: activations and residuals behind convolutions") {
  manual_seed(4);
  const nn::Conv2d a(4, 6, 3, {.padding = 1}), b(6, 6, 3, {.padding = 1, .groups = 6});
  const auto f = [&](const TensorList& xs) {
    const Tensor y = functional::relu6(a(xs[0]));
    const Tensor z = functional::hardswish(b(y));
    return TensorList{(b(z) + y).relu(), b(z) + z, silu(a(xs[0]) + z), (a(xs[0]) + b(z)).relu()};
  };
  const NoGradGuard no_grad;
  PassOptions options = kFrozen;
  options.freeze = false;
  options.common_subexpressions = false;
  options.fusion = false;
  const TensorList inputs{randn({2, 4, 7, 5})};
  options.epilogues = false;
  const Graph before = after(f, inputs, options, 0);
  options.epilogues = true;
  const Graph joined = after(f, inputs, options, 0);  // bit for bit
  CHECK(rows(before, "float_conv2d") == 7);
  // Of two that are added, one takes the other as its residual.
  CHECK(rows(joined, "float_conv2d") == 1);
  CHECK(rows(joined, "float_conv2d_activation") == 6);
  CHECK(rows(joined, "float_add") == 0);
  CHECK(rows(joined, "float_relu") + rows(joined, "float_unary") + rows(joined, "float_silu") == 0);
}

TEST_CASE("convolutions: depthwise ones and those of 1 x 1 around them") {
  manual_seed(4);
  const nn::Conv2d wide(4, 24, 1), narrow(24, 4, 1), square(4, 4, 3, {.padding = 1});
  const nn::Conv2d deep(24, 24, 3, {.padding = 1, .groups = 24});
  const nn::Conv2d alone(4, 4, 3, {.stride = 2, .groups = 4});
  const auto f = [&](const TensorList& xs) {
    const Tensor& x = xs[0];
    const Tensor seen = wide(x).relu();  // read twice
    return TensorList{
        narrow(functional::relu6(deep(functional::relu6(wide(x))))) + x,  // one block
        narrow(deep(seen)) + seen.mean(),                                 // without the first
        deep(wide(x)).tanh(),                                             // without the last
        square(alone(x)),                                                 // no 1 x 1
    };
  };
  const NoGradGuard no_grad;
  PassOptions options = kFrozen;
  options.freeze = false;
  options.epilogues = true;
  options.common_subexpressions = false;
  const TensorList inputs{randn({2, 4, 17, 15})};
  options.joined_convolutions = false;
  const Graph before = after(f, inputs, options, 0);
  CHECK(rows(before, "float_separable_block") == 0);
  options.joined_convolutions = true;
  const Graph joined = after(f, inputs, options, 0);  // bit for bit
  CHECK(rows(joined, "float_separable_block") == 3);
  CHECK(rows(joined, "float_conv2d") + rows(joined, "float_conv2d_activation") == 3);
}

TEST_CASE("graph models run fused, at fixed and at free sizes") {
  manual_seed(4);
  const auto f = [](const TensorList& xs) {
    return TensorList{(xs[0] * 2 + 1).exp().tanh() * xs[0].sigmoid()};
  };
  const Tensor x = randn({300, 200});
  const GraphModel fixed = capture(f, {x});
  CHECK(fixed.explain().find("fused: 6 rows on [300, 200]") != std::string::npos);
  CHECK(rows(fixed.graph(), "float_exp") == 1);  // what is saved has its rows
  CHECK(fixed(x).equal(f({x})[0]));
  const GraphModel free = capture(f, {x}, {.dynamic_axes = {{"input0", {{0, "n"}}}}});
  for (const int64_t n : {300, 512, 2}) {
    const Tensor y = randn({n, 200});
    CHECK(free(y).equal(f({y})[0]));
    const std::string shape = concat("fused: 6 rows on [", n, ", 200]");
    CHECK((free.explain().find(shape) != std::string::npos) == (n > 2));  // two rows are small
  }
}

TEST_CASE("graph models of frozen weights: folded once, for all sizes") {
  manual_seed(5);
  nn::Sequential net{nn::Conv2d(3, 8, 3), norm_of<nn::BatchNorm2d>(8), nn::ReLU()};
  net.eval();
  const Tensor x = randn({2, 3, 8, 8});
  const NoGradGuard no_grad;
  const GraphModel frozen =
      capture(net, x, {.dynamic_axes = {{"input0", {{0, "batch"}}}}, .freeze = true});
  CHECK(rows(frozen.graph(), "float_batch_norm_inference") == 0);
  for (const int64_t n : {1, 5}) {
    const Tensor y = randn({n, 3, 8, 8});
    const Tensor expected = net.call_with_tensor(y);
    CHECK((frozen(y) - expected).abs().max().item<double>() < 1e-5);
  }
  const GraphModel exact = capture(net, x, {.freeze = true, .exact = true});
  CHECK(rows(exact.graph(), "float_batch_norm_inference") == 1);
  const Tensor before = net.call_with_tensor(x);
  CHECK(exact(x).equal(before));
  for (Tensor& p : net.parameters()) p.mul_(2);
  CHECK_FALSE(net.call_with_tensor(x).equal(before));
}

}  // namespace kiln
