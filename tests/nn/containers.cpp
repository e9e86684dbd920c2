// Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict as PyTorch's.
#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "tests/nn/models.h"
#include "tests/support/near.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::nn::Linear;
using kiln::nn::Module;
using kiln::nn::ModuleDict;
using kiln::nn::ModuleList;
using kiln::nn::Param;
using kiln::nn::ParameterDict;
using kiln::nn::ParameterList;
using kiln::nn::ReLU;
using kiln::nn::Sequential;
using kiln::nn::Sigmoid;
using kiln::nn::Tanh;
using kiln::test::message_of;
using kiln::test::near;

namespace {

using Names = std::vector<std::string>;

template <class Container>
Names types(const Container& container) {
  Names out;
  for (Module& module : container) out.push_back(module.type_name());
  return out;
}

Names child_names(Module& module) {
  Names out;
  for (const auto& [name, child] : module.named_children()) out.push_back(name);
  return out;
}

}  // namespace

TEST_CASE("Sequential: insert, pop, set, erase rename by position") {
  Sequential net{Linear{2, 2}, ReLU{}};
  net.insert(1, Tanh{}).insert(-1, Sigmoid{}).insert(4, ReLU{});
  CHECK(types(net) == Names{"Linear", "Tanh", "Sigmoid", "ReLU", "ReLU"});
  CHECK(child_names(net) == Names{"0", "1", "2", "3", "4"});
  CHECK(net.pop(1)->type_name() == "Tanh");
  CHECK(net.pop()->type_name() == "ReLU");
  CHECK(child_names(net) == Names{"0", "1", "2"});
  net.set(-1, Tanh{});
  net.erase(1);
  CHECK(types(net) == Names{"Linear", "Tanh"});
  net.append(Linear{2, 3});
  CHECK(net(ones({1, 2})).shape() == Shape{1, 3});
  CHECK_THROWS_AS(net.insert(4, ReLU{}), IndexError);
  CHECK_THROWS_AS(net.insert(-4, ReLU{}), IndexError);
  CHECK_THROWS_AS(net.pop(3), IndexError);
  CHECK_THROWS_AS(net.set(3, ReLU{}), IndexError);
  CHECK_THROWS_AS(net.set(0, std::shared_ptr<ReLU>()), TypeError);
  CHECK_THROWS_AS(Sequential().pop(), IndexError);
}

TEST_CASE("Sequential: slices and extend share modules") {
  Sequential net{Linear{2, 2}, ReLU{}, Linear{2, 3}, Tanh{}};
  const Sequential tail = net.slice(1, -1);
  CHECK(types(tail) == Names{"ReLU", "Linear"});
  CHECK(&tail[1] == &net[2]);
  CHECK(types(net.slice({}, {}, 2)) == Names{"Linear", "Linear"});
  CHECK(types(net.slice(-2)) == Names{"Linear", "Tanh"});
  CHECK(net.slice(3, 1).empty());
  CHECK(net.slice(10).empty());
  CHECK_THROWS_AS(net.slice({}, {}, 0), ValueError);
  Sequential sum = net.slice();
  sum.extend(tail);
  CHECK(sum.size() == 6);
  CHECK(&sum[5] == &net[2]);
  sum.extend(sum);
  CHECK(sum.size() == 12);
  const Sequential copy = tail;
  CHECK(&copy[1] != &tail[1]);
}

TEST_CASE("Sequential: names given by the user stay") {
  Sequential net;
  net.push_back("fc", Linear{2, 2}).push_back(ReLU{}).push_back("out", Linear{2, 1});
  CHECK(net["fc"].type_name() == "Linear");
  CHECK_THROWS_AS(net["no"], KeyError);
  net.insert(1, Tanh{});
  CHECK(child_names(net) == Names{"fc", "1", "2", "out"});
  net.pop(0);
  CHECK(child_names(net) == Names{"0", "1", "out"});
}

TEST_CASE("Sequential: a module known only as a Module") {
  std::shared_ptr<Module> any = std::make_shared<Linear>(2, 3);
  Sequential net{ReLU{}, any};
  CHECK(net(ones({1, 2})).shape() == Shape{1, 3});
  ModuleList list;
  list.push_back(any);
  CHECK(list[0].call_with_tensor(ones({1, 2})).shape() == Shape{1, 3});
  CHECK(message_of<NotImplementedError>([&] { list.call_with_tensor(ones({1})); }) ==
        "Module: the forward of ModuleList does not take one tensor and return one");
}

TEST_CASE("ModuleList: append, extend, insert, pop, set, slice") {
  ModuleList list;
  list.append(Linear{2, 2}).append(ReLU{}).insert(0, Tanh{});
  CHECK(types(list) == Names{"Tanh", "Linear", "ReLU"});
  ModuleList more;
  more.append(Sigmoid{});
  list.extend(more);
  CHECK(&list[-1] == &more[0]);
  CHECK(list.pop(0)->type_name() == "Tanh");
  CHECK(list.pop()->type_name() == "Sigmoid");
  list.set(1, Tanh{});
  CHECK(types(list) == Names{"Linear", "Tanh"});
  CHECK(list.state_dict().keys() == Names{"0.weight", "0.bias"});
  CHECK(types(list.slice(1)) == Names{"Tanh"});
  list.erase(-1);
  CHECK(list.size() == 1);
  CHECK_THROWS_AS(list.insert(3, ReLU{}), IndexError);
  CHECK_THROWS_AS(list.append(std::shared_ptr<Module>()), TypeError);
}

TEST_CASE("ModuleDict") {
  ModuleDict dict;
  dict.set("conv", nn::Conv2d{1, 2, 3}).set("pool", nn::MaxPool2d{3});
  dict.set("act", std::make_shared<ReLU>());
  CHECK(dict.keys() == Names{"conv", "pool", "act"});
  CHECK(dict.contains("pool"));
  CHECK(!dict.contains("none"));
  CHECK(dict["act"].type_name() == "ReLU");
  CHECK(dict.at<nn::Conv2d>("conv").weight.lazy_shape() == Shape{2, 1, 3, 3});
  CHECK_THROWS_AS(dict.at<ReLU>("conv"), TypeError);
  CHECK(message_of<KeyError>([&] { dict["none"]; }) == "ModuleDict: no module is named 'none'");
  CHECK_THROWS_AS(dict.pop("none"), KeyError);
  CHECK_THROWS_AS(dict.set("a.b", ReLU{}), KeyError);
  CHECK_THROWS_AS(dict.set("", ReLU{}), KeyError);
  CHECK_THROWS_AS(dict.set("x", std::shared_ptr<ReLU>()), TypeError);
  CHECK(dict.state_dict().keys() == Names{"conv.weight", "conv.bias"});
  ModuleDict other;
  other.set("act", Tanh{}).set("last", Linear{1, 1});
  dict.update(other);
  CHECK(dict.keys() == Names{"conv", "pool", "act", "last"});
  CHECK(dict["act"].type_name() == "Tanh");
  CHECK(&dict["last"] == &other["last"]);
  CHECK(dict.pop("conv")->type_name() == "Conv2d");
  dict.erase("pool");
  CHECK(to_string(dict) ==
        "ModuleDict(\n"
        "  (act): Tanh()\n"
        "  (last): Linear(in_features=1, out_features=1, bias=True)\n"
        ")");
  const ModuleDict copy = dict;
  CHECK(&copy["last"] != &dict["last"]);
  dict.clear();
  CHECK(dict.empty());
  CHECK(types(copy) == Names{"Tanh", "Linear"});
}

TEST_CASE("ParameterList") {
  ParameterList list{ones({2, 3}), zeros({4})};
  list.append(nn::parameter({1}, nn::init::ones_)).append(full({1}, 3.0));
  CHECK(list.size() == 4);
  CHECK(list[0]->requires_grad());
  CHECK(near(*list[-1], {3.0}));
  CHECK(!list[2].is_initialized());
  CHECK_THROWS_AS(list[4], IndexError);
  CHECK(list.state_dict().keys() == Names{"0", "1", "2", "3"});
  list.set(1, Param<Tensor>::from_tensor(ones({2})));
  CHECK(list[1].lazy_shape() == Shape{2});
  ParameterList two{ones({2, 3}), zeros({4})};
  // PyTorch's text, but for its "torch." before the dtype.
  CHECK(to_string(two) ==
        "ParameterList(\n"
        "    (0): Parameter containing: [float32 of size 2x3]\n"
        "    (1): Parameter containing: [float32 of size 4]\n"
        ")");
  two.extend(list);
  CHECK(two.size() == 6);
  CHECK(!two[0]->is_same(*list[0]));
  Param<Tensor>* const first = &two[0];
  for (int i = 0; i < 20; ++i) two.append(ones({1}));
  CHECK(first == &two[0]);
}

TEST_CASE("ParameterDict") {
  ParameterDict dict{{"left", ones({5, 10})}, {"right", zeros({2})}};
  CHECK(dict.keys() == Names{"left", "right"});
  CHECK(dict["left"]->requires_grad());
  CHECK(dict.get("none") == nullptr);
  CHECK(message_of<KeyError>([&] { dict["none"]; }) ==
        "ParameterDict: no parameter is named 'none'");
  CHECK(near(*dict.setdefault("right", Param<Tensor>::from_tensor(ones({1}))), {0, 0}));
  CHECK(near(*dict.setdefault("new", Param<Tensor>::from_tensor(ones({1}))), {1}));
  dict.set("left", full({1}, 2.0));
  CHECK(dict.state_dict().keys() == Names{"left", "right", "new"});
  CHECK(near(*dict.pop("left"), {2}));
  CHECK(!dict.contains("left"));
  const auto [name, value] = dict.popitem();
  CHECK(name == "new");
  CHECK(near(*value, {1}));
  ParameterDict other;
  other.update(dict);
  CHECK(other.keys() == Names{"right"});
  CHECK(!other["right"]->is_same(*dict["right"]));
  dict.clear();
  CHECK(dict.empty());
  CHECK_THROWS_AS(dict.popitem(), KeyError);
  CHECK_THROWS_AS(dict.pop("x"), KeyError);
  CHECK_THROWS_AS(dict.set("a.b", ones({1})), KeyError);
}
