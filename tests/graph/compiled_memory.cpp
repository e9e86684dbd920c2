// What a compiled step takes of memory, and when it drops gradients.
#include <cmath>
#include <functional>

#include <doctest/doctest.h>

#include "kiln/compile/compile.h"
#include "kiln/kiln.h"

namespace kiln {
namespace {

size_t peak_of(const std::function<void()>& step) {
  for (int i = 0; i < 3; ++i) step();
  reset_memory_stats();
  step();
  return memory_stats().peak_bytes_in_use;
}

struct Trained {
  size_t before = (manual_seed(1), memory_stats().bytes_in_use);
  nn::Linear net{600, 600};
  optim::SGD optimizer{net.parameters(), {.lr = 0.01}};
  Tensor x = randn({8, 600});

  Tensor step(const Tensor& given) {
    net.zero_grad();
    Tensor loss = net(given).square().mean();
    loss.backward_accumulate();
    optimizer.step();
    return loss;
  }
};

}  // namespace

TEST_CASE("compile: a step takes no more memory than the eager one") {
  size_t eager = 0, compiled = 0;
  Tensor weight, other;
  {
    Trained t;
    eager = peak_of([&] { t.step(t.x); }) - t.before;
    weight = (*t.net.weight).detach().clone();
  }
  {
    Trained t;
    const auto step = compile([&](const Tensor& x) { return t.step(x); }, {.modules = {&t.net}});
    compiled = peak_of([&] { step(t.x); }) - t.before;
    other = (*t.net.weight).detach().clone();
    CHECK(step.counts().replayed == 3);
  }
  CHECK(weight.equal(other));
  // The gradient of the step before, 1.44 MB, is gone when the new one is made.
  CHECK(compiled <= eager + eager / 20);
}

namespace {

// Convolutions, norms and activations, many times: what the backward pass reads can be made again.
struct Deep : nn::Module {
  nn::Conv2d first{3, 8, 3, {.padding = 1}};
  nn::Sequential blocks;
  nn::LayerNorm norm{64};
  nn::Dropout drop{0.25};
  nn::Linear up{64, 128}, down{128, 64};
  KILN_MODULE(Deep, first, blocks, norm, drop, up, down)

  Deep() {
    for (int i = 0; i < 12; ++i) {
      blocks.push_back(nn::Conv2d(8, 8, 3, {.padding = 1}));
      blocks.push_back(nn::BatchNorm2d(8));
      blocks.push_back(nn::ReLU());
    }
  }
  Tensor forward(Tensor x) {
    x = first(x).relu();
    x = (blocks(x) + x).relu();
    return down(drop(gelu(up(norm(x.flatten(2))))));
  }
};

struct Kept {
  std::vector<std::vector<double>> values;
  size_t peak = 0;
  std::string text;
};

// Losses, gradients and state after some steps, and the peak of memory of one.
Kept trained(const CompileOptions& options, bool whole_step) {
  manual_seed(5);
  Deep net;
  net.materialize();
  const size_t before = memory_stats().bytes_in_use;
  optim::SGD optimizer(net.parameters(), {.lr = 0.01, .momentum = 0.9});
  CompileOptions with_net = options;
  with_net.modules = {&net};
  const Tensor x = randn({16, 3, 8, 8});
  const auto model = [&](const Tensor& given) { return net(given); };
  const auto compiled = compile(model, with_net);
  const auto step = [&](const Tensor& given, const auto& f) {
    net.zero_grad();
    Tensor loss = f(given).square().mean();
    loss.backward_accumulate();
    optimizer.step();
    return loss.detach();
  };
  const auto steps = compile([&](const Tensor& given) { return step(given, model); }, with_net);
  Kept out;
  const auto run = [&] {
    const Tensor loss = whole_step ? steps(x) : step(x, compiled);
    out.values.push_back(loss.to_data().to_doubles());
  };
  out.peak = peak_of(run) - before;
  for (const Tensor& p : net.parameters()) {
    out.values.push_back(p.detach().to_data().to_doubles());
    out.values.push_back(p.grad().to_data().to_doubles());
  }
  for (const Tensor& b : net.buffers()) out.values.push_back(b.to_data().to_doubles());
  out.text = whole_step ? steps.explain() : compiled.explain();
  return out;
}

}  // namespace

TEST_CASE("compile: with a memory budget a step takes less memory and has the same bits") {
  for (const bool whole_step : {true, false}) {
    CAPTURE(whole_step);
    const Kept eager = trained({.disable = true}, whole_step);
    const Kept all = trained({}, whole_step);
    CHECK(all.text.find("recomputation") == std::string::npos);
    for (const double budget : {0.8, 0.0}) {
      CAPTURE(budget);
      const Kept less = trained({.memory_budget = budget}, whole_step);
      CHECK(less.values == eager.values);
      CAPTURE(less.text);
      CHECK(less.text.find("recomputation: ") != std::string::npos);
      CAPTURE(less.peak);
      CAPTURE(all.peak);
      CHECK(static_cast<double>(less.peak) <
            (budget == 0.0 ? 0.8 : 0.9) * static_cast<double>(all.peak));
    }
  }
}

TEST_CASE("compile: a memory budget beyond 0 to 1 is refused") {
  for (const double budget : {-0.5, 1.5, std::nan("")}) {
    CHECK_THROWS_AS(
        compile([](const Tensor& x) { return x; }, {.memory_budget = budget})(ones({1})),
        ValueError);
  }
}

TEST_CASE("compile: a call that fails drops gradients as the eager one does") {
  for (const bool reset_first : {true, false}) {
    CAPTURE(reset_first);
    for (const bool compiled : {true, false}) {
      CAPTURE(compiled);
      nn::Linear net{4, 3};
      const auto f = [&](const Tensor& x, const Tensor& y) {
        if (reset_first) net.zero_grad();
        const Tensor loss = functional::cross_entropy(net(x), y);
        if (!reset_first) net.zero_grad();
        loss.backward_accumulate();
        return loss.detach();
      };
      const auto step = compile(f, {.disable = !compiled, .modules = {&net}});
      const Tensor x = ones({2, 4}), good = arange(0, 2), bad = arange(2, 4);
      for (int i = 0; i < 3; ++i) step(x, good);
      CHECK(step.counts().replayed == (compiled ? 2 : 0));
      CHECK((*net.weight).grad().defined());
      CHECK_THROWS_AS(step(x, bad), IndexError);
      CHECK((*net.weight).grad().defined() == !reset_first);
    }
  }
}

}  // namespace kiln
