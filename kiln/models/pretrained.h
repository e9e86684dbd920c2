// Public weights of language models, as Hugging Face's hub has them: a folder with config.json and
// model.safetensors (one file, or several with an index) or pytorch_model.bin.
#pragma once

#include <string>

#include "kiln/models/gpt2.h"
#include "kiln/models/llama.h"
#include "kiln/nn/state_dict.h"

namespace kiln::models {

// What a config.json says; fields that the configuration lacks are left out. Throw IoError for a
// file that is no JSON, ValueError for a field of another type.
GPT2Config read_gpt2_config(const std::string& path);
LlamaConfig read_llama_config(const std::string& path);

// The model of a folder, in eval mode, in f32. Throws IoError, and RuntimeError when weights are
// missing. Nothing is fetched.
GPT2LMHeadModel gpt2_from_pretrained(const std::string& folder);
LlamaForCausalLM llama_from_pretrained(const std::string& folder);

// Takes the state dict of a model, or of its backbone, whose name in the model is `prefix`
// ("transformer"); tensors that the model lacks are left out. Weights that are tied need be there
// once. Throws RuntimeError, and changes nothing, when some are missing or of another shape.
void load_pretrained(nn::Module& model, const nn::StateDict& state, const std::string& prefix);

}  // namespace kiln::models
