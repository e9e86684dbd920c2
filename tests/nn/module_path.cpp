// get_submodule, set_submodule, get_parameter, get_buffer; the page's own examples among them.
#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "tests/nn/models.h"
#include "tests/support/near.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::nn::Conv2d;
using kiln::nn::Linear;
using kiln::nn::Module;
using kiln::test::message_of;
using kiln::test::Net;

namespace {

struct NetC : Module {
  Conv2d conv{1, 1, 3};
  KILN_MODULE(NetC, conv)
};
struct NetB : Module {
  NetC net_c;
  std::shared_ptr<Module> linear = std::make_shared<Linear>(2, 2);
  KILN_MODULE(NetB, net_c, linear)
};
struct NetA : Module {
  NetB net_b;
  Linear linear{2, 2};
  KILN_MODULE(NetA, net_b, linear)
};

}  // namespace

TEST_CASE("get_submodule") {
  NetA a;
  CHECK(&a.get_submodule("net_b.net_c.conv") == &a.net_b.net_c.conv);
  CHECK(&a.get_submodule("net_b.linear") == a.net_b.linear.get());
  CHECK(&a.get_submodule("") == &a);
  CHECK(message_of<AttributeError>([&] { a.get_submodule("net_b.nope.conv"); }) ==
        "NetB has no attribute `nope`");
  CHECK(message_of<AttributeError>([&] { a.get_submodule("net_b.net_c.conv.weight"); }) ==
        "`weight` is not an nn.Module; it is a part of Conv2d");
  CHECK_THROWS_AS(a.get_submodule("net_b..conv"), AttributeError);
  CHECK_THROWS_AS(a.get_submodule(".net_b"), AttributeError);
}

TEST_CASE("get_submodule: through containers") {
  Net net;
  CHECK(&net.get_submodule("layers.1") == &net.layers[1]);
  CHECK(&net.get_submodule("head.0") == &net.head[0]);
  CHECK_THROWS_AS(net.get_submodule("layers"), AttributeError);
  CHECK_THROWS_AS(net.get_submodule("layers.3"), AttributeError);
  CHECK(&net.get_parameter("layers.2.weight") == &net.layers[2].weight);
}

TEST_CASE("get_parameter and get_buffer") {
  Net net;
  CHECK(&net.get_parameter("conv.weight") == &net.conv.weight);
  CHECK(&net.get_parameter("scale") == &net.scale);
  CHECK(&net.get_buffer("steps") == &net.steps);
  CHECK(message_of<AttributeError>([&] { net.get_parameter("steps"); }) ==
        "`steps` is not an nn.Parameter");
  CHECK(message_of<AttributeError>([&] { net.get_parameter("conv.nope"); }) ==
        "Conv2d has no attribute `nope`");
  CHECK_THROWS_AS(net.get_parameter("nope.weight"), AttributeError);
  CHECK_THROWS_AS(net.get_parameter("conv"), AttributeError);
  CHECK(message_of<AttributeError>([&] { net.get_buffer("scale"); }) == "`scale` is not a buffer");
  CHECK_THROWS_AS(net.get_buffer("block.nope"), AttributeError);
  Linear no_bias(1, 1, false);
  CHECK_THROWS_AS(no_bias.get_parameter("bias"), AttributeError);
}

TEST_CASE("set_submodule: overrides, or adds to an existing parent") {
  NetA a;
  a.set_submodule("net_b.net_c.conv", std::make_shared<Conv2d>(2, 4, 1));
  CHECK(a.net_b.net_c.conv.weight.lazy_shape() == Shape{4, 2, 1, 1});
  auto relu = std::make_shared<nn::ReLU>();
  a.set_submodule("net_b.linear", relu);
  CHECK(a.net_b.linear == relu);
  a.set_submodule("net_b.conv", std::make_shared<Conv2d>(1, 1, 1));
  CHECK(a.get_submodule("net_b.conv").type_name() == "Conv2d");
  a.set_submodule("net_b.conv", relu, true);  // it is there now
  CHECK(a.get_submodule("net_b.conv").type_name() == "ReLU");
}

TEST_CASE("set_submodule: errors") {
  NetA a;
  const auto conv = std::make_shared<Conv2d>(1, 1, 1);
  CHECK_THROWS_AS(a.set_submodule("net_b.conv", conv, true), AttributeError);
  CHECK_THROWS_AS(a.set_submodule("", conv), ValueError);
  CHECK_THROWS_AS(a.set_submodule("net_b.conv", nullptr), ValueError);
  CHECK_THROWS_AS(a.set_submodule("nope.conv", conv), AttributeError);
  CHECK_THROWS_AS(a.set_submodule("linear.weight", conv), AttributeError);
  CHECK_THROWS_AS(a.set_submodule("linear.weight.x", conv), AttributeError);
  CHECK(message_of<TypeError>([&] { a.set_submodule("linear", conv); }) ==
        "set_submodule: 'linear' holds a Linear by value; got a Conv2d; expected a module of the "
        "same class that can be copied");
}

TEST_CASE("set_submodule: elements of containers") {
  Net net;
  net.set_submodule("head.1", std::make_shared<nn::ReLU>());
  CHECK(net.head[1].type_name() == "ReLU");
  net.set_submodule("layers.0", std::make_shared<Linear>(2, 2, false));
  CHECK(!net.layers[0].bias.defined());
  CHECK(net(ones({1, 1, 3, 3})).shape() == Shape{1, 2});
}
