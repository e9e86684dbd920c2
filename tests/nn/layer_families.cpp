// The layers that share a header with others: how they are made in C++, and values worked out by
// hand. tests/python/test_layers_torch.py compares every one with PyTorch's.
#include <cmath>

#include <doctest/doctest.h>

#include "kiln/kiln.h"
#include "tests/support/near.h"

using namespace kiln;
using kiln::test::near;

namespace {

Tensor numbers(std::vector<double> values, const Shape& shape) {
  return from_vector<double>(values, shape);
}

}  // namespace

TEST_CASE("activations as layers") {
  const Tensor x = numbers({-2.0, 0.0, 3.0}, {3});
  CHECK(near(nn::ELU({.alpha = 0.5})(x), {0.5 * std::expm1(-2.0), 0.0, 3.0}));
  CHECK(near(nn::LeakyReLU({.negative_slope = 0.1})(x), {-0.2, 0.0, 3.0}));
  CHECK(near(nn::Hardtanh()(x), {-1.0, 0.0, 1.0}));
  CHECK(near(nn::ReLU6()(x * 4.0), {0.0, 0.0, 6.0}));
  CHECK(near(nn::Softplus()(x),
             {std::log1p(std::exp(-2.0)), std::log(2.0), std::log1p(std::exp(3.0))}));
  CHECK(near(nn::GLU()(numbers({2.0, 0.0}, {2})), {1.0}));
  const Tensor y = x.clone();
  CHECK(nn::Hardtanh({.inplace = true})(y).is_same(y));
  CHECK(near(y, {-1.0, 0.0, 1.0}));
  CHECK(to_string(nn::ELU({.alpha = 1, .inplace = true})) == "ELU(alpha=1, inplace=True)");
  CHECK_THROWS_AS(nn::Hardtanh({.min_val = 1.0, .max_val = 0.0}), ValueError);
  CHECK_THROWS_AS(nn::Softmax2d()(x), ShapeError);
}

TEST_CASE("padding layers") {
  const Tensor x = numbers({1, 2, 3}, {1, 3});
  CHECK(near(nn::ZeroPad1d({1, 2})(x), {0, 1, 2, 3, 0, 0}));
  CHECK(near(nn::ConstantPad1d(1, 7)(x), {7, 1, 2, 3, 7}));
  CHECK(near(nn::ReflectionPad1d(2)(x), {3, 2, 1, 2, 3, 2, 1}));
  CHECK(near(nn::ReplicationPad1d(1)(x), {1, 1, 2, 3, 3}));
  CHECK(near(nn::CircularPad1d({2, 0})(x), {2, 3, 1, 2, 3}));
  CHECK(to_string(nn::ReflectionPad2d(1)) == "ReflectionPad2d((1, 1, 1, 1))");
  CHECK_THROWS_AS(nn::ZeroPad2d({1, 2, 3}), ValueError);
  CHECK_THROWS_AS(nn::CircularPad2d(1)(x), ShapeError);
}

TEST_CASE("losses as layers") {
  const Tensor x = numbers({1.0, -2.0}, {2}), y = numbers({0.5, 1.0}, {2});
  CHECK(near(nn::L1Loss()(x, y), {1.75}));
  CHECK(near(nn::HuberLoss({.delta = 1.0})(x, y), {(0.125 + 2.5) / 2}));
  CHECK(near(nn::SmoothL1Loss({.reduction = functional::Reduction::none})(x, y), {0.125, 2.5}));
  CHECK(near(nn::BCEWithLogitsLoss()(zeros({2}, {f64}), y), {std::log(2.0)}));
  nn::BCELoss weighted({.weight = numbers({2.0, 0.0}, {2})});
  CHECK(near(weighted(numbers({0.5, 0.5}, {2}), y), {std::log(2.0)}));
  CHECK(weighted.state_dict().contains("weight"));
  CHECK(near(nn::DiceLoss()(ones({1, 4}, {f64}), ones({1, 4}, {f64})), {0.0}));
  CHECK(near(nn::FocalLoss({.alpha = -1, .gamma = 0})(zeros({2}, {f64}), y), {std::log(2.0)}));
  CHECK_THROWS_AS(nn::TripletMarginLoss({.margin = 0}), ValueError);
  nn::TripletMarginWithDistanceLoss own(
      {.distance_function = [](const Tensor& a, const Tensor& b) { return (a - b).abs().sum(-1); },
       .margin = 2.0});
  CHECK(
      near(own(numbers({0, 0}, {1, 2}), numbers({1, 1}, {1, 2}), numbers({1, 2}, {1, 2})), {1.0}));
}

TEST_CASE("convolutions in one and three dims") {
  nn::Conv1d conv(1, 1, 3, {.padding = 1, .bias = false, .padding_mode = "circular"});
  nn::init::ones_(*conv.weight);
  CHECK(near(conv(numbers({1, 2, 3, 4}, {1, 1, 4}).to(f32)), {7, 6, 9, 8}));
  nn::Conv2d reflected(1, 1, {1, 3}, {.padding = {0, 1}, .bias = false, .padding_mode = "reflect"});
  nn::init::ones_(*reflected.weight);
  CHECK(near(reflected(numbers({1, 2, 3}, {1, 1, 1, 3}).to(f32)), {5, 6, 7}));
  nn::ConvTranspose1d back(1, 1, 2, {.stride = 2, .bias = false});
  nn::init::ones_(*back.weight);
  CHECK(near(back(numbers({1, 2}, {1, 1, 2}).to(f32)), {1, 1, 2, 2}));
  CHECK(back(ones({1, 1, 2}), std::vector<int64_t>{5}).shape() == Shape{1, 1, 5});
  CHECK_THROWS_AS(back(ones({1, 1, 2}), std::vector<int64_t>{6}), ValueError);
  CHECK(nn::Conv3d(2, 4, 3, {.padding = "same"})(ones({2, 4, 5, 6})).shape() == Shape{4, 4, 5, 6});
  CHECK_THROWS_AS(nn::Conv1d(3, 4, 3, {.groups = 2}), ValueError);
  CHECK(nn::ConvNdConfig::from_json_string(
            nn::ConvNdConfig{.in_channels = 1, .out_channels = 2, .kernel_size = nn::SizeNd{3}}
                .to_json_string())
            .kernel_size.value()
            .values() == Shape{3});
}

TEST_CASE("pooling in one and three dims") {
  const Tensor x = numbers({1, 4, 2, 3}, {1, 1, 4});
  nn::MaxPool1d pool({.kernel_size = 2});
  CHECK(near(pool(x), {4, 3}));
  const auto [values, indices] = pool.forward_with_indices(x);
  CHECK(near(nn::MaxUnpool1d({.kernel_size = 2})(values, indices), {0, 4, 0, 3}));
  CHECK(near(nn::AvgPool1d({.kernel_size = 2})(x), {2.5, 2.5}));
  CHECK(near(nn::LPPool1d({.norm_type = 2, .kernel_size = 2})(x),
             {std::sqrt(17.0), std::sqrt(13.0)}));
  CHECK(near(nn::AdaptiveAvgPool1d({.output_size = 1})(x), {2.5}));
  CHECK(nn::AdaptiveMaxPool3d({.output_size = nn::SizeNd{1, nn::SizeNd::kNone, 2}})(
            ones({1, 3, 4, 5}))
            .shape() == Shape{1, 1, 4, 2});
}

TEST_CASE("norms") {
  const Tensor x = numbers({1, 3, 2, 6}, {1, 2, 2});
  const nn::ParamOptions f64s{.dtype = f64};
  CHECK(near(nn::InstanceNorm1d({.num_features = 2, .eps = 0.0}, f64s)(x), {-1, 1, -1, 1}));
  CHECK(near(nn::GroupNorm({.num_groups = 2, .num_channels = 2, .eps = 0.0}, f64s)(x),
             {-1, 1, -1, 1}));
  nn::RMSNorm rms({.normalized_shape = std::vector<int64_t>{2}, .eps = 0.0}, f64s);
  const double a = std::sqrt(5.0), b = std::sqrt(20.0);
  CHECK(near(rms(x), {1 / a, 3 / a, 2 / b, 6 / b}));
  nn::BatchNorm1d batch(2, {.eps = 0.0}, f64s);
  CHECK(near(batch(numbers({1, 2, 3, 6}, {2, 2})), {-1, -1, 1, 1}));
  CHECK(near(*batch.running_mean, {0.2, 0.4}));
  CHECK_THROWS_AS(batch(ones({2})), ShapeError);
  CHECK_THROWS_AS(nn::GroupNorm({.num_groups = 3, .num_channels = 4}), ValueError);
}

TEST_CASE("recurrent layers") {
  nn::RNN rnn({.input_size = 1, .hidden_size = 1, .bias = false});
  for (Tensor& weight : rnn.parameters()) nn::init::ones_(weight);
  const auto [y, h] = rnn(ones({2, 1, 1}));
  const double first = std::tanh(1.0), second = std::tanh(1.0 + first);
  CHECK(near(y, {first, second}));
  CHECK(near(h, {second}));
  nn::LSTM lstm({.input_size = 3, .hidden_size = 4, .num_layers = 2, .bidirectional = true});
  CHECK(lstm.state_dict().contains("weight_hh_l1_reverse"));
  CHECK(lstm.num_params() == 2 * (16 * (3 + 4 + 2)) + 2 * (16 * (8 + 4 + 2)));
  const auto copy = lstm.clone();
  const Tensor x = randn({5, 2, 3});
  CHECK(copy->forward(x).first.allclose(lstm(x).first));
  const auto packed = nn::pack_sequence(std::vector<Tensor>{x.select(1, 0), x.select(1, 1)});
  CHECK(lstm(packed).first.data.allclose(lstm(x).first.flatten(0, 1), 1e-5, 1e-6));
  nn::LSTMCell cell({.input_size = 3, .hidden_size = 4});
  CHECK(cell(ones({2, 3})).second.shape() == Shape{2, 4});
  CHECK_THROWS_AS(lstm(ones({5, 2, 4})), ShapeError);
  CHECK_THROWS_AS(nn::RNN({.input_size = 1, .hidden_size = 1, .nonlinearity = "no"}), ValueError);
}

TEST_CASE("transformers") {
  nn::TransformerOptions options{
      .d_model = 8, .nhead = 2, .num_encoder_layers = 1, .num_decoder_layers = 2};
  options.layer.dim_feedforward = 12;
  options.layer.dropout = 0.0;
  nn::Transformer model(options);
  CHECK(model.state_dict().contains("decoder.layers.1.multihead_attn.in_proj_weight"));
  const Tensor src = randn({5, 2, 8}), tgt = randn({3, 2, 8});
  nn::TransformerCall causal, masked;
  causal.decoder.tgt_is_causal = true;
  masked.decoder.tgt_mask = nn::Transformer::generate_square_subsequent_mask(3);
  const Tensor y = model(src, tgt, causal);
  CHECK(y.allclose(model(src, tgt, masked), 1e-4, 1e-5));
  CHECK_FALSE(y.allclose(model(src, tgt), 1e-4, 1e-5));
  CHECK_THROWS_AS(model(src, randn({3, 2, 7})), ShapeError);
}
