// Each pass: what a graph is before and after it, and that it computes the same.
#include "kiln/graph/passes/passes.h"

#include <doctest/doctest.h>

#include "kiln/core/random_tape.h"
#include "kiln/graph/capture.h"
#include "kiln/graph/plan.h"
#include "kiln/kiln.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {
namespace {

using graph::Graph;
using graph::PassOptions;
using Tensors = std::vector<Tensor>;
using ListFunction = std::function<Tensors(const Tensors&)>;

constexpr PassOptions kNone = {.own_results = false,
                               .dead_code = false,
                               .common_subexpressions = false,
                               .constant_folding = false,
                               .norm_folding = false,
                               .merged_products = false,
                               .epilogues = false,
                               .fusion = false};

std::vector<ErasedTensor> inner_of(const Tensors& xs) {
  std::vector<ErasedTensor> out;
  for (const Tensor& x : xs) out.push_back(detail::value_of("test", x).inner);
  return out;
}

Graph captured(const ListFunction& f, const Tensors& inputs) {
  graph::Capture capture;
  for (const ErasedTensor& x : inner_of(inputs)) capture.add_input(x);
  const Tensors results = f(inputs);
  REQUIRE(capture.failure() == "");
  return capture.finish(inner_of(results));
}

std::vector<double> doubles_in(const Tensor& x) { return x.to_data().to_doubles(); }

// The graph after the passes; it computes what f does, on these inputs and on others.
Graph check(const ListFunction& f, const Tensors& inputs, const PassOptions& options) {
  Graph graph = graph::optimized(captured(f, inputs), options);
  const graph::Plan plan(graph);
  Tensors others;
  for (const Tensor& x : inputs) {
    others.push_back(x.is_floating_point() ? x * 0.5 + 0.25 : x.clone());
  }
  for (const Tensors& given : {inputs, others}) {
    const Tensors expected = f(given);
    const auto got = plan.run(inner_of(given));
    REQUIRE(got.size() == expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      CHECK(doubles_in(detail::wrap(got[i])) == doubles_in(expected[i]));
    }
  }
  return graph;
}

int count(const Graph& graph, const std::string& name) {
  int n = 0;
  for (const auto& node : graph.nodes) n += node.name == name;
  return n;
}

}  // namespace

TEST_CASE("graph: text, Graphviz and costs") {
  const Tensor w = randn({4, 2});
  const Graph graph =
      captured([&](const Tensors& x) { return Tensors{x[0].matmul(w).relu()}; }, {randn({3, 4})});
  CHECK(graph.str() ==
        "graph(%0: float32 [3, 4])\n"
        "  constant %1: float32 [4, 2]\n"
        "  %2 = float_matmul(%0, %1)  float32 [3, 2]\n"
        "  %3 = float_relu(%2)  float32 [3, 2]\n"
        "  return (%3)\n");
  CHECK(graph.cost(graph.nodes[0]).flops == 2 * 3 * 4 * 2);
  CHECK(graph.cost(graph.nodes[0]).bytes == 4 * (12 + 8 + 6));
  CHECK(graph.cost(graph.nodes[1]).flops == 6);
  CHECK(graph.cost().flops == 54);
  const std::string dot = graph.to_dot();
  CHECK(dot.starts_with("digraph kiln {"));
  CHECK(dot.find("n0 -> n1;") != std::string::npos);
}

TEST_CASE("passes: dead code") {
  const ListFunction f = [](const Tensors& x) {
    static_cast<void>(x[0].exp() + 1);
    Tensor scratch = x[0].clone();
    scratch.fill_(3);  // that nobody reads
    Tensor used = x[0].clone();
    used.select(0, 0).fill_(2);
    return Tensors{used * 2};
  };
  const Tensors inputs = {randn({3, 4})};
  PassOptions options = kNone;
  const Graph before = check(f, inputs, options);
  options.dead_code = true;
  const Graph after = check(f, inputs, options);
  CHECK(count(before, "float_exp") == 1);
  CHECK(count(after, "float_exp") == 0);
  CHECK(count(before, "float_fill") == 2);
  CHECK(count(after, "float_fill") == 1);
  // What it writes outside is no dead code.
  const Tensor kept = zeros({3, 4});
  const Graph writes = graph::optimized(captured(
      [&](const Tensors& x) {
        Tensor to = kept;
        to.copy_(x[0]);
        return Tensors{x[0] + 1};
      },
      inputs));
  CHECK(count(writes, "float_assign") == 1);
}

TEST_CASE("passes: rows that write in place get results of their own") {
  PassOptions options = kNone;
  const auto writes = [](const Graph& graph) {
    int n = 0;
    for (const auto& node : graph.nodes) {
      node.each_operand([&](const graph::Operand& o) { n += o.in_place ? 1 : 0; });
    }
    return n;
  };
  const Tensors inputs = {randn({3, 4})};
  // Read before, between and after the writes, and given out.
  const ListFunction plain = [](const Tensors& x) {
    Tensor y = x[0].exp();
    const Tensor before = y + 1;
    y.relu_();
    const Tensor between = y * before;
    y.add_(between).mul_(y);
    return Tensors{y, before, between, y - 1};
  };
  CHECK(writes(check(plain, inputs, options)) == 3);
  options.own_results = true;
  CHECK(writes(check(plain, inputs, options)) == 0);
  // Where others see the memory, writes stay: a view, an input, what assign writes to.
  const ListFunction seen = [](const Tensors& x) {
    Tensor y = x[0].exp();
    const Tensor row = y.select(0, 0);
    y.relu_();
    Tensor filled = x[0].exp();
    filled.select(0, 1).fill_(2);
    filled.neg_();
    Tensor copied = x[0].sin();
    copied.neg_();
    copied.copy_(x[0]);
    return Tensors{y, row + 1, filled, copied};
  };
  CHECK(writes(check(seen, inputs, options)) >= 3);
  // An activation in place is joined to its convolution.
  const Tensor weight = randn({2, 1, 3, 3});
  const ListFunction conv = [&](const Tensors& x) {
    return Tensors{nn::functional::conv2d(x[0], weight).relu_()};
  };
  options.epilogues = true;
  const Graph joined = check(conv, {randn({2, 1, 5, 5})}, options);
  CHECK(count(joined, "float_conv2d_activation") == 1);
  CHECK(count(joined, "float_relu") == 0);
  // One behind the reshapes of a convolution of one dim, too, unless somebody else sees what is
  // between.
  const Tensor taps = randn({2, 2, 3});
  const ListFunction line = [&](const Tensors& x) {
    const Tensor y = nn::functional::conv1d(x[0], taps).relu();
    Tensor z = nn::functional::conv1d(y, taps).tanh();
    return Tensors{y + 1, z.mul_(2)};
  };
  const Graph lines = check(line, {randn({2, 2, 9})}, options);
  CHECK(count(lines, "float_conv2d_activation") == 2);
  CHECK(count(lines, "float_relu") + count(lines, "float_tanh") == 0);
  const ListFunction between = [&](const Tensors& x) {
    const Tensor y = nn::functional::conv1d(x[0], taps);
    return Tensors{y.relu(), y + 1};
  };
  CHECK(count(check(between, {randn({2, 2, 9})}, options), "float_relu") == 1);
}

TEST_CASE("passes: common subexpressions") {
  const ListFunction f = [](const Tensors& x) {
    Tensor written = x[0].exp();
    written.add_(1);
    return Tensors{x[0].exp() * x[0].exp() + written, x[0].sin(), x[0].sin()};
  };
  PassOptions options = kNone;
  const Tensors inputs = {randn({3, 4})};
  const Graph before = check(f, inputs, options);
  options.common_subexpressions = true;
  const Graph after = check(f, inputs, options);
  CHECK(count(before, "float_exp") == 3);
  CHECK(count(after, "float_exp") == 2);  // the one that is written stays by itself
  CHECK(count(after, "float_sin") == 2);  // results do not share memory
}

TEST_CASE("passes: constants, and frozen weights") {
  const Tensor w = randn({4, 4});
  const ListFunction f = [w](const Tensors& x) {
    return Tensors{x[0].matmul(w.exp() * 2) + arange(0, 4, 1, {.dtype = f32})};
  };
  PassOptions options = kNone;
  const Tensors inputs = {randn({3, 4})};
  const Graph before = check(f, inputs, options);
  options.constant_folding = true;
  const Graph after = check(f, inputs, options);
  CHECK(count(before, "float_exp") == 1);
  CHECK(count(after, "float_exp") == 1);
  CHECK(after.nodes.size() < before.nodes.size());
  options.freeze = true;
  const Graph frozen = check(f, inputs, options);
  CHECK(count(frozen, "float_exp") == 0);
  CHECK(count(frozen, "float_matmul") == 1);
  // What is larger than its operands is not kept, but may be used on the way to something smaller.
  const Tensor narrow = randn({800, 800}).to(bf16);
  const ListFunction wide = [narrow](const Tensors& x) { return Tensors{x[0] + narrow.to(f32)}; };
  const ListFunction passing = [narrow](const Tensors& x) {
    return Tensors{x[0].to(bf16) * (narrow.to(f32) * 2).to(bf16)};
  };
  const Tensors large = {randn({800, 800})};
  CHECK(count(check(wide, large, options), "float_cast") == 1);
  CHECK(count(check(passing, large, options), "float_cast") == 1);  // x's
  // A constant that is written is none.
  const Tensor counter = zeros({4});
  const ListFunction g = [counter](const Tensors& x) {
    Tensor c = counter;
    c.add_(1);
    return Tensors{x[0] * (counter * 1)};
  };
  const Graph counted = graph::optimized(captured(g, inputs), options);
  CHECK(count(counted, "float_mul_scalar") == 1);
}

TEST_CASE("passes: elementwise rows run tile by tile, with the bits of eager computing") {
  PassOptions options = kNone;
  options.fusion = true;
  options.fuse_always = true;
  const auto fused_rows = [](const Graph& graph) {
    int n = 0;
    for (const auto& node : graph.nodes) {
      if (node.kind == graph::NodeKind::fused) n += std::stoi(node.name.substr(6));
    }
    return n;
  };
  for (const DType dtype : {f32, f64, bf16, f16}) {
    CAPTURE(dtype);
    const Tensor a = randn({300, 257}).to(dtype), b = randn({300, 257}).to(dtype);
    const Tensor row = randn({257}).to(dtype), column = randn({300, 1}).to(dtype);
    const Tensor number = randn({}).to(dtype);
    const Graph chain = check(
        [](const Tensors& x) {
          Tensor y = x[0] * x[1] + x[2];
          y = y.exp().add(1).log() - y.tanh() * x[2];
          return Tensors{y.abs().sqrt().sigmoid(), y};
        },
        {a, b, number}, options);
    CHECK(fused_rows(chain) >= 10);
    CHECK(chain.nodes.size() == 1);
    CHECK(fused_rows(check(
              [](const Tensors& x) {
                return Tensors{(x[0] * x[1] + x[0].relu()).clamp(-1, 1) / (x[1].square() + 1)};
              },
              {a, row}, options)) >= 5);
    CHECK(fused_rows(check([](const Tensors& x) { return Tensors{(x[0] - x[1]).gelu() * x[1]}; },
                           {a, column}, options)) >= 3);
    // Conditions, other dtypes, several results.
    CHECK(fused_rows(check(
              [](const Tensors& x) {
                const Tensor mask = x[0].gt(0).logical_and(x[1].lt(0.5));
                return Tensors{where(mask, x[0].pow(3), atan2(x[1], x[0])), mask,
                               x[0].mul(10).to(i64).mul(2).to(f32)};
              },
              {a, b}, options)) >= 7);
  }
  // What is read in between, written in place or not row-major.
  const Tensor a = randn({256, 256});
  const Graph mixed = check(
      [](const Tensors& x) {
        const Tensor y = x[0].exp() + 1;
        const Tensor s = y.sum(1, true);
        Tensor z = y / s;
        z.mul_(2);
        return Tensors{(z.t() + x[0]).sin() * x[0].t(), y.matmul(x[0]).relu() + 2};
      },
      {a}, options);
  CHECK(fused_rows(mixed) >= 4);
  CHECK(fused_rows(check([](const Tensors& x) { return Tensors{x[0].exp().sin()}; }, {randn({100})},
                         options)) == 0);  // small
  // Without fuse_always: two rows for each tensor that is read or written.
  options.fuse_always = false;
  const Tensor b = randn({256, 256});
  const ListFunction few = [](const Tensors& x) { return Tensors{(x[0] + x[1]) * x[0]}; };
  const ListFunction enough = [](const Tensors& x) { return Tensors{(x[0] + 1).exp().sin() * 2}; };
  CHECK(fused_rows(check(few, {a, b}, options)) == 0);
  CHECK(fused_rows(check(enough, {a}, options)) == 4);
}

TEST_CASE("recompute: a cheap value is made again behind the peak, bit for bit") {
  // h is read at once and at the end; in between larger values come and go.
  const ListFunction f = [](const Tensors& x) {
    const Tensor h = x[0].exp();
    const Tensor wide = h.expand({4096, 100}).contiguous() * 2.0;
    return Tensors{(wide.sum(0) * h).sum()};
  };
  const Tensors inputs{randn({1, 100})};
  CHECK(count(check(f, inputs, {.fusion = false}), "float_exp") == 1);
  const Graph graph = check(f, inputs, {.fusion = false, .memory_budget = 0.0});
  CHECK(count(graph, "float_exp") == 1);  // 400 bytes beside 3 MB: not worth a row

  const ListFunction large = [](const Tensors& x) {
    const Tensor h = x[0].exp();
    const Tensor sums = h.matmul(h.t()).exp().matmul(h * 3.0);
    return Tensors{(sums * h).sum()};
  };
  const Tensors square{randn({40, 40})};
  CHECK(count(check(large, square, {.fusion = false}), "float_exp") == 2);
  CHECK(count(check(large, square, {.fusion = false, .memory_budget = 0.0}), "float_exp") == 3);
}

TEST_CASE("recompute: what is written to in between stays") {
  const ListFunction f = [](const Tensors& x) {
    Tensor a = x[0] * 2.0;
    const Tensor h = a.exp();
    const Tensor big = h.matmul(h.t()).matmul(h);
    a.add_(1.0);  // h cannot be made of it anymore
    return Tensors{(big.matmul(big.t()).matmul(big) * h).sum(), a.clone()};
  };
  CHECK(count(check(f, {randn({40, 40})}, {.fusion = false, .memory_budget = 0.0}), "float_exp") ==
        1);
}

TEST_CASE("passes: a plan gives memory back where values are needed last") {
  const ListFunction f = [](const Tensors& x) {
    Tensor y = x[0];
    for (int i = 0; i < 20; ++i) y = y.matmul(x[0]) * 0.01;
    return Tensors{y};
  };
  const Tensors inputs = {randn({256, 256})};
  const graph::Plan plan(graph::optimized(captured(f, inputs)));
  plan.run(inner_of(inputs));
  reset_memory_stats();
  const size_t before = memory_stats().bytes_in_use;
  plan.run(inner_of(inputs));
  // One operand, one result; not forty.
  CHECK(memory_stats().peak_bytes_in_use - before < size_t{6} * 256 * 256 * 4);
}

}  // namespace kiln
