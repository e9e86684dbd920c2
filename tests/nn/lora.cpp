#include "kiln/nn/lora.h"

#include <doctest/doctest.h>

#include "kiln/core/allocator.h"
#include "kiln/core/error.h"
#include "kiln/core/random.h"
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
using kiln::nn::Lora;
using kiln::test::message_of;
using kiln::test::near;
using kiln::test::Net;
using kiln::test::TempDir;
using Names = std::vector<std::string>;

namespace {

struct Mlp : nn::Module {
  Linear fc1{6, 8};
  Linear head{8, 3};
  KILN_MODULE(Mlp, fc1, head)
  Tensor forward(const Tensor& x) { return head(tanh(fc1(x))); }
};

Lora& update_of(Linear& layer) { return dynamic_cast<Lora&>(*layer.weight.source()); }

Tensor x6() { return test::pattern({4, 6}, 5, 13, 4.0, f32); }

void train(Mlp& model, int steps = 20) {
  optim::Adam adam(optim::param_groups(model, {}), {.lr = 0.05});
  const Tensor target = test::pattern({4, 3}, 3, 7, 2.0, f32);
  for (int i = 0; i < steps; ++i) {
    model.zero_grad();
    functional::mse_loss(model(x6()), target).backward_accumulate();
    adam.step();
  }
}

}  // namespace

TEST_CASE("lora: values worked out by hand") {
  Linear fc(3, 2);
  fc.weight.replace(tensor({{1., 0., 2.}, {0., 1., -1.}}, {f32}));
  fc.bias.replace(tensor({10., 20.}, {f32}));
  CHECK(nn::lora(fc, {.rank = 1, .alpha = 2.0}) == 1);
  Lora& update = update_of(fc);
  const Tensor x = tensor({{1., 2., 3.}}, {f32});
  CHECK(near(fc(x), {17, 19}));  // B is zero
  update.A.replace(tensor({{1., 1., 0.}}, {f32}).requires_grad_());
  update.B.replace(tensor({{3.}, {-1.}}, {f32}).requires_grad_());
  // delta = 2 / 1 * [[3, 3, 0], [-1, -1, 0]]; x delta^T = [18, -6].
  CHECK(near(update.delta(), {6, 6, 0, -2, -2, 0}));
  CHECK(near(fc(x), {35, 13}));
  CHECK(near(*fc.weight, {7, 6, 2, -2, -1, -1}));
  // d sum / dB = scaling * A x = 2 * 3 for each row; d sum / dA = scaling * (3 - 1) * x.
  const Gradients grads = fc(x).sum().backward();
  CHECK(near(*grads.get(*update.B), {6, 6}));
  CHECK(near(*grads.get(*update.A), {4, 8, 12}));
  CHECK(!grads.get(*update.base).has_value());
}

TEST_CASE("lora: at the start nothing changes, and only A and B train") {
  Mlp model;
  const Tensor before = model(x6());
  CHECK(nn::lora(model, {.rank = 2}) == 2);
  CHECK(model(x6()).equal(before));
  CHECK(near(*update_of(model.fc1).B, std::vector<double>(16, 0.0)));
  Names trained;
  for (const auto& [name, value] : model.named_parameters()) {
    if (value.requires_grad()) trained.push_back(name);
  }
  CHECK(trained == Names{"fc1.weight_lora.A", "fc1.weight_lora.B", "head.weight_lora.A",
                         "head.weight_lora.B"});
  const Tensor w = update_of(model.fc1).base->clone();
  const Tensor bias = model.fc1.bias->clone();
  train(model);
  CHECK(update_of(model.fc1).base->equal(w));
  CHECK(model.fc1.bias->equal(bias));
  CHECK(!model(x6()).allclose(before, 1e-3, 1e-3));
}

TEST_CASE("lora: merge, unmerge, merge_and_unload and unload") {
  manual_seed(2);
  Mlp model;
  model.materialize();
  Mlp original = model;
  nn::lora(model, {.rank = 3, .alpha = 6});
  train(model);
  const Tensor tuned = model(x6());
  nn::merge(model);
  CHECK(update_of(model.fc1).is_merged());
  CHECK(model(x6()).allclose(tuned, 1e-5, 1e-5));
  CHECK(to_string(model).find("Lora(rank=3, alpha=6, merged)") != std::string::npos);
  nn::merge(model);  // once is enough
  CHECK(model(x6()).allclose(tuned, 1e-5, 1e-5));

  // A state dict says whether the updates are in the base.
  Mlp loaded;
  nn::lora(loaded, {.rank = 3, .alpha = 6});
  loaded.load_state_dict(model.state_dict());
  CHECK(loaded(x6()).allclose(tuned, 1e-5, 1e-5));

  nn::unmerge(model);
  CHECK(model(x6()).allclose(tuned, 1e-5, 1e-5));
  Mlp plain = model;
  nn::merge_and_unload(plain);
  CHECK(plain(x6()).allclose(tuned, 1e-5, 1e-5));
  CHECK(plain.state_dict().keys() == original.state_dict().keys());
  CHECK(!plain.fc1.weight.is_computed());
  nn::unload(model);
  CHECK(model.state_dict().keys() == original.state_dict().keys());
  CHECK(model(x6()).allclose(original(x6()), 1e-6, 1e-6));
  CHECK_THROWS_AS(nn::merge(model), ValueError);
}

TEST_CASE("lora: the adapter alone in a file, onto another copy of the base") {
  const TempDir dir;
  Mlp base;
  base.materialize();
  Mlp tuned = base;
  nn::lora(tuned, {.rank = 2});
  train(tuned);
  io::save_into(tuned, dir.path("adapter.safetensors"), {.filter = nn::lora_parameters()});
  CHECK(io::SafetensorsReader(dir.path("adapter.safetensors")).keys().size() == 4);
  Mlp fresh = base;
  nn::lora(fresh, {.rank = 2});
  const auto result =
      io::load_from(fresh, dir.path("adapter.safetensors"), {.filter = nn::lora_parameters()});
  CHECK(result.applied.size() == 4);
  CHECK(fresh(x6()).equal(tuned(x6())));
  // Base files load into a model with updates: the base keeps its names.
  io::save_into(base, dir.path("base.safetensors"));
  CHECK(
      io::load_from(fresh, dir.path("base.safetensors"), {.allow_partial = true}).applied.size() ==
      4);
  // All of it in a record.
  tuned.save_file(dir.path("all"), io::NamedMpkGzFileRecorder<>());
  Mlp recorded;
  nn::lora(recorded, {.rank = 2});
  recorded.load_file(dir.path("all"), io::NamedMpkGzFileRecorder<>());
  CHECK(recorded(x6()).equal(tuned(x6())));
}

TEST_CASE("lora: targets by pattern, lazy bases, errors") {
  Mlp model;
  CHECK(nn::lora(model, {.targets = {"*.weight"}, .freeze_others = false}) == 2);
  CHECK(!update_of(model.fc1).base.is_initialized());
  CHECK(!update_of(model.fc1).A.is_initialized());
  CHECK(model.fc1.bias.lazy_is_require_grad());
  CHECK(message_of<ValueError>([&] { nn::lora(model); }).find("fc1.weight has an update already") !=
        std::string::npos);
  Mlp other;
  CHECK(nn::lora(other, {.targets = "head"}) == 1);
  CHECK(!other.fc1.weight.is_computed());
  CHECK(other.head.weight.is_computed());
  Mlp third;
  CHECK(message_of<ValueError>([&] {
          nn::lora(third, {.targets = "body.*"});
        }).find("got 'body.*'") != std::string::npos);
  CHECK_THROWS_AS(nn::lora(third, {.rank = 0}), ValueError);
  CHECK_THROWS_AS(nn::lora(third, {.dropout = 1.0}), ValueError);
  CHECK(!third.fc1.weight.is_computed());
  CHECK(third.fc1.weight.lazy_is_require_grad());
}

TEST_CASE("lora: dropout acts on the update's input, in training only") {
  manual_seed(4);
  Linear fc(6, 3);
  nn::lora(fc, {.rank = 2, .dropout = 0.5});
  update_of(fc).B.replace(ones({3, 2}).requires_grad_());
  const Tensor x = x6();
  const Tensor a = fc(x);
  const Tensor b = fc(x);
  CHECK(!a.equal(b));
  fc.eval();
  CHECK(!update_of(fc).is_training());
  CHECK(fc(x).equal(fc(x)));
  CHECK(fc(x).allclose(functional::linear(x, *fc.weight, *fc.bias), 1e-5, 1e-5));
}

TEST_CASE("lora: convolutions, when the targets name them") {
  Net net;
  const Tensor x = test::pattern({2, 1, 3, 3}, 5, 13, 4.0, f32);
  const Tensor before = net(x);
  CHECK(nn::lora(net, {.rank = 2, .dropout = 0.25, .targets = {"conv", "block.*"}}) == 2);
  CHECK(net(x).allclose(before, 1e-6, 1e-6));
  auto& update = dynamic_cast<Lora&>(*net.conv.weight.source());
  CHECK(update.A.lazy_shape() == Shape{2, 9});
  CHECK(update.delta().shape() == Shape{2, 1, 3, 3});
  update.B.replace(ones({2, 2}).requires_grad_());
  net.eval();
  const Tensor y = net(x);
  nn::merge_and_unload(net);
  CHECK(net(x).allclose(y, 1e-5, 1e-5));
}

TEST_CASE("qlora: a quantized, frozen base; gradients flow through it") {
  manual_seed(6);
  for (const QuantScheme& scheme :
       {QuantScheme{.level = QuantLevel::block, .block = 4},
        QuantScheme{.bits = 4, .level = QuantLevel::block, .block = 4}}) {
    Mlp model;
    const Tensor exact = model(x6());
    CHECK(nn::qlora(model, {.rank = 2}, scheme) == 2);
    CHECK(model(x6()).allclose(exact, 0.2, 0.2));
    CHECK(model.state_dict().keys() ==
          Names{"fc1.bias", "fc1.weight_quantized.values", "fc1.weight_quantized.scales",
                "fc1.weight_lora.A", "fc1.weight_lora.B", "fc1.weight_lora.merged", "head.bias",
                "head.weight_quantized.values", "head.weight_quantized.scales",
                "head.weight_lora.A", "head.weight_lora.B", "head.weight_lora.merged"});
    // The inputs' gradient is that of a dense model with the same values.
    Mlp dense = model;
    nn::merge_and_unload(dense);
    Tensor input = x6().requires_grad_();
    const Gradients got = model(input).sum().backward();
    const Gradients want = dense(input).sum().backward();
    CHECK(got.get(input)->allclose(*want.get(input), 1e-5, 1e-5));

    const Tensor target = test::pattern({4, 3}, 3, 7, 2.0, f32);
    const double loss = functional::mse_loss(model(x6()), target).item();
    train(model, 60);
    CHECK(functional::mse_loss(model(x6()), target).item() < 0.5 * loss);
    const Tensor tuned = model(x6());
    CHECK_THROWS_AS(nn::merge(model), ValueError);
    Mlp copy = model;
    nn::merge_and_unload(copy);
    CHECK(copy(x6()).allclose(tuned, 1e-5, 1e-5));
    nn::unload(model);  // the base stays quantized
    CHECK(dynamic_cast<nn::Quantized*>(model.fc1.weight.source()) != nullptr);
  }
}

namespace {

struct Deep : nn::Module {
  std::vector<Linear> layers{{512, 512}, {512, 512}, {512, 512}, {512, 512}};
  KILN_MODULE(Deep, layers)
  Tensor forward(Tensor x) {
    for (Linear& layer : layers) x = relu(layer(x));
    return x;
  }
};

// Bytes that a model takes while the graph of a forward pass lives.
template <class Attach>
size_t bytes_in_training(Attach&& attach) {
  const size_t before = memory_stats().bytes_in_use;
  Deep model;
  attach(model);
  const Tensor loss = model(ones({1, 512})).sum();
  const size_t during = memory_stats().bytes_in_use - before;
  CHECK(loss.backward().size() > 0);
  return during;
}

}  // namespace

TEST_CASE("qlora: no dense weight is kept, in training neither") {
  const size_t dense = bytes_in_training([](Deep& m) { nn::lora(m, {.rank = 4}); });
  const size_t small = bytes_in_training([](Deep& m) { nn::qlora(m, {.rank = 4}); });
  CHECK(dense > 4 * 512 * 512 * 4);
  // 4 bits, a float32 scale for 64 values: 9 / 64 of float32's 4 bytes, and the updates.
  CHECK(small < dense / 5);
}
