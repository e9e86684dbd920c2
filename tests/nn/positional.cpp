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

TEST_CASE("layers take options behind positions") {
  const auto prints = [](const auto& layer, const std::string& text) {
    CHECK(to_string(layer) == text);
  };
  prints(nn::LSTM(3, 4, {.num_layers = 2}), "LSTM(3, 4, num_layers=2)");
  prints(nn::LSTM(3, 4, 2, {.dropout = 0.5}), "LSTM(3, 4, num_layers=2, dropout=0.5)");
  prints(nn::GRU(3, 4, {.batch_first = true}), "GRU(3, 4, batch_first=True)");
  prints(nn::LSTMCell(3, 4, {.bias = false}), "LSTMCell(3, 4, bias=False)");
  prints(nn::Linear(3, 4, {.bias = false}), "Linear(in_features=3, out_features=4, bias=False)");
  prints(nn::LeakyReLU(0.2, {.inplace = true}), "LeakyReLU(negative_slope=0.2, inplace=True)");
  CHECK_FALSE(nn::GroupNorm(4, 16, {.affine = false}).weight.defined());
  CHECK_FALSE(nn::Bilinear(2, 3, 4, {.bias = false}).bias.defined());
  CHECK(nn::InstanceNorm2d(3, {.affine = true}).weight.val().shape() == Shape{3});
  CHECK(nn::RMSNorm(16, {.elementwise_affine = false}).config().normalized_shape.value() ==
        std::vector<int64_t>{16});
  CHECK(nn::EmbeddingBag(10, 3, {.mode = "sum"}).config().mode == nn::EmbeddingBagMode::sum);
  CHECK(nn::MaxPool1d(3, {.stride = 2})(ones({1, 1, 7})).shape() == Shape{1, 1, 3});
  CHECK(message_of<ValueError>([] { nn::LSTM(3, 4, {.input_size = 5}); }) ==
        "LSTMConfig: input_size was given twice: by its position and by its name");
}

TEST_CASE("layers take sizes in braces and as shapes") {
  const Tensor image = ones({1, 2, 8, 9});
  CHECK(nn::AdaptiveAvgPool2d({2, 3})(image).shape() == Shape{1, 2, 2, 3});
  CHECK(nn::AdaptiveAvgPool2d(Shape{2, 3})(image).shape() == Shape{1, 2, 2, 3});
  CHECK(nn::AdaptiveAvgPool2d({.output_size = {2, 3}})(image).shape() == Shape{1, 2, 2, 3});
  CHECK(nn::AdaptiveMaxPool2d({2, 3})(image).shape() == Shape{1, 2, 2, 3});
  CHECK(nn::AdaptiveMaxPool2d({.output_size = {2, 3}, .return_indices = true})(image).shape() ==
        Shape{1, 2, 2, 3});
  CHECK(nn::AdaptiveMaxPool3d({1, 2, 3})(ones({1, 2, 4, 8, 9})).shape() == Shape{1, 2, 1, 2, 3});
  CHECK(nn::AdaptiveAvgPool3d(Shape{1, 2, 3})(ones({2, 4, 8, 9})).shape() == Shape{2, 1, 2, 3});
  CHECK(nn::AdaptiveAvgPool1d({.output_size = {3}})(ones({2, 9})).shape() == Shape{2, 3});
  CHECK(to_string(nn::AdaptiveAvgPool2d({2, 3})) == "AdaptiveAvgPool2d(output_size=(2, 3))");
  CHECK(to_string(nn::AdaptiveAvgPool2d(2)) == "AdaptiveAvgPool2d(output_size=2)");
  CHECK(nn::MaxPool2d({2, 3})(image).shape() == Shape{1, 2, 4, 3});
  CHECK(nn::MaxPool2d(2, {.stride = {2, 1}})(image).shape() == Shape{1, 2, 4, 8});
  CHECK(nn::AvgPool2d({.kernel_size = {2, 3}})(image).shape() == Shape{1, 2, 4, 3});
  CHECK(nn::ZeroPad2d({1, 2, 3, 4})(image).shape() == Shape{1, 2, 15, 12});
  CHECK(nn::LayerNorm({8, 9})(image).shape() == image.shape());
  CHECK(nn::RMSNorm({.normalized_shape = {8, 9}})(image).shape() == image.shape());
  CHECK(nn::Upsample({.size = {4, 5}})(image).shape() == Shape{1, 2, 4, 5});
  CHECK(nn::Upsample({.size = 4})(image).shape() == Shape{1, 2, 4, 4});
  CHECK(nn::Upsample({.scale_factor = 2.0})(image).shape() == Shape{1, 2, 16, 18});
  CHECK(nn::UpsamplingNearest2d({.scale_factor = {2, 3}})(image).shape() == Shape{1, 2, 16, 27});
  CHECK(functional::interpolate(image, {.size = {4, 5}}).shape() == Shape{1, 2, 4, 5});
  CHECK(functional::interpolate(image, {.size = 4}).shape() == Shape{1, 2, 4, 4});
  CHECK(functional::interpolate(image, {.scale_factor = 0.5}).shape() == Shape{1, 2, 4, 4});
}

TEST_CASE("layers take one size in braces") {
  const Tensor x = ones({1, 2, 9});
  const Tensor image = ones({1, 2, 8, 9});
  CHECK(nn::AdaptiveAvgPool1d({7})(x).shape() == Shape{1, 2, 7});
  CHECK(nn::AdaptiveMaxPool1d({7})(x).shape() == Shape{1, 2, 7});
  CHECK(nn::AdaptiveAvgPool2d({3})(image).shape() == Shape{1, 2, 3, 3});
  CHECK(nn::MaxPool1d({3})(x).shape() == Shape{1, 2, 3});
  CHECK(nn::AvgPool1d({3})(x).shape() == Shape{1, 2, 3});
  CHECK(nn::MaxPool2d({2})(image).shape() == Shape{1, 2, 4, 4});
  CHECK(nn::AvgPool2d({2})(image).shape() == Shape{1, 2, 4, 4});
  CHECK(nn::MaxPool2d({2}, {.stride = 1})(image).shape() == Shape{1, 2, 7, 8});
  CHECK(nn::ZeroPad1d({2})(x).shape() == Shape{1, 2, 13});
  CHECK(nn::ReflectionPad2d({2})(image).shape() == Shape{1, 2, 12, 13});
  CHECK(nn::Unfold({3})(image).shape() == Shape{1, 18, 42});
  CHECK(nn::Upsample({4})(image).shape() == Shape{1, 2, 4, 4});
  CHECK(nn::Conv1d(2, 3, {3})(x).shape() == Shape{1, 3, 7});
  CHECK(nn::LayerNorm({9})(x).shape() == x.shape());
  CHECK(to_string(nn::AdaptiveAvgPool1d({7})) == "AdaptiveAvgPool1d(output_size=7)");
  // Braces that name an option stay options.
  CHECK(nn::AdaptiveAvgPool1d({.output_size = 7})(x).shape() == Shape{1, 2, 7});
  CHECK(nn::MaxPool1d({.kernel_size = 3, .stride = 1})(x).shape() == Shape{1, 2, 7});
  CHECK(nn::MaxPool2d({.kernel_size = 2})(image).shape() == Shape{1, 2, 4, 4});
  CHECK(nn::ZeroPad1d({.padding = 2})(x).shape() == Shape{1, 2, 13});
}

TEST_CASE("layers take options behind sizes in braces") {
  const Tensor image = ones({1, 2, 8, 9});
  CHECK(nn::MaxPool3d({2, 2, 3}, {.stride = {2, 1, 1}})(ones({1, 1, 4, 5, 6})).shape() ==
        Shape{1, 1, 2, 4, 4});
  CHECK(nn::MaxPool1d({3}, {.stride = 2})(ones({1, 1, 7})).shape() == Shape{1, 1, 3});
  CHECK(nn::Unfold({3, 3}, {.padding = 1})(image).shape() == Shape{1, 18, 72});
  CHECK(nn::Upsample({4, 5}, {.mode = "bilinear"})(image).shape() == Shape{1, 2, 4, 5});
  CHECK(nn::ConstantPad2d({1, 2, 3, 4}, {.value = 2})(image).shape() == Shape{1, 2, 15, 12});
  CHECK(message_of<ValueError>([] { nn::MaxPool1d({3}, {.kernel_size = 2}); }) ==
        "MaxPoolConfig: kernel_size was given twice: by its position and by its name");
}

TEST_CASE("layers take ParamOptions behind positions and options") {
  const auto dtype = [](const nn::Module& layer) { return layer.parameters().at(0).dtype(); };
  const nn::ParamOptions params{.dtype = f64};
  CHECK(dtype(nn::Linear(3, 4, {.bias = false}, {.dtype = f64})) == f64);
  CHECK_FALSE(nn::Linear(3, 4, {.bias = false}, params).bias.defined());
  CHECK(dtype(nn::Linear(3, 4, params)) == f64);
  CHECK(dtype(nn::LSTM(3, 4, {.num_layers = 2}, {.dtype = f64})) == f64);
  const nn::LSTM lstm(3, 4, 2, {.dropout = 0.5}, params);
  CHECK(to_string(lstm) == "LSTM(3, 4, num_layers=2, dropout=0.5)");
  CHECK(dtype(lstm) == f64);
  CHECK(dtype(nn::GRU(3, 4, 2, params)) == f64);
  CHECK(dtype(nn::InstanceNorm2d(3, {.affine = true}, {.dtype = f64})) == f64);
  CHECK(dtype(nn::GroupNorm(4, 16, params)) == f64);
  CHECK(dtype(nn::Bilinear(2, 3, 4, {.bias = false}, params)) == f64);
  CHECK(dtype(nn::RMSNorm(5, {.eps = 1e-3}, params)) == f64);
  CHECK(dtype(nn::RMSNorm({5}, {}, params)) == f64);
  CHECK(dtype(nn::Embedding(10, 3, params)) == f64);
  CHECK(dtype(nn::Conv2d(1, 2, 3, params)) == f64);
}

TEST_CASE("a required option that was not set is named") {
  const auto message = [](auto f) { return message_of<ValueError>(f); };
  CHECK(message([] { nn::LSTM({.hidden_size = 3}); }) ==
        "LSTM: input_size was not set; give .input_size");
  CHECK(message([] { nn::Linear l(2); }) == "Linear: out_features was not set; give .out_features");
  CHECK(message([] { nn::Conv2d c(3); }) ==
        "Conv2d: out_channels, kernel_size were not set; give .out_channels, .kernel_size");
  CHECK(message([] { nn::SwiGLU({.d_output = 3}); }) ==
        "SwiGLU: d_input was not set; give .d_input");
  CHECK(message([] { nn::MultiheadAttention({.embed_dim = 8}); }) ==
        "MultiheadAttention: num_heads was not set; give .num_heads");
  CHECK(message([] { nn::TransformerDecoderLayer({.nhead = 8}); }) ==
        "TransformerDecoderLayer: d_model was not set; give .d_model");
  optim::SGD sgd({ones({1}, {.requires_grad = true})}, {.lr = 0.1, .momentum = 0.9});
  CHECK(message([&] { optim::OneCycleLR(sgd, {.max_lr = 1.0}); }) ==
        "OneCycleLR: total_steps was not set; give .total_steps");
  CHECK(message([&] { optim::CyclicLR(sgd, {}); }) == "CyclicLR: max_lr was not set; give .max_lr");
}

TEST_CASE("attention and transformers' layers from their configurations") {
  const Tensor x = ones({2, 3, 8});
  nn::MultiheadAttention attention({.embed_dim = 8, .num_heads = 2});
  CHECK(attention(x, x, x).first.shape() == Shape{2, 3, 8});
  CHECK(attention.num_heads() == 2);
  nn::MultiheadAttention batched(
      {.embed_dim = 8, .num_heads = 2, .options = {.batch_first = true}});
  CHECK(batched.options().batch_first);
  nn::TransformerEncoderLayer encoder(
      {.d_model = 8, .nhead = 2, .options = {.dim_feedforward = 16}});
  CHECK(encoder(x).shape() == x.shape());
  CHECK(encoder.linear1.out_features() == 16);
  CHECK(nn::TransformerDecoderLayer({.d_model = 8, .nhead = 2})(x, x).shape() == x.shape());
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
