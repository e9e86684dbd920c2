#include "kiln/nn/transfer.h"

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/core/random.h"
#include "tests/nn/models.h"
#include "tests/support/near.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::nn::ApplyResult;
using kiln::nn::Linear;
using kiln::nn::StateDict;
using kiln::test::kNetKeys;
using kiln::test::message_of;
using kiln::test::near;
using kiln::test::Net;
using Names = std::vector<std::string>;

namespace {

struct Normed : nn::Module {
  Linear fc{3, 2};
  nn::LayerNorm norm{2};
  std::vector<Linear> more{{2, 1}};
  KILN_MODULE(Normed, fc, norm, more)
};

}  // namespace

TEST_CASE("collect and apply: everything, by default") {
  Net source;
  Net target;
  CHECK(nn::collect(source).keys() == kNetKeys);
  const ApplyResult result = nn::apply(target, nn::collect(source));
  CHECK(result.is_complete());
  CHECK(result.applied.size() == kNetKeys.size());
  CHECK(target.conv.weight->equal(*source.conv.weight));
}

TEST_CASE("apply: a part, with a report of everything") {
  Net net;
  const Tensor head_before = net.head.state_dict().at("0.weight").clone();
  StateDict state = {{"conv.weight", ones({2, 1, 3, 3})},
                     {"conv.bias", ones({5})},
                     {"head.0.weight", ones({2, 3})},
                     {"other", ones({1})}};
  const ApplyResult result =
      nn::apply(net, state, {.filter = !nn::PathFilter("head.*"), .allow_partial = true});
  CHECK(result.applied == Names{"conv.weight"});
  CHECK(result.skipped == Names{"head.0.weight", "head.0.bias"});
  CHECK(result.missing.size() == kNetKeys.size() - 4);
  CHECK(result.unused == Names{"other"});
  REQUIRE(result.errors.size() == 1);
  CHECK(result.errors[0].first == "conv.bias");
  CHECK(result.errors[0].second == "another shape; got [5]; expected [2]");
  CHECK(!result.is_complete());
  CHECK(near(*net.conv.weight, std::vector<double>(18, 1.0)));
  CHECK(net.head.state_dict().at("0.weight").equal(head_before));
  const std::string report = to_string(result);
  CHECK(report.find("applied: 1 (conv.weight)\nskipped: 2 (") == 0);
  CHECK(report.find("errors: 1\n  conv.bias: another shape") != std::string::npos);
}

TEST_CASE("apply: all or nothing unless told otherwise") {
  Net net;
  const Tensor before = net.conv.weight->detach().clone();
  StateDict state = nn::collect(Net());
  state.erase("scale");
  const std::string message = message_of<ValueError>([&] { nn::apply(net, state); });
  CHECK(message.find("apply: something is missing") == 0);
  CHECK(message.find("missing: 1 (scale)") != std::string::npos);
  CHECK(net.conv.weight->equal(before));

  StateDict more = nn::collect(Net());
  more.set("extra", ones({1}));
  CHECK(nn::apply(net, more).unused == Names{"extra"});
  CHECK_THROWS_AS(nn::apply(net, more, {.allow_unused = false}), ValueError);
  CHECK(message_of<ValueError>([&] {
          nn::apply(net, {{"model.scale", ones({3})}}, {.allow_partial = true});
        }).find("nothing fits") != std::string::npos);
}

TEST_CASE("apply: names are remapped before they are looked up") {
  Linear fc(2, 2);
  const nn::TransferOptions options = {.remap = {{"^module\\.", ""}, {"kernel$", "weight"}}};
  nn::apply(fc, {{"module.kernel", ones({2, 2})}, {"module.bias", zeros({2})}}, options);
  CHECK(near(*fc.weight, {1, 1, 1, 1}));
  CHECK(message_of<ValueError>([&] {
          nn::apply(fc, {{"kernel", ones({2, 2})}, {"weight", ones({2, 2})}}, options);
        }).find("two tensors one name; got 'weight' for 'kernel' and 'weight'") !=
        std::string::npos);
  const StateDict out = nn::collect(fc, {.remap = {{"weight", "kernel"}}});
  CHECK(out.keys() == Names{"kernel", "bias"});
  CHECK_THROWS_AS(nn::collect(fc, {.remap = {{".*", "x"}}}), ValueError);
}

TEST_CASE("apply: a lazy module draws no random numbers") {
  manual_seed(5);
  const StateDict state = Linear(4, 4).state_dict();
  const uint64_t before = default_generator().state().offset;
  Linear lazy(4, 4);
  nn::apply(lazy, state);
  CHECK(lazy.weight->requires_grad());
  CHECK(default_generator().state().offset == before);
}

TEST_CASE("BurnAdapter: transposed Linear weights, gamma and beta") {
  Normed net;
  net.fc.weight.replace(tensor({{1., 2., 3.}, {4., 5., 6.}}, {f32}));
  net.norm.weight.replace(tensor({7., 8.}, {f32}));
  const nn::TransferOptions burn = {.adapter = std::make_shared<nn::BurnAdapter>()};
  const StateDict state = nn::collect(net, burn);
  CHECK(state.keys() ==
        Names{"fc.weight", "fc.bias", "norm.gamma", "norm.beta", "more.0.weight", "more.0.bias"});
  CHECK(state.at("fc.weight").shape() == Shape{3, 2});
  CHECK(near(state.at("fc.weight"), {1, 4, 2, 5, 3, 6}));
  CHECK(near(state.at("norm.gamma"), {7, 8}));
  CHECK(state.at("more.0.weight").shape() == Shape{2, 1});

  Normed back;
  nn::apply(back, state, burn);
  CHECK(back.fc.weight->equal(*net.fc.weight));
  CHECK(back.norm.weight->equal(*net.norm.weight));
  const std::string message = message_of<ValueError>([&] {
    nn::apply(back, {{"fc.weight", ones({2, 3})}}, burn);
  });
  CHECK(message.find("fc.weight: another shape; got [3, 2]; expected [2, 3]") != std::string::npos);
}

TEST_CASE("adapters in a chain: Burn's layout in half precision") {
  Normed net;
  const auto chain =
      std::make_shared<nn::ChainAdapter>(std::vector<std::shared_ptr<const nn::StateAdapter>>{
          std::make_shared<nn::FloatCastAdapter>(f16), std::make_shared<nn::BurnAdapter>()});
  const StateDict state = nn::collect(net, {.adapter = chain});
  CHECK(state.at("norm.gamma").dtype() == f16);
  CHECK(state.at("fc.weight").shape() == Shape{3, 2});
  Normed back;
  nn::apply(back, state, {.adapter = chain});
  CHECK(back.fc.weight->dtype() == f32);
  CHECK(back.fc.weight->allclose(*net.fc.weight, 1e-3, 1e-3));
}
