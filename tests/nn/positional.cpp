// Layers by the first options of their configuration, and functions among layers.
#include <doctest/doctest.h>

#include "kiln/kiln.h"
#include "tests/support/near.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::test::message_of;
using kiln::test::near;

namespace {

// The same layer, which prints its options, however they were given.
template <class L, class... A>
void same(const typename L::Config& config, A... args) {
  CHECK(to_string(L(args...)) == to_string(L(config)));
}

Tensor twice(const Tensor& x) { return x * 2; }

}  // namespace

TEST_CASE("layers take their first options by position") {
  same<nn::Linear>({.in_features = 2, .out_features = 3, .bias = false}, 2, 3, false);
  same<nn::LSTM>({.input_size = 16, .hidden_size = 8}, 16, 8);
  same<nn::GRU>({.input_size = 16, .hidden_size = 8, .num_layers = 2}, 16, 8, 2);
  same<nn::LSTMCell>({.input_size = 3, .hidden_size = 4}, 3, 4);
  same<nn::GroupNorm>({.num_groups = 4, .num_channels = 16}, 4, 16);
  same<nn::InstanceNorm2d>({.num_features = 4}, 4);
  same<nn::RMSNorm>({.normalized_shape = std::vector<int64_t>{16}}, 16);
  same<nn::LeakyReLU>({.negative_slope = 0.2}, 0.2);
  same<nn::ELU>({.alpha = 0.5}, 0.5);
  same<nn::Dropout2d>({.p = 0.1}, 0.1);
  same<nn::AdaptiveAvgPool2d>({.output_size = 1}, 1);
  same<nn::PixelShuffle>({.upscale_factor = 2}, 2);
  same<nn::Bilinear>({.in1_features = 2, .in2_features = 3, .out_features = 4}, 2, 3, 4);
  same<nn::CosineSimilarity>({.dim = 0}, 0);
  same<nn::GLU>({.dim = 1}, 1);
  same<nn::Hardtanh>({.min_val = -2, .max_val = 2}, -2, 2);
  same<nn::Embedding>({.num_embeddings = 10, .embedding_dim = 3}, 10, 3);
  CHECK(nn::AdaptiveAvgPool2d(nn::SizeNd{2, 3})(ones({1, 4, 8, 9})).shape() == Shape{1, 4, 2, 3});
  CHECK(nn::Unflatten(1, {2, 3})(ones({5, 6})).shape() == Shape{5, 2, 3});
}

TEST_CASE("a layer that is copied is no option") {
  nn::Linear first(2, 2);
  nn::Linear copy(first);
  CHECK(copy.weight.val().equal(first.weight));
  nn::TripletMarginWithDistanceLoss loss;
  nn::TripletMarginWithDistanceLoss same(loss);
  CHECK(near(same(zeros({1, 2}), zeros({1, 2}), ones({1, 2}) * 3), {0}));
}

TEST_CASE(
    "a copied model computes what the first one does, though nobody has read its values yet") {
  nn::Sequential net(nn::Linear(2, 3), nn::ReLU(), nn::Linear(3, 1));
  nn::Sequential target = net;
  const auto clone = net.clone();
  const Tensor x = ones({1, 2});
  CHECK(net(x).equal(target(x)));
  CHECK(net(x).equal((*clone)(x)));
  {
    const NoGradGuard no_grad;
    net.at<nn::Linear>(0).weight->fill_(7);
  }
  CHECK_FALSE(net.at<nn::Linear>(0).weight->equal(target.at<nn::Linear>(0).weight));
}

TEST_CASE("Sequential: functions among modules") {
  nn::Sequential net(
      nn::Linear(2, 3), [](const Tensor& x) { return x.relu(); }, twice, nn::Linear(3, 1));
  const Tensor x = ones({4, 2});
  const Tensor expected = net.at<nn::Linear>(3)(net.at<nn::Linear>(0)(x).relu() * 2);
  CHECK(net(x).equal(expected));
  CHECK(to_string(net).find("(1): Functional()") != std::string::npos);
  CHECK(net.state_dict().keys() ==
        std::vector<std::string>{"0.weight", "0.bias", "3.weight", "3.bias"});
  CHECK(nn::Sequential(net)(x).equal(expected));
  const nn::AnyModule any([](Tensor y) { return y + 1; });
  CHECK(near(any(zeros({1})), {1}));
  CHECK_THROWS_AS(nn::Functional(std::function<Tensor(Tensor)>()), TypeError);
}

TEST_CASE("containers from braces") {
  nn::Sequential net({{"up", nn::Linear(2, 3)}, {"act", nn::ReLU()}, {"double", twice}});
  CHECK(net.state_dict().keys() == std::vector<std::string>{"up.weight", "up.bias"});
  nn::ModuleList list(nn::Linear(2, 3), nn::ReLU());
  CHECK(list.size() == 2);
  CHECK(nn::ModuleList(list).size() == 2);
  nn::ModuleDict dict({{"a", nn::Linear(2, 3)}, {"b", std::make_shared<nn::ReLU>()}});
  CHECK(dict.keys() == std::vector<std::string>{"a", "b"});
  CHECK(message_of<TypeError>([&] { list.at<nn::Linear>(1); }) ==
        "ModuleList: module 1 is of another class; got ReLU; expected Linear");
  CHECK(message_of<TypeError>([&] { dict.at<nn::ReLU>("a"); }) ==
        "ModuleDict: module a is of another class; got Linear; expected ReLU");
}
