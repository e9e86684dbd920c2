#include "kiln/nn/path_filter.h"

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/nn/key_remapper.h"
#include "tests/nn/models.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::nn::KeyRemapper;
using kiln::nn::PathFilter;
using kiln::test::message_of;
using kiln::test::Net;

TEST_CASE("PathFilter: globs match whole paths") {
  CHECK(PathFilter().matches("anything"));
  CHECK(!PathFilter::none().matches("anything"));
  CHECK(PathFilter("fc.weight").matches("fc.weight"));
  CHECK(!PathFilter("fc.weight").matches("a.fc.weight"));
  CHECK(!PathFilter("fc.weight").matches("fcxweight"));
  CHECK(PathFilter("encoder.*").matches("encoder.layers.0.weight"));
  CHECK(!PathFilter("encoder.*").matches("encoder"));
  CHECK(PathFilter("*.bias").matches("a.b.bias"));
  CHECK(PathFilter("layers.?.weight").matches("layers.3.weight"));
  CHECK(!PathFilter("layers.?.weight").matches("layers.13.weight"));
  CHECK(PathFilter("*a*b*c*").matches("xxaxxbxbxxc"));
  CHECK(!PathFilter("*a*b*c*").matches("xxaxxcxxb"));
  CHECK(PathFilter("").matches(""));
  CHECK(!PathFilter("").matches("a"));
  CHECK(PathFilter({"a", "b.*"}).matches("b.c"));
  // No exponential search.
  CHECK(!PathFilter("*a*a*a*a*a*a*a*a*a*a*b").matches(std::string(4000, 'a')));
}

TEST_CASE("PathFilter: expressions, predicates, ids and their combinations") {
  CHECK(PathFilter::regex("^fc\\d$").matches("fc1"));
  CHECK(!PathFilter::regex("^fc\\d$").matches("fc12"));
  CHECK(PathFilter::regex("weight").matches("fc.weight"));
  CHECK(message_of<ValueError>([] { PathFilter::regex("(("); }).find("got '(('") !=
        std::string::npos);
  CHECK_THROWS_AS(PathFilter::regex(".*").matches(std::string(100000, 'a')), ValueError);
  CHECK_THROWS_AS(PathFilter::regex(std::string(100000, 'a')), ValueError);
  // Brackets around brackets make the library's matcher recurse as many times for a character.
  std::string nested = "(a|b)*";
  for (int i = 0; i < 300; ++i) nested = "(" + nested + ")";
  CHECK_THROWS_AS(PathFilter::regex(nested + "c").matches(std::string(4000, 'a')), ValueError);
  CHECK(PathFilter::regex(nested + "c").matches(std::string(25, 'a') + "c"));
  CHECK(!PathFilter::regex("(a|b)*c").matches(std::string(1024, 'a')));
  CHECK(!PathFilter::regex("a*b?c").matches(std::string(1024, 'a')));
  // So do alternatives in a group that repeats. Outside one they cost little.
  std::string alternatives = "b";
  for (int i = 0; i < 500; ++i) alternatives += "|b";
  CHECK_THROWS_AS(PathFilter::regex("(" + alternatives + "|a)*c").matches(std::string(1000, 'a')),
                  ValueError);
  CHECK(!PathFilter::regex("(" + alternatives + "|a)*c").matches(std::string(8, 'a')));
  CHECK(PathFilter::regex("(" + alternatives + "|a)").matches(std::string(1000, 'a')));
  const auto shorter =
      PathFilter::predicate([](std::string_view path) { return path.size() < 3; }, "short");
  CHECK(shorter.matches("ab"));
  CHECK(shorter.description() == "short");
  const PathFilter both = PathFilter("*.weight") && !PathFilter("head.*");
  CHECK(both.matches("fc.weight"));
  CHECK(!both.matches("head.weight"));
  CHECK((PathFilter("a") || PathFilter("b")).matches("b"));

  Net net;
  const PathFilter block = PathFilter::ids_of(net.block);
  CHECK(nn::matching_parameters(net, block) ==
        std::vector<std::string>{"block.fc.weight", "block.fc.bias"});
  const Net copy = net;
  CHECK(nn::matching_parameters(const_cast<Net&>(copy), block).size() == 2);
}

TEST_CASE("freeze and unfreeze: by pattern, without initializing anything") {
  Net net;
  CHECK(nn::freeze(net, "*.bias") == 6);
  CHECK(!net.conv.bias.is_initialized());
  CHECK(!net.conv.bias->requires_grad());
  CHECK(net.conv.weight->requires_grad());
  CHECK(nn::unfreeze(net, "conv.*") == 2);
  CHECK(net.conv.bias->requires_grad());
  CHECK(!net.block.fc.bias->requires_grad());
  CHECK(nn::freeze(net) == 13);
  CHECK(message_of<ValueError>([&] { nn::freeze(net, "encoder.*"); }) ==
        "freeze: no parameter of Net matches; got 'encoder.*'; expected paths as "
        "named_parameters() has them");
}

TEST_CASE("KeyRemapper: rules in order, groups") {
  const KeyRemapper remap = {{"^module\\.", ""}, {"layer(\\d+)", "layers.$1"}, {"layers", "l"}};
  CHECK(remap("module.layer12.weight") == "l.12.weight");
  CHECK(remap("a.module.b") == "a.module.b");
  CHECK(KeyRemapper()("same") == "same");
  CHECK_THROWS_AS(KeyRemapper().add("[", ""), ValueError);
}
