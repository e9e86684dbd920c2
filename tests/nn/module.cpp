#include "kiln/nn/module.h"

#include <set>

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/nn/activation_layers.h"
#include "kiln/nn/sequential.h"
#include "tests/nn/models.h"
#include "tests/support/near.h"

using namespace kiln;
using kiln::nn::Linear;
using kiln::nn::Module;
using kiln::nn::Param;
using kiln::test::Block;
using kiln::test::kNetKeys;
using kiln::test::near;
using kiln::test::Net;

namespace {

template <class T>
std::vector<std::string> names(const std::vector<std::pair<std::string, T>>& named) {
  std::vector<std::string> out;
  for (const auto& [name, value] : named) out.push_back(name);
  return out;
}

using Names = std::vector<std::string>;

// Nothing at all; a forward that takes and returns other things than tensors.
struct Nothing : Module {
  KILN_MODULE(Nothing)
  void forward() { ++calls; }
  int calls = 0;
};

struct Many : Module {
  std::array<Linear, 2> pair{Linear{1, 1}, Linear{1, 1}};
  std::tuple<Linear, Param<Tensor>> mixed{Linear{1, 1}, nn::parameter({1}, nn::init::ones_)};
  std::optional<Linear> some = Linear{1, 1};
  std::optional<Linear> none;
  std::unique_ptr<Module> owned = std::make_unique<Block>();
  std::shared_ptr<Linear> shared = std::make_shared<Linear>(1, 1);
  std::shared_ptr<Linear> null;
  std::vector<Param<Tensor>> scales;
  std::vector<std::vector<Linear>> grid;
  Linear plain[1] = {Linear{1, 1, false}};
  KILN_MODULE(Many, pair, mixed, some, none, owned, shared, null, scales, grid, plain)
};

struct Big : Block {
  Linear extra{2, 4};
  KILN_MODULE_DERIVED(Big, Block, extra)
  Tensor forward(const Tensor& x) { return extra(Block::forward(x)); }
};

struct Tied : Module {
  Linear a{2, 2, false};
  Linear b{2, 2, false};
  KILN_MODULE(Tied, a, b)
};

template <class Act>
struct Wrapped : Module {
  Linear fc{2, 2};
  Act act;
  KILN_MODULE(Wrapped, fc, act)
};

struct Signature : Module {
  KILN_MODULE(Signature)
  std::pair<Tensor, int> forward(const Tensor& x, int n, std::string& log) {
    log += "called";
    return {x * static_cast<double>(n), n + 1};
  }
};

}  // namespace

TEST_CASE("module: operator() is forward, of any signature") {
  Nothing nothing;
  nothing();
  CHECK(nothing.calls == 1);
  Signature module;
  std::string log;
  const auto [y, n] = module(ones({2}), 3, log);
  CHECK(near(y, {3, 3}));
  CHECK(n == 4);
  CHECK(log == "called");
  const Linear layer(2, 1);
  CHECK(layer(ones({2})).shape() == Shape{1});
  Net net;
  CHECK(net(ones({4, 1, 3, 3})).shape() == Shape{4, 2});
  Wrapped<nn::ReLU> wrapped;
  CHECK(wrapped.type_name() == "Wrapped");
  CHECK(wrapped.parameters().size() == 2);
}

TEST_CASE("module: named_parameters, PyTorch's names and order") {
  Net net;
  const auto params = net.named_parameters();
  Names expected = kNetKeys;
  std::erase(expected, "steps");
  CHECK(names(params) == expected);
  CHECK(params[1].second.is_same(*net.conv.weight));
  CHECK(net.parameters().size() == 13);
  CHECK(names(net.named_parameters("net")).front() == "net.scale");
  CHECK(names(net.named_parameters("", false)) == Names{"scale"});
  CHECK(names(net.named_buffers()) == Names{"steps", "scratch"});
  CHECK(names(net.named_buffers("p")) == Names{"p.steps", "p.scratch"});
  CHECK(net.buffers().size() == 2);
  // 3 + 18 + 2 + 4 + 2 + 4 + 2 + 6 + 3 + 4 + 2 + 6 + 2
  CHECK(net.num_params() == 58);
}

TEST_CASE("module: parts in every kind of container") {
  Many many;
  many.scales.push_back(nn::parameter({2}, nn::init::ones_));
  many.scales.push_back(nn::parameter({2}, nn::init::ones_));
  many.grid.resize(2);
  many.grid[1].push_back(Linear{1, 1, false});
  CHECK(names(many.named_parameters()) ==
        Names{"pair.0.weight", "pair.0.bias", "pair.1.weight", "pair.1.bias", "mixed.1",
              "mixed.0.weight", "mixed.0.bias", "some.weight", "some.bias", "owned.fc.weight",
              "owned.fc.bias", "shared.weight", "shared.bias", "scales.0", "scales.1",
              "grid.1.0.weight", "plain.0.weight"});
  CHECK(names(many.named_children()) ==
        Names{"pair.0", "pair.1", "mixed.0", "some", "owned", "shared", "grid.1.0", "plain.0"});
}

TEST_CASE("module: a class derived from a module adds parts") {
  Big big;
  CHECK(big.type_name() == "Big");
  CHECK(names(big.named_parameters()) ==
        Names{"fc.weight", "fc.bias", "extra.weight", "extra.bias"});
  CHECK(big(ones({2})).shape() == Shape{4});
}

TEST_CASE("module: children and modules") {
  Net net;
  CHECK(names(net.named_children()) ==
        Names{"conv", "layers.0", "layers.1", "layers.2", "block", "head"});
  CHECK(net.children().front() == &net.conv);
  const auto modules = net.named_modules();
  CHECK(names(modules) == Names{"", "conv", "layers.0", "layers.1", "layers.2", "block", "block.fc",
                                "block.act", "head", "head.0", "head.1"});
  CHECK(modules[0].second == &net);
  CHECK(modules[6].second == &net.block.fc);
  CHECK(names(net.named_modules("m"))[1] == "m.conv");
  CHECK(names(net.named_modules("m"))[0] == "m");
  CHECK(net.modules().size() == 11);
}

TEST_CASE("module: a const module lists const modules") {
  const nn::Sequential net(nn::Linear(2, 3), nn::Sequential(nn::ReLU()));
  std::vector<std::string> names;
  for (const auto& [name, module] : net.named_modules("net")) {
    static_assert(std::is_same_v<decltype(module), const nn::Module* const>);
    names.push_back(name);
  }
  CHECK(names == std::vector<std::string>{"net", "net.0", "net.1", "net.1.0"});
  CHECK(net.modules().size() == 4);
  CHECK(net.children().size() == 2);
  CHECK(net.named_children()[1].first == "1");
}

TEST_CASE("module: duplicates count once") {
  auto shared = std::make_shared<Linear>(2, 2);
  nn::Sequential net{shared, shared};
  CHECK(names(net.named_modules()) == Names{"", "0"});
  CHECK(names(net.named_modules("", false)) == Names{"", "0", "1"});
  CHECK(net.children().size() == 1);
  CHECK(names(net.named_parameters()) == Names{"0.weight", "0.bias"});
  CHECK(names(net.named_parameters("", true, false)) ==
        Names{"0.weight", "0.bias", "1.weight", "1.bias"});
  CHECK(net.num_params() == 6);
  CHECK(net.state_dict().size() == 4);

  // One tensor in two parameters.
  Tied tied;
  tied.b.weight = Param<Tensor>::initialized(nn::ParamId(), *tied.a.weight);
  CHECK(tied.parameters().size() == 1);
  CHECK(tied.num_params() == 4);
}

TEST_CASE("module: named_modules with a memo of what was seen") {
  Net net;
  std::set<const Module*> memo = {&net.block};
  CHECK(names(net.named_modules(memo, "m")) == Names{"m", "m.conv", "m.layers.0", "m.layers.1",
                                                     "m.layers.2", "m.head", "m.head.0",
                                                     "m.head.1"});
  CHECK(memo.contains(&net.conv));
  CHECK(net.named_modules(memo).empty());
}

TEST_CASE("module: recurse = false lists direct members, prefixed") {
  Net net;
  CHECK(names(net.named_parameters("m", false)) == Names{"m.scale"});
  CHECK(names(net.named_buffers("m", false)) == Names{"m.steps", "m.scratch"});
  CHECK(net.parameters(false).size() == 1);
  CHECK(net.block.buffers(false).empty());
}

TEST_CASE("module: add_module by shared pointer, and None") {
  Block block;
  auto linear = std::make_shared<Linear>(2, 2);
  block.add_module("extra", linear);
  CHECK(block.children().back() == linear.get());
  block.add_module("nothing", nullptr);
  CHECK(names(block.named_children()) == Names{"fc", "act", "extra"});
  block.add_module("extra", nullptr);
  CHECK(names(block.named_children()) == Names{"fc", "act"});
  CHECK_THROWS_AS(block.add_module("fc", linear), KeyError);
  CHECK_THROWS_AS(block.add_module("", linear), KeyError);
  CHECK_THROWS_AS(block.add_module("a.b", linear), KeyError);
  CHECK_THROWS_AS(block.register_buffer("nothing", ones({1})), KeyError);
  const Block copy = block;
  CHECK(copy.parameters().size() == 2);
}

TEST_CASE("module: apply visits parts before their owner") {
  Net net;
  Names order;
  Module& self = net.apply([&order](Module& module) {
    order.push_back(module.type_name());
    if (auto* linear = module.as<Linear>()) linear->requires_grad_(false);
  });
  CHECK(&self == &net);
  CHECK(order == Names{"Conv2d", "Linear", "Linear", "Linear", "Linear", "ReLU", "Block", "Linear",
                       "Tanh", "Sequential", "Net"});
  CHECK(!net.block.fc.weight->requires_grad());
  CHECK(net.conv.weight->requires_grad());
}

TEST_CASE("module: train and eval") {
  Net net;
  CHECK(net.is_training());
  net.eval();
  for (Module* module : net.modules()) CHECK(!module->is_training());
  net.block.train();
  CHECK(net.block.fc.is_training());
  CHECK(!net.is_training());
  CHECK(net.train().is_training());
  CHECK(net.head[0].is_training());
}

TEST_CASE("module: requires_grad_ and zero_grad") {
  Net net;
  net.requires_grad_(false);
  net.for_each_parameter([](const std::string&, Param<Tensor>& param) {
    CHECK(!param.is_initialized());
    CHECK(!param.lazy_is_require_grad());
  });
  CHECK(!net.conv.weight->requires_grad());
  net.requires_grad_();
  CHECK(net.conv.weight->requires_grad());
  CHECK(net.scale->requires_grad());

  net(ones({1, 1, 3, 3})).sum().backward_accumulate();
  CHECK(net.conv.weight->grad().defined());
  net.zero_grad(false);
  CHECK(near(net.conv.bias->grad(), {0, 0}));
  net.zero_grad();
  CHECK(!net.conv.bias->grad().defined());
}

TEST_CASE("module: materialize draws in declaration order") {
  manual_seed(9);
  Net first;
  first.materialize();
  bool all = true;
  first.for_each_parameter([&all](const std::string&, const Param<Tensor>& param) {
    all = all && param.is_initialized();
  });
  CHECK(all);
  manual_seed(9);
  Net second;
  const auto params = second.parameters();
  const auto expected = first.parameters();
  REQUIRE(params.size() == expected.size());
  for (size_t i = 0; i < params.size(); ++i) CHECK(params[i].equal(expected[i]));
  // Otherwise the first use decides; a layer draws its weight before its bias.
  manual_seed(9);
  const Linear used(2, 2);
  used(ones({2}));
  manual_seed(9);
  Linear asked(2, 2);
  asked.materialize();
  CHECK(used.weight->equal(*asked.weight));
  CHECK(used.bias->equal(*asked.bias));
  manual_seed(9);
  const Linear used_first(2, 2);
  used_first.weight.val();
  manual_seed(9);
  Linear a(2, 2);
  Linear b(2, 2);
  b.materialize();
  CHECK(b.weight->equal(*used_first.weight));
  CHECK(!a.weight->equal(*used_first.weight));
}

TEST_CASE("module: asking for sizes initializes nothing") {
  Net net;
  net.num_params();
  to_string(net);
  net.modules();
  net.eval();
  CHECK(!net.conv.weight.is_initialized());
  CHECK(!net.scale.is_initialized());
}
