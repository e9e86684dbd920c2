// kiln::models: training, copies, and what is refused. Outputs and keys are compared with Python's,
// which are compared with the reference implementations', in tests/python/test_models_cpp.py.
#include "kiln/models/models.h"

#include <doctest/doctest.h>

#include "kiln/kiln.h"

using namespace kiln;
using namespace kiln::models;

namespace {

// Ten steps on one batch make the loss smaller.
template <class M>
void learns(M& model, const Tensor& x, const Tensor& target) {
  optim::AdamW optimizer(model.parameters(), {.lr = 5e-3});
  double first = 0, last = 0;
  for (int i = 0; i < 10; ++i) {
    const Tensor y = model(x).flatten(0, -2);
    const Tensor loss = functional::cross_entropy(y, target.flatten());
    last = loss.item<double>();
    if (i == 0) first = last;
    optimizer.step(loss.backward());
  }
  CHECK(last < 0.9 * first);
}

GPT2Config small_gpt2() {
  return {.vocab_size = 20, .n_positions = 16, .n_embd = 16, .n_layer = 1, .n_head = 2};
}

}  // namespace

TEST_CASE("models: small ones learn a batch") {
  manual_seed(0);
  const Tensor images = randn({4, 3, 32, 32});
  const Tensor classes = tensor(std::vector<int64_t>{0, 1, 2, 1});
  ResNet resnet = resnet18({.num_classes = 3});
  learns(resnet, images, classes);
  MobileNetV3 mobilenet = mobilenet_v3_small({.num_classes = 3, .dropout = 0});
  learns(mobilenet, images, classes);
  const Tensor ids = randint(0, 20, {2, 8});
  GPT2LMHeadModel gpt = gpt2(small_gpt2());
  learns(gpt, ids, ids);
  LlamaForCausalLM model = llama({.vocab_size = 20,
                                  .hidden_size = 16,
                                  .intermediate_size = 24,
                                  .num_hidden_layers = 1,
                                  .num_attention_heads = 4,
                                  .num_key_value_heads = 2});
  learns(model, ids, ids);
}

TEST_CASE("models: a copy is a model of its own, with its weights tied") {
  GPT2LMHeadModel model = gpt2(small_gpt2());
  model.materialize();
  GPT2LMHeadModel copy = model;
  CHECK(copy.lm_head.weight->is_same(*copy.transformer.wte.weight));
  CHECK(!copy.lm_head.weight->is_same(*model.lm_head.weight));
  const Tensor ids = randint(0, 20, {1, 5});
  model.eval();
  copy.eval();
  CHECK(copy(ids).equal(model(ids)));
}

TEST_CASE("models: stochastic depth keeps the mean and stops in eval mode") {
  manual_seed(1);
  const Tensor x = ones({4000, 2});
  const Tensor y = stochastic_depth(x, 0.25, true);
  CHECK(y.mean().item<double>() == doctest::Approx(1).epsilon(0.03));
  CHECK(y.select(1, 0).equal(y.select(1, 1)));
  CHECK(stochastic_depth(x, 0.25, false).equal(x));
  CHECK(stochastic_depth(x, 1.0, true).eq(0).all().item<bool>());
}

TEST_CASE("models: generation with seeds and ends") {
  GPT2LMHeadModel model = gpt2(small_gpt2());
  model.eval();
  const std::vector<std::vector<int64_t>> prompts{{1, 2, 3}, {4}};
  const GenerateOptions draw{
      .max_new_tokens = 8, .do_sample = true, .top_k = 5, .top_p = 0.9, .seed = 3};
  const Tensor first = model.generate(prompts, draw);
  CHECK(first.shape() == Shape{2, 11});
  CHECK(first.equal(model.generate(prompts, draw)));
  GenerateOptions other = draw;
  other.seed = 4;
  CHECK(!first.equal(model.generate(prompts, other)));

  int steps = 0;
  const Tensor plain = model.generate(
      {{1, 2, 3}}, {.max_new_tokens = 6, .on_step = [&](const Tensor&) { ++steps; }});
  CHECK(steps == 6);
  const std::vector<int64_t> tokens = plain[0].to_vector<int64_t>();
  const Tensor ended =
      model.generate({{1, 2, 3}}, {.max_new_tokens = 6, .stop = {{tokens[4], tokens[5]}}});
  CHECK(ended.size(1) <= 6);
}

TEST_CASE("models: impossible options are typed errors") {
  CHECK_THROWS_AS(resnet18({.num_classes = 0}), ValueError);
  CHECK_THROWS_AS(resnet18({.groups = 2}), ValueError);
  CHECK_THROWS_AS(VGG(12, false), ValueError);
  CHECK_THROWS_AS(mobilenet_v3_small({.width_mult = 0}), ValueError);
  CHECK_THROWS_AS(EfficientNet({.depth_mult = -1}), ValueError);
  CHECK_THROWS_AS(VisionTransformer({.patch_size = 15}), ValueError);
  CHECK_THROWS_AS(unet({.n_channels = 0}), ValueError);
  CHECK_THROWS_AS(DDPMUNet({.resolution = 30}), ValueError);
  CHECK_THROWS_AS(mlp(3, {}), ValueError);
  CHECK_THROWS_AS(gpt2({.n_embd = 10, .n_head = 3}), ValueError);
  CHECK_THROWS_AS(llama({.hidden_size = 16, .num_attention_heads = 4, .num_key_value_heads = 3}),
                  ValueError);
  CHECK_THROWS_AS(llama({.rope_parameters = {.rope_type = "yarn"}}), ValueError);
  CHECK_THROWS_AS(BertModel({.vocab_size = 0}), ValueError);
  CHECK_THROWS_AS(LSTMLanguageModel({.ntoken = 5, .ninp = 2, .nhid = 3, .tie_weights = true}),
                  ValueError);
}

TEST_CASE("models: impossible inputs are typed errors") {
  GPT2LMHeadModel model = gpt2(small_gpt2());
  CHECK_THROWS_AS(model(zeros({1, 17}, {.dtype = i64})), ValueError);
  CHECK_THROWS_AS(model(zeros({1, 3})), ValueError);
  CHECK_THROWS_AS(model(zeros({3}, {.dtype = i64})), ValueError);
  CHECK_THROWS_AS(model.generate({}), ValueError);
  CHECK_THROWS_AS(model.generate({{1}, {}}), ValueError);
  CHECK_THROWS_AS(model.generate({{1}}, {.max_new_tokens = 17}), ValueError);
  CHECK_THROWS_AS(model.generate({{1}}, {.max_new_tokens = 0}), ValueError);
  CHECK_THROWS_AS(model.generate({{1}}, {.temperature = 0}), ValueError);
  CHECK_THROWS_AS(model.generate({{1}}, {.top_p = 1.5}), ValueError);
  CHECK_THROWS_AS(model.generate({{1}}, {.repetition_penalty = 0}), ValueError);
  CHECK_THROWS_AS(model.generate({{1}}, {.stop = {{}}}), ValueError);
  CHECK_THROWS_AS(model.generate({{20}}, {.max_new_tokens = 2}), IndexError);
  UNet net = unet({.base_channels = 2});
  CHECK_THROWS_AS(net(ones({1, 3, 8, 32})), ValueError);
}
