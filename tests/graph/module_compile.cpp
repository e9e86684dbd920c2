// Module::compile: calls of a module are captured and replayed, with its hooks around them.

#include "kiln/compile/module_compile.h"

#include <memory>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/kiln.h"

using namespace kiln;

namespace {

using Values = std::vector<double>;

Values values_of(const Tensor& x) { return x.detach().to(f64).contiguous().to_vector<double>(); }

struct Net : nn::Module {
  nn::Linear first{8, 16};
  nn::Dropout dropout{0.5};
  nn::Linear second{16, 3};
  KILN_MODULE(Net, first, dropout, second)

  Tensor forward(const Tensor& x) const { return second(dropout(tanh(first(x)))); }
};

// Several arguments, several results, and arguments that are no tensors.
struct Mixed : nn::Module {
  nn::Linear fc{4, 4};
  KILN_MODULE(Mixed, fc)

  std::pair<Tensor, Tensor> forward(const Tensor& x, const Tensor& y) const {
    return {fc(x) + y, x * y};
  }
  Tensor forward(const Tensor& x, double scale) const { return fc(x) * scale; }
  Tensor forward(const Tensor& x) const { return fc(x); }
};

}  // namespace

TEST_CASE("Module::compile: values, gradients, random numbers and state are the module's") {
  manual_seed(1);
  Net net;
  net.materialize();
  const auto plain = net.clone();
  CHECK(net.compiled() == nullptr);
  CHECK(&net.compile() == &net);
  for (int i = 0; i < 4; ++i) {
    const Tensor x = randn({5, 8}).requires_grad_();
    manual_seed(7 + i);
    const Tensor want = (*plain)(x);
    manual_seed(7 + i);
    const Tensor got = net(x);
    CHECK(values_of(got) == values_of(want));
    const std::vector<Tensor> a = grad({want.square().sum()}, {x, plain->first.weight});
    const std::vector<Tensor> b = grad({got.square().sum()}, {x, net.first.weight});
    CHECK(values_of(a[0]) == values_of(b[0]));
    CHECK(values_of(a[1]) == values_of(b[1]));
  }
  CHECK(net.compiled()->counts().captured == 1);
  CHECK(net.compiled()->counts().replayed == 3);
  CHECK(net.compiled()->explain().find("Net: 1 variants") != std::string::npos);
  CHECK(net.compiled()->graphs().find("float_linear") != std::string::npos);
  std::vector<std::string> names;
  for (const auto& [name, x] : net.state_dict()) names.push_back(name);
  CHECK(names ==
        std::vector<std::string>{"first.weight", "first.bias", "second.weight", "second.bias"});
  // Another mode is another variant; reset forgets them.
  net.eval();
  plain->eval();
  const Tensor x = randn({5, 8});
  CHECK(values_of(net(x)) == values_of((*plain)(x)));
  CHECK(net.compiled()->counts().variants == 2);
  net.compiled()->reset();
  CHECK(net.compiled()->counts().variants == 0);
  CHECK(values_of(net(x)) == values_of((*plain)(x)));
}

TEST_CASE("Module::compile: a second derivative, and one when the module is gone") {
  auto net = std::make_unique<Net>();
  net->eval().materialize();
  const auto plain = net->clone();
  net->compile();
  const auto second = [](nn::Module& module, const Tensor& x) {
    const Tensor y = module.call_with_tensor(x).square().sum();
    const Tensor g = grad({y}, {x}, {.create_graph = true})[0];
    return values_of(grad({g.square().sum()}, {x})[0]);
  };
  for (int i = 0; i < 3; ++i) {
    const Tensor x = randn({2, 8}, {.dtype = f32}).requires_grad_();
    const Values got = second(*net, x), want = second(*plain, x);
    REQUIRE(got.size() == want.size());
    for (size_t k = 0; k < got.size(); ++k) CHECK(got[k] == doctest::Approx(want[k]).epsilon(1e-4));
  }
  const Tensor x = randn({2, 8}).requires_grad_();
  const Tensor y = (*net)(x).sum();  // a replay
  CHECK(net->compiled()->counts().replayed == 3);
  net.reset();
  CHECK_THROWS_WITH_AS(static_cast<void>(grad({y}, {x}, {.create_graph = true})),
                       doctest::Contains("the module is gone"), RuntimeError);
}

TEST_CASE("Module::compile: hooks run around each replay, and may replace values") {
  Net net;
  net.eval().materialize();
  int before = 0, after = 0, backward = 0;
  auto pre = net.register_forward_pre_hook([&](nn::Module&, nn::HookArgs& args) {
    ++before;
    args[0].tensor() = args[0].tensor() * 2;
  });
  auto post = net.register_forward_hook([&](nn::Module&, nn::HookArgs&, nn::HookValue& output) {
    ++after;
    output.tensor() = output.tensor() + 1;
  });
  auto full = net.register_full_backward_hook(
      [&](nn::Module&, const nn::Gradient&, const nn::Gradient&) { ++backward; });
  const auto plain = net.clone();  // with the same hooks
  CHECK(plain->compiled() == nullptr);
  net.compile();
  for (int i = 0; i < 3; ++i) {
    const Tensor x = randn({2, 8}).requires_grad_();
    const Tensor got = net(x), want = (*plain)(x);
    CHECK(values_of(got) == values_of(want));
    CHECK(values_of(grad({got.sum()}, {x})[0]) == values_of(grad({want.sum()}, {x})[0]));
  }
  CHECK(before == 6);
  CHECK(after == 6);
  CHECK(backward == 6);
  CHECK(net.compiled()->counts().replayed == 2);
}

TEST_CASE("Module::compile: other arguments and results") {
  Mixed net;
  net.materialize();
  const Mixed plain = net;
  net.compile();
  for (int i = 0; i < 3; ++i) {
    const Tensor x = randn({2, 4}), y = randn({2, 4});
    const auto [a, b] = net(x, y);
    const auto [c, d] = plain(x, y);
    CHECK(values_of(a) == values_of(c));
    CHECK(values_of(b) == values_of(d));
    CHECK(values_of(net(x)) == values_of(plain(x)));
    CHECK(values_of(net(x, 3.0)) == values_of(plain(x, 3.0)));
  }
  const Compiled::Counts counts = net.compiled()->counts();
  CHECK(counts.captured == 2);
  CHECK(counts.replayed == 4);
  CHECK(counts.eager == 3);
  CHECK(net.compiled()->explain().find("3 calls had arguments") != std::string::npos);
  net.compile({.fullgraph = true});
  const Tensor x = randn({2, 4});
  CHECK_THROWS_AS(net(x, 2.0), TypeError);
  CHECK_THROWS_AS(net.compile({.max_variants = 0}), ValueError);
  CHECK(values_of(net(x)) == values_of(plain(x)));  // the options before stay
}

TEST_CASE("Module::compile: a module that was moved, and parts that are compiled by themselves") {
  Net net;
  net.eval();
  const Tensor x = randn({3, 8});
  const Values want = values_of(net(x));
  net.compile();
  CHECK(values_of(net(x)) == want);
  Net moved = std::move(net);
  CHECK(values_of(moved(x)) == want);
  CHECK(values_of(moved(x)) == want);
  CHECK(moved.compiled()->counts().replayed == 1);
  Net parts;
  parts.eval();
  const Values all = values_of(parts(x));
  parts.first.compile();
  parts.second.compile({.freeze = true});
  for (int i = 0; i < 3; ++i) CHECK(values_of(parts(x)) == all);
  CHECK(parts.first.compiled()->counts().replayed == 2);
  // A compiled whole captures what its compiled parts compute.
  parts.compile();
  for (int i = 0; i < 3; ++i) CHECK(values_of(parts(x)) == all);
  CHECK(parts.compiled()->counts().replayed == 2);
}
