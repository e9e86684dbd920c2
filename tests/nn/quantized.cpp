#include "kiln/nn/quantized.h"

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/core/random.h"
#include "kiln/data/digits.h"
#include "kiln/io/model_store.h"
#include "kiln/io/recorder.h"
#include "kiln/optim/optim.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "tests/nn/models.h"
#include "tests/support/near.h"
#include "tests/support/temp_dir.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::nn::Linear;
using kiln::nn::Quantized;
using kiln::test::message_of;
using kiln::test::near;
using kiln::test::Net;
using kiln::test::TempDir;

namespace {

struct Mlp : nn::Module {
  Linear fc1{2, 32};
  Linear fc2{32, 2};
  KILN_MODULE(Mlp, fc1, fc2)
  Tensor forward(const Tensor& x) { return fc2(relu(fc1(x))); }
};

const QuantScheme kSchemes[] = {{},
                                {.level = QuantLevel::channel},
                                {.level = QuantLevel::block, .block = 16},
                                {.bits = 4, .level = QuantLevel::block, .block = 16}};

// Two interleaved rings: what a linear model cannot tell apart.
std::pair<Tensor, Tensor> rings(int64_t n) {
  std::vector<float> points;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < n; ++i) {
    const double angle = 0.37 * static_cast<double>(i);
    const double radius = i % 2 == 0 ? 0.5 : 1.5;
    points.push_back(static_cast<float>(radius * std::cos(angle)));
    points.push_back(static_cast<float>(radius * std::sin(angle)));
    labels.push_back(i % 2);
  }
  return {Tensor(TensorData(points, {n, 2})), Tensor(TensorData(labels, {n}))};
}

double accuracy(Mlp& model, const Tensor& x, const Tensor& y) {
  NoGradGuard no_grad;
  return model(x).argmax(1).eq(y).to(f32).mean().item();
}

}  // namespace

TEST_CASE("quantize_: a trained classifier keeps its accuracy in 8 and in 4 bits") {
  manual_seed(11);
  const auto [x, y] = rings(200);
  Mlp model;
  optim::Adam adam(model.parameters(), {.lr = 0.02});
  for (int step = 0; step < 150; ++step) {
    model.zero_grad();
    functional::cross_entropy(model(x), y).backward_accumulate();
    adam.step();
  }
  REQUIRE(accuracy(model, x, y) == 1.0);
  const Tensor exact = no_grad([&] { return model(x); });
  for (const QuantScheme& scheme : kSchemes) {
    Mlp small = model;
    nn::quantize_(small, scheme);
    CHECK(accuracy(small, x, y) >= 0.99);
    const Tensor got = no_grad([&] { return small(x); });
    const double error = (got - exact).abs().amax().item() / exact.abs().amax().item();
    CHECK(error < (scheme.bits == 8 ? 0.02 : 0.3));
    CHECK(error > 0.0);
  }
}

TEST_CASE("quantize_: what the report and the module say") {
  Mlp model;
  const nn::QuantizeReport report =
      nn::quantize_(model, {.bits = 4, .level = QuantLevel::block, .block = 16}, "fc2");
  REQUIRE(report.entries.size() == 1);
  CHECK(report.entries[0].path == "fc2.weight");
  CHECK(report.bytes_before() == 2 * 32 * 4);
  CHECK(report.bytes_after() == 2 * 16 + 2 * 2 * 4);
  // Half a step of the coarsest scale: max|w| <= 1 / sqrt(32), 7 steps.
  CHECK(report.entries[0].max_error <= 0.5 / std::sqrt(32.0) / 7 * 1.001);
  CHECK(report.entries[0].max_error > 0.0);
  const std::string text = to_string(report);
  CHECK(text.find("fc2.weight [2, 32]: 256 -> 48 bytes (18.8 %), largest error 0.0") == 0);
  CHECK(text.find("together: 256 -> 48 bytes") != std::string::npos);
  CHECK(to_string(model).find("(weight_quantized): Quantized(4 bits, shape=[2, 32], scale per "
                              "block of 16)") != std::string::npos);
  CHECK(model.state_dict().keys() == std::vector<std::string>{"fc1.weight", "fc1.bias", "fc2.bias",
                                                              "fc2.weight_quantized.values",
                                                              "fc2.weight_quantized.scales"});
  CHECK(model.fc2.weight.lazy_shape() == Shape{2, 32});
  CHECK(!model.fc2.weight.lazy_is_require_grad());
  CHECK(message_of<ValueError>([&] { nn::quantize_(model, {}, "fc9"); }).find("'fc9'") !=
        std::string::npos);
  CHECK_THROWS_AS(model.fc2.weight.set_require_grad(true), ValueError);
  nn::dequantize_(model);
  CHECK(model.state_dict().keys().size() == 4);
  CHECK(!model.fc2.weight->requires_grad());
  CHECK_THROWS_AS(nn::dequantize_(model), ValueError);
}

TEST_CASE("quantize_: convolutions too; what reads the parameter gets it dequantized") {
  Net net;
  const Tensor x = test::pattern({2, 1, 3, 3}, 5, 13, 4.0, f32);
  const Tensor before = *net.conv.weight;
  const Tensor y = net(x);
  const auto report = nn::quantize_(net);
  CHECK(report.entries.size() == 6);
  CHECK(net(x).allclose(y, 0.05, 0.02));
  CHECK(net.conv.weight->allclose(before, 0.0, 0.01));
  CHECK(net.conv.weight->shape() == Shape{2, 1, 3, 3});
}

TEST_CASE("quantized models: copies, casts, gradients to the inputs") {
  Mlp model;
  model.materialize();
  nn::quantize_(model);
  Mlp copy = model;
  const Tensor x = test::pattern({3, 2}, 5, 13, 4.0, f32);
  CHECK(copy(x).equal(model(x)));
  const auto* original = dynamic_cast<Quantized*>(model.fc1.weight.source());
  const auto* copied = dynamic_cast<Quantized*>(copy.fc1.weight.source());
  CHECK(copied->values->data_ptr<int8_t>() != original->values->data_ptr<int8_t>());
  Tensor input = x.clone().requires_grad_();
  Mlp dense = model;
  nn::dequantize_(dense);
  const Gradients got = model(input).sum().backward();
  const Gradients want = dense(input).sum().backward();
  CHECK(got.get(input)->allclose(*want.get(input), 1e-5, 1e-6));
  copy.to(f64);
  CHECK(copy(x.to(f64)).allclose(model(x).to(f64), 1e-5, 1e-6));
  CHECK(copy.fc1.weight->dtype() == f64);
  CHECK(copy.fc1.weight.lazy_dtype() == f64);
}

TEST_CASE("quantized models in files: safetensors, records, state dicts") {
  const TempDir dir;
  const Tensor x = test::pattern({3, 2}, 5, 13, 4.0, f32);
  for (const QuantScheme& scheme : kSchemes) {
    Mlp model;
    nn::quantize_(model, scheme);
    const Tensor y = model(x);
    Mlp a;
    nn::quantize_(a, scheme);
    io::save_into(model, dir.path("q.safetensors"));
    io::load_from(a, dir.path("q.safetensors"));
    CHECK(a(x).equal(y));
    const io::SafetensorsReader file(dir.path("q.safetensors"));
    CHECK(file.dtype("fc1.weight_quantized.values") == (scheme.bits == 4 ? u8 : i8));

    Mlp b;
    nn::quantize_(b, scheme);
    // One scale is a float64: double settings keep it to the last bit.
    model.save_file(dir.path("q"), io::NamedMpkFileRecorder<nn::DoublePrecisionSettings>());
    b.load_file(dir.path("q"), io::NamedMpkFileRecorder<nn::DoublePrecisionSettings>());
    CHECK(b(x).equal(y));

    Mlp c;
    nn::quantize_(c, scheme);
    c.load_state_dict(model.state_dict());
    CHECK(c(x).equal(y));
    CHECK_THROWS_AS(Mlp().load_state_dict(model.state_dict()), RuntimeError);
  }
}
