// Folders of public weights, and the recurrent language model writing.
#include "kiln/models/pretrained.h"

#include <doctest/doctest.h>

#include "kiln/io/safetensors.h"
#include "kiln/kiln.h"
#include "kiln/models/models.h"
#include "tests/support/temp_dir.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::models;
using kiln::test::message_of;

namespace {

constexpr const char* kGpt2 =
    R"({"model_type": "gpt2", "vocab_size": 20, "n_positions": 16, "n_embd": 16, "n_layer": 1,
        "n_head": 2, "n_inner": null, "layer_norm_epsilon": 1e-5})";

}  // namespace

TEST_CASE("pretrained: GPT-2 with its head, without it, and with buffers of old files") {
  manual_seed(0);
  const test::TempDir dir;
  test::write_bytes(dir.path("config.json"), kGpt2);
  GPT2LMHeadModel model(read_gpt2_config(dir.path("config.json")));
  model.eval();
  const Tensor ids = randint(0, 20, {1, 6});
  const Tensor expected = model(ids);
  io::save_model_file(dir.path("model.safetensors"), model.state_dict());
  CHECK(gpt2_from_pretrained(dir.path("."))(ids).equal(expected));

  nn::StateDict bare = model.transformer.state_dict();
  bare.set("h.0.attn.bias", ones({1, 1, 16, 16}));
  io::save_model_file(dir.path("model.safetensors"), bare);
  GPT2LMHeadModel again = gpt2_from_pretrained(dir.path("."));
  CHECK(again(ids).equal(expected));
  CHECK(!again.is_training());
  CHECK(again.lm_head.weight->is_same(*again.transformer.wte.weight));

  bare.erase("ln_f.bias");
  io::save_model_file(dir.path("model.safetensors"), bare);
  CHECK(message_of<RuntimeError>([&] {
          gpt2_from_pretrained(dir.path("."));
        }).find("transformer.ln_f.bias") != std::string::npos);
}

TEST_CASE("pretrained: Llama's configuration and weights") {
  manual_seed(0);
  const test::TempDir dir;
  test::write_bytes(dir.path("config.json"),
                    R"({"vocab_size": 20, "hidden_size": 16, "intermediate_size": 24,
                        "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2,
                        "rope_theta": 500, "rope_scaling": {"type": "linear", "factor": 2},
                        "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16", "head_dim": null})");
  const LlamaConfig config = read_llama_config(dir.path("config.json"));
  CHECK(config.rope_parameters.rope_theta == 500);
  CHECK(config.rope_parameters.rope_type == "linear");
  CHECK(config.rope_parameters.factor == 2);
  CHECK(config.rms_norm_eps == 1e-5);
  LlamaForCausalLM model(config);
  model.eval();
  io::save_model_file(dir.path("model.safetensors"), model.state_dict());
  const Tensor ids = randint(0, 20, {2, 5});
  CHECK(llama_from_pretrained(dir.path("."))(ids).equal(model(ids)));
}

TEST_CASE("pretrained: what is refused") {
  const test::TempDir dir;
  CHECK_THROWS_AS(gpt2_from_pretrained(dir.path("none")), IoError);
  test::write_bytes(dir.path("config.json"), kGpt2);
  CHECK(message_of<IoError>([&] {
          gpt2_from_pretrained(dir.path("."));
        }).find("holds no model.safetensors") != std::string::npos);
  test::write_bytes(dir.path("config.json"), "{");
  CHECK_THROWS_AS(read_gpt2_config(dir.path("config.json")), IoError);
  test::write_bytes(dir.path("config.json"), R"({"n_embd": "x"})");
  CHECK(message_of<ValueError>([&] {
          read_gpt2_config(dir.path("config.json"));
        }).find("n_embd must be an integer") != std::string::npos);
  test::write_bytes(dir.path("config.json"), "[]");
  CHECK_THROWS_AS(read_llama_config(dir.path("config.json")), ValueError);
}

TEST_CASE("LSTM language model: writes the same in a batch, alone, and without its state") {
  manual_seed(0);
  LSTMLanguageModel model({.ntoken = 12, .ninp = 8, .nhid = 8, .nlayers = 2});
  model.eval();
  const std::vector<std::vector<int64_t>> prompts{{1, 2, 3, 4}, {5, 6}};
  const GenerateOptions options{.max_new_tokens = 6};
  const Tensor together = model.generate(prompts, options);
  CHECK(together.shape() == Shape{2, 10});
  for (int64_t i = 0; i < 2; ++i) {
    const Tensor alone = model.generate({prompts[static_cast<size_t>(i)]}, options);
    CHECK(alone[0].narrow(0, alone.size(1) - 6, 6).equal(together[i].narrow(0, 4, 6)));
  }
  GenerateOptions plain = options;
  plain.use_cache = false;
  CHECK(model.generate(prompts, plain).equal(together));
  // The likeliest of each step's logits.
  const Tensor logits = model(together.narrow(0, 0, 1)).first;
  CHECK(logits.argmax(-1).narrow(1, 3, 6).equal(together.narrow(0, 0, 1).narrow(1, 4, 6)));
  CHECK_THROWS_AS(model.generate({{}}, options), ValueError);
}
