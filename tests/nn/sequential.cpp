#include "kiln/nn/sequential.h"

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/nn/module_dict.h"
#include "kiln/nn/module_list.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "tests/nn/models.h"
#include "tests/support/near.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::nn::Linear;
using kiln::nn::ReLU;
using kiln::nn::Sequential;
using kiln::test::message_of;
using kiln::test::near;

TEST_CASE("Sequential: feeds one module to the next") {
  Sequential net{Linear{2, 2}, ReLU{}, Linear{2, 1}};
  net.load_state_dict({{"0.weight", tensor({{1.0, 2.0}, {-1.0, -1.0}})},
                       {"0.bias", tensor({0.5, 0.0})},
                       {"2.weight", tensor({{2.0, 3.0}})},
                       {"2.bias", tensor({-1.0})}});
  // relu([1 + 2 + 0.5, -2]) = [3.5, 0]; 7 - 1 = 6.
  const Tensor x = ones({1, 2});
  CHECK(near(net(x), {6.0}));
  CHECK(near(x, {1.0, 1.0}));
  CHECK(near(net(ones({1, 2})), {6.0}));
  CHECK(Sequential()(x).is_same(x));
  net(x).sum().backward_accumulate();
  CHECK(near(net.at<Linear>(2).weight->grad(), {3.5, 0.0}));
}

TEST_CASE("Sequential: indexing, adding, names") {
  Sequential net{Linear{4, 3}, test::Block{}};
  CHECK(net.size() == 2);
  CHECK(net[0].type_name() == "Linear");
  CHECK(net[-1].type_name() == "Block");
  CHECK(net.at<Linear>(0).out_features() == 3);
  CHECK(message_of<TypeError>([&] { net.at<Linear>(1); }) ==
        "Sequential: module 1 is of another class; got Block; expected Linear");
  CHECK(message_of<IndexError>([&] { net[2]; }) ==
        "Sequential: index out of range; got 2 for 2 modules");
  CHECK_THROWS_AS(net[-3], IndexError);
  net.push_back(ReLU{}).push_back("out", Linear{2, 2, false});
  CHECK(net.state_dict().keys() ==
        std::vector<std::string>{"0.weight", "0.bias", "1.fc.weight", "1.fc.bias", "out.weight"});
  CHECK_THROWS_AS(net.push_back("out", ReLU{}), KeyError);
  CHECK_THROWS_AS(net.push_back("a.b", ReLU{}), KeyError);
  CHECK_THROWS_AS(net.push_back("", ReLU{}), KeyError);
  CHECK_THROWS_AS(net.push_back(std::shared_ptr<Linear>()), TypeError);
}

TEST_CASE("Sequential: copies and nesting") {
  Sequential inner{Linear{2, 2}};
  Sequential copy{inner};
  CHECK(copy.size() == 1);
  CHECK(copy[0].type_name() == "Linear");
  Sequential outer;
  outer.push_back(inner);
  CHECK(outer.state_dict().keys() == std::vector<std::string>{"0.0.weight", "0.0.bias"});
  inner.materialize();
  const Sequential twin = inner;
  NoGradGuard no_grad;
  CHECK(twin.at<Linear>(0).weight->equal(*inner.at<Linear>(0).weight));
  inner.at<Linear>(0).weight->fill_(0.0);
  CHECK(!twin.at<Linear>(0).weight->equal(*inner.at<Linear>(0).weight));
  copy = inner;
  CHECK(near(*copy.at<Linear>(0).weight, {0, 0, 0, 0}));
}

TEST_CASE("Sequential: a module shared with others") {
  auto layer = std::make_shared<Linear>(2, 2);
  Sequential net{layer, ReLU{}, layer};
  CHECK(&net[0] == layer.get());
  CHECK(&net[2] == layer.get());
  CHECK(net.parameters().size() == 2);
  const Sequential copy = net;
  CHECK(&copy[0] != layer.get());
  CHECK(&copy[0] == &copy[2]);
  CHECK(net.clone()->modules().size() == 3);
}

TEST_CASE("Sequential: hooks of its modules run") {
  Sequential net{ReLU{}, ReLU{}};
  int calls = 0;
  net[1].register_forward_hook(
      [&](nn::Module&, std::span<const nn::HookValue>, const nn::HookValue& output) {
        ++calls;
        output.tensor() = output.tensor() + 1.0;
      });
  CHECK(near(net(ones({2})), {2.0, 2.0}));
  CHECK(calls == 1);
}

TEST_CASE("containers: no module is a part of itself") {
  const auto net = std::make_shared<Sequential>(Linear{2, 2});
  const auto text = [](const std::string& op, const std::string& got, const std::string& own) {
    return op + ": a module cannot be a part of itself; got a " + got +
           " that is or contains this " + own;
  };
  CHECK(message_of<ValueError>([&] { net->push_back(net); }) ==
        text("Sequential", "Sequential", "Sequential"));
  const auto outer = std::make_shared<Sequential>();
  outer->push_back(net);
  CHECK(message_of<ValueError>([&] { net->insert(0, outer); }) ==
        text("Sequential", "Sequential", "Sequential"));
  CHECK(message_of<ValueError>([&] { net->add_module("outer", outer); }) ==
        text("add_module", "Sequential", "Sequential"));
  const auto list = std::make_shared<nn::ModuleList>();
  CHECK(message_of<ValueError>([&] { list->append(list); }) ==
        text("ModuleList", "ModuleList", "ModuleList"));
  const auto dict = std::make_shared<nn::ModuleDict>();
  list->append(dict);
  CHECK(message_of<ValueError>([&] { dict->set("all", list); }) ==
        text("ModuleDict", "ModuleList", "ModuleDict"));
  CHECK(net->size() == 1);
  CHECK(outer->parameters().size() == 2);
}
