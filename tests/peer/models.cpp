// The models of kiln::models for other programs: kiln_model_peer keys NAME prints the parameters of
// a model of full size, without making them; kiln_model_peer run NAME IN OUT reads weights ("w/..")
// and inputs ("in0", ..) from one safetensors file and writes what the model computes to another,
// with the model's state dict in its order on the output.
#include "kiln/models/models.h"

#include <cstdio>
#include <functional>
#include <map>
#include <string>

#include "kiln/io/model_file.h"
#include "kiln/kiln.h"

namespace kiln::models {
namespace {

struct Run {
  nn::StateDict weights;
  std::map<std::string, Tensor> in;
  nn::StateDict out;

  const Tensor& input(int i) const { return in.at("in" + std::to_string(i)); }

  // The model with its weights, in eval mode.
  template <class M>
  M& ready(M& model) {
    model.load_state_dict(weights);
    model.eval();
    for (const auto& [key, value] : model.state_dict()) {
      std::printf("%s %s\n", key.c_str(), to_string(value.shape()).c_str());
    }
    return model;
  }
  template <class M>
  void forward(M model) {
    out.set("out0", ready(model)(input(0)));
  }
};

const std::vector<std::vector<int64_t>> kPrompts{{5, 6, 7, 8, 9}, {10}, {11, 12, 13}};

template <class M>
void causal(Run& run, M model) {
  run.ready(model);
  run.out.set("out0", model(run.input(0), CausalCall{.attention_mask = run.input(1)}));
  for (const bool use_cache : {true, false}) {
    run.out.set(use_cache ? "out1" : "out2", model.generate(kPrompts, {.max_new_tokens = 7,
                                                                       .repetition_penalty = 1.2,
                                                                       .eos_token_id = {33, 44},
                                                                       .use_cache = use_cache}));
  }
}

const GPT2Config kGPT2{
    .vocab_size = 61, .n_positions = 32, .n_embd = 32, .n_layer = 2, .n_head = 4};
const LlamaConfig kLlama{.vocab_size = 61,
                         .hidden_size = 32,
                         .intermediate_size = 48,
                         .num_hidden_layers = 2,
                         .num_attention_heads = 4,
                         .num_key_value_heads = 2};
const BertConfig kBert{.vocab_size = 61,
                       .hidden_size = 32,
                       .num_hidden_layers = 2,
                       .num_attention_heads = 4,
                       .intermediate_size = 48,
                       .max_position_embeddings = 32};
const WhisperConfig kWhisper{.vocab_size = 61,
                             .num_mel_bins = 8,
                             .encoder_layers = 2,
                             .encoder_attention_heads = 4,
                             .decoder_layers = 2,
                             .decoder_attention_heads = 4,
                             .encoder_ffn_dim = 48,
                             .decoder_ffn_dim = 40,
                             .d_model = 32,
                             .max_source_positions = 12,
                             .max_target_positions = 24,
                             .decoder_start_token_id = 3};
const DDPMUNetOptions kDDPM{
    .ch = 8, .ch_mult = {1, 2}, .num_res_blocks = 1, .attn_resolutions = {8}, .resolution = 16};

LlamaConfig llama3() {
  LlamaConfig c = kLlama;
  c.rope_parameters = {.rope_type = "llama3", .factor = 8, .original_max_position_embeddings = 32};
  c.attention_bias = c.mlp_bias = c.tie_word_embeddings = true;
  c.head_dim = 12;
  return c;
}

const std::map<std::string, std::function<void(Run&)>> kRuns = {
    {"resnet18", [](Run& r) { r.forward(resnet18({.num_classes = 5})); }},
    {"resnet50",
     [](Run& r) {
       r.forward(resnet50({.num_classes = 5, .replace_stride_with_dilation = {false, true, true}}));
     }},
    {"resnext50_32x4d", [](Run& r) { r.forward(resnext50_32x4d({.num_classes = 5})); }},
    {"vgg features", [](Run& r) { r.forward(VGG(11, true).features); }},
    {"mobilenet_v3_small",
     [](Run& r) {
       r.forward(mobilenet_v3_small(
           {.num_classes = 5, .width_mult = 0.5, .reduced_tail = true, .dilated = true}));
     }},
    {"mobilenet_v3_large", [](Run& r) { r.forward(mobilenet_v3_large({.num_classes = 5})); }},
    {"efficientnet_b0", [](Run& r) { r.forward(efficientnet_b0({.num_classes = 5})); }},
    {"convnext_atto", [](Run& r) { r.forward(convnext_atto({.num_classes = 5})); }},
    {"vit",
     [](Run& r) {
       r.forward(VisionTransformer({.image_size = 32,
                                    .patch_size = 8,
                                    .num_layers = 2,
                                    .num_heads = 4,
                                    .hidden_dim = 32,
                                    .mlp_dim = 48,
                                    .num_classes = 5,
                                    .representation_size = 12}));
     }},
    {"mlp",
     [](Run& r) {
       r.forward(mlp(5, {8, 3}));
     }},
    {"lenet", [](Run& r) { r.forward(LeNet()); }},
    {"dqn", [](Run& r) { r.forward(DQN({.n_observations = 4, .n_actions = 2, .hidden = 8})); }},
    {"dqn, dueling",
     [](Run& r) {
       r.forward(DQN({.n_observations = 4, .n_actions = 2, .hidden = 8, .dueling = true}));
     }},
    {"atari", [](Run& r) { r.forward(AtariDQN(6)); }},
    {"unet", [](Run& r) { r.forward(unet({.base_channels = 4})); }},
    {"unet, bilinear", [](Run& r) { r.forward(unet({.bilinear = true, .base_channels = 4})); }},
    {"generator", [](Run& r) { r.forward(DCGANGenerator({.nz = 6, .ngf = 4})); }},
    {"discriminator", [](Run& r) { r.forward(DCGANDiscriminator({.ndf = 4})); }},
    {"vae",
     [](Run& r) {
       VAE model({.input_dim = 20, .hidden_dim = 16, .latent_dim = 3});
       const VAEOutput y = r.ready(model)(r.input(0));
       r.out.set("out0", y.reconstruction);
       r.out.set("out1", vae_loss(y, r.input(0), 0.5));
     }},
    {"ddpm",
     [](Run& r) {
       DDPMUNet model(kDDPM);
       r.out.set("out0", r.ready(model)(r.input(0), r.input(1)));
     }},
    {"lstm",
     [](Run& r) {
       LSTMLanguageModel model({.ntoken = 61, .ninp = 8, .nhid = 12, .nlayers = 2});
       r.out.set("out0", r.ready(model)(r.input(0)).first);
     }},
    {"gpt2", [](Run& r) { causal(r, gpt2(kGPT2)); }},
    {"llama", [](Run& r) { causal(r, llama(kLlama)); }},
    {"llama3", [](Run& r) { causal(r, llama(llama3())); }},
    {"bert",
     [](Run& r) {
       BertModel model(kBert);
       const BertCall call{.attention_mask = r.input(1), .token_type_ids = r.input(2)};
       r.out.set("out0", r.ready(model)(r.input(0), call).select(0, 0));
       r.out.set("out1", model.pooled(model(r.input(0), call)));
     }},
    {"bert masked",
     [](Run& r) {
       BertForMaskedLM model(kBert);
       r.out.set("out0", r.ready(model)(r.input(0)));
     }},
    {"bert classes",
     [](Run& r) {
       BertForSequenceClassification model(kBert);
       r.out.set("out0", r.ready(model)(r.input(0)));
     }},
    {"whisper",
     [](Run& r) {
       WhisperForConditionalGeneration model(kWhisper);
       r.out.set("out0", r.ready(model)(r.input(0), r.input(1)));
       r.out.set("out1", model.generate(r.input(0), {.max_new_tokens = 6}));
       r.out.set("out2", model.generate(r.input(0), {.max_new_tokens = 6, .use_cache = false}));
     }},
};

// Names and shapes, with nothing made.
struct Keys : nn::ModuleVisitor {
  void visit_float(std::string_view name, const nn::Param<Tensor>& param) override {
    std::printf("%s %s\n", path(name).c_str(), to_string(param.lazy_shape()).c_str());
  }
};

template <class M>
void keys(const M& model) {
  Keys visitor;
  model.visit(visitor);
}

const std::map<std::string, std::function<void()>> kKeys = {
    {"resnet18", [] { keys(resnet18()); }},
    {"resnet34", [] { keys(resnet34()); }},
    {"resnet50", [] { keys(resnet50()); }},
    {"resnet101", [] { keys(resnet101()); }},
    {"resnet152", [] { keys(resnet152()); }},
    {"wide_resnet50_2", [] { keys(wide_resnet50_2()); }},
    {"vgg11", [] { keys(vgg11()); }},
    {"vgg11_bn", [] { keys(vgg11_bn()); }},
    {"vgg13", [] { keys(vgg13()); }},
    {"vgg13_bn", [] { keys(vgg13_bn()); }},
    {"vgg16", [] { keys(vgg16()); }},
    {"vgg16_bn", [] { keys(vgg16_bn()); }},
    {"vgg19", [] { keys(vgg19()); }},
    {"vgg19_bn", [] { keys(vgg19_bn()); }},
    {"mobilenet_v3_small", [] { keys(mobilenet_v3_small()); }},
    {"mobilenet_v3_large", [] { keys(mobilenet_v3_large()); }},
    {"efficientnet_b0", [] { keys(efficientnet_b0()); }},
    {"convnext_tiny", [] { keys(convnext_tiny()); }},
    {"convnext_small", [] { keys(convnext_small()); }},
    {"convnext_base", [] { keys(convnext_base()); }},
    {"convnext_large", [] { keys(convnext_large()); }},
    {"vit_tiny_16", [] { keys(vit_tiny_16()); }},
    {"vit_b_16", [] { keys(vit_b_16()); }},
    {"vit_b_32", [] { keys(vit_b_32()); }},
    {"vit_l_16", [] { keys(vit_l_16()); }},
};

int run(const std::string& name, const std::string& in, const std::string& out) {
  Run r;
  for (auto& [key, value] : io::load_model_file(in).tensors) {
    if (key.starts_with("w/")) {
      r.weights.set(key.substr(2), value);
    } else {
      r.in[key] = value;
    }
  }
  kRuns.at(name)(r);
  nn::StateDict result;
  for (const auto& [key, value] : r.out) result.set(key, value.detach().contiguous());
  io::save_model_file(out, result);
  return 0;
}

int main_of(const std::vector<std::string>& arguments) {
  if (arguments.size() == 4 && arguments[0] == "run") {
    return run(arguments[1], arguments[2], arguments[3]);
  }
  if (arguments.size() == 2 && arguments[0] == "keys") {
    kKeys.at(arguments[1])();
    return 0;
  }
  if (arguments.size() == 1 && arguments[0] == "names") {
    for (const auto& [name, function] : kRuns) std::printf("run %s\n", name.c_str());
    for (const auto& [name, function] : kKeys) std::printf("keys %s\n", name.c_str());
    return 0;
  }
  std::fprintf(stderr, "usage: kiln_model_peer names | keys NAME | run NAME IN OUT\n");
  return 2;
}

}  // namespace
}  // namespace kiln::models

int main(int argc, char** argv) {
  try {
    return kiln::models::main_of({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
