#include "kiln/optim/param_groups.h"

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/optim/optim.h"
#include "tests/nn/models.h"
#include "tests/support/near.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::test::message_of;
using kiln::test::near;
using kiln::test::Net;

TEST_CASE("param_groups: each parameter in one group, the first that matches") {
  Net net;
  const auto groups = optim::param_groups(
      net, {{"*.bias", {.weight_decay = 0.0}}, {{"conv.*", "scale"}, {.lr = 0.5}}});
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].params.size() == 6);
  CHECK(groups[0].weight_decay == 0.0);
  CHECK(!groups[0].lr.has_value());
  CHECK(groups[1].params.size() == 2);  // conv.weight, scale: conv.bias was taken
  CHECK(groups[1].params[0].is_same(*net.scale));
  CHECK(groups[1].lr == 0.5);
  CHECK(groups[2].params.size() == 5);
  CHECK(groups[0].params.size() + groups[1].params.size() + groups[2].params.size() ==
        net.parameters().size());
}

TEST_CASE("param_groups: the optimizer's options fill in what rules leave out") {
  nn::Linear fc(1, 1, true);
  fc.weight.replace(ones({1, 1}).requires_grad_());
  fc.bias.replace(ones({1}).requires_grad_());
  optim::SGD sgd(optim::param_groups(fc, {{"bias", {.lr = 0.25, .weight_decay = 0.0}}}),
                 {.lr = 0.5, .weight_decay = 0.1});
  fc(ones({1, 1})).sum().backward_accumulate();
  sgd.step();
  CHECK(near(*fc.weight, {1.0 - 0.5 * (1.0 + 0.1)}));
  CHECK(near(*fc.bias, {1.0 - 0.25}));
}

TEST_CASE("param_groups: frozen parameters are left out, tied ones count once") {
  Net net;
  nn::freeze(net, "conv.*");
  net.layers[1].weight.replace(net.layers[0].weight.val());
  const auto groups = optim::param_groups(net, {{"layers.*", {.lr = 1.0}}, {"conv.*", {}}});
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].params.size() == 5);
  CHECK(groups[1].params.size() == 5);
}

TEST_CASE("param_groups: what matches nothing is an error") {
  Net net;
  CHECK(message_of<ValueError>([&] {
          optim::param_groups(net, {{"encoder.*", {}}});
        }).find("rule 0 matches no parameter; got 'encoder.*'") != std::string::npos);
  CHECK(message_of<ValueError>([&] {
          optim::param_groups(net, {{"*", {}}, {"conv.*", {}}});
        }).find("rule 1 matches only what earlier rules took") != std::string::npos);
  nn::freeze(net);
  CHECK(message_of<ValueError>([&] { optim::param_groups(net, {}); }).find("requires a gradient") !=
        std::string::npos);
}
