#include "kiln/models/pretrained.h"

#include <filesystem>

#include "kiln/core/error.h"
#include "kiln/core/json.h"
#include "kiln/io/input_file.h"
#include "kiln/io/model_file.h"

namespace kiln::models {

namespace {

// The fields of a config.json, read into those of a configuration when they are there.
class Fields {
 public:
  explicit Fields(const std::string& path) : path_(path) {
    const std::string text = io::InputFile("from_pretrained", path).read_whole(16 << 20);
    try {
      values_ = decode_json(text);
    } catch (const ValueError& error) {
      throw_error<IoError>("from_pretrained: '", path, "': ", error.what());
    }
    if (values_.as<Json::Object>() == nullptr) wrong("the whole", values_, "an object");
  }
  Fields(const Fields& outer, const Json& values) : path_(outer.path_), values_(values) {}

  // Null where it is not there, or is null.
  const Json* find(const char* name) const {
    const Json* value = values_.find(name);
    return value == nullptr || value->is_null() ? nullptr : value;
  }
  void read(const char* name, int64_t& into) const { read_as<int64_t>(name, into, "an integer"); }
  void read(const char* name, bool& into) const { read_as<bool>(name, into, "a boolean"); }
  void read(const char* name, std::string& into) const {
    read_as<std::string>(name, into, "a string");
  }
  void read(const char* name, double& into) const {
    const Json* value = find(name);
    if (value == nullptr) return;
    if (const auto* integer = value->as<int64_t>()) {
      into = static_cast<double>(*integer);
    } else {
      read_as<double>(name, into, "a number");
    }
  }

 private:
  template <class T>
  void read_as(const char* name, T& into, const char* expected) const {
    const Json* value = find(name);
    if (value == nullptr) return;
    if (value->as<T>() == nullptr) wrong(name, *value, expected);
    into = *value->as<T>();
  }
  [[noreturn]] void wrong(const char* name, const Json& value, const char* expected) const {
    throw_error<ValueError>("from_pretrained: '", path_, "': ", name, " must be ", expected,
                            "; got ", value.describe());
  }

  std::string path_;
  Json values_;
};

void read_rope(const Fields& fields, RopeParameters& rope) {
  fields.read("rope_theta", rope.rope_theta);
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    const Json* value = fields.find(name);
    if (value == nullptr) continue;
    const Fields inner(fields, *value);
    inner.read("type", rope.rope_type);
    inner.read("rope_type", rope.rope_type);
    inner.read("rope_theta", rope.rope_theta);
    inner.read("factor", rope.factor);
    inner.read("low_freq_factor", rope.low_freq_factor);
    inner.read("high_freq_factor", rope.high_freq_factor);
    inner.read("original_max_position_embeddings", rope.original_max_position_embeddings);
  }
}

std::string weights_in(const std::string& folder) {
  for (const char* name :
       {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"}) {
    std::string path = folder + "/" + name;
    if (std::filesystem::exists(path)) return path;
  }
  throw_error<IoError>("from_pretrained: '", folder,
                       "' holds no model.safetensors, no index of one and no pytorch_model.bin");
}

template <class M>
M loaded(M model, const std::string& folder, const char* prefix) {
  load_pretrained(model, io::load_model_file(weights_in(folder)).tensors, prefix);
  model.eval();
  return model;
}

}  // namespace

GPT2Config read_gpt2_config(const std::string& path) {
  const Fields fields(path);
  GPT2Config c;
  fields.read("vocab_size", c.vocab_size);
  fields.read("n_positions", c.n_positions);
  fields.read("n_embd", c.n_embd);
  fields.read("n_layer", c.n_layer);
  fields.read("n_head", c.n_head);
  fields.read("n_inner", c.n_inner);
  fields.read("resid_pdrop", c.resid_pdrop);
  fields.read("embd_pdrop", c.embd_pdrop);
  fields.read("attn_pdrop", c.attn_pdrop);
  fields.read("layer_norm_epsilon", c.layer_norm_epsilon);
  fields.read("initializer_range", c.initializer_range);
  fields.read("tie_word_embeddings", c.tie_word_embeddings);
  return c;
}

LlamaConfig read_llama_config(const std::string& path) {
  const Fields fields(path);
  LlamaConfig c;
  fields.read("vocab_size", c.vocab_size);
  fields.read("hidden_size", c.hidden_size);
  fields.read("intermediate_size", c.intermediate_size);
  fields.read("num_hidden_layers", c.num_hidden_layers);
  fields.read("num_attention_heads", c.num_attention_heads);
  fields.read("num_key_value_heads", c.num_key_value_heads);
  fields.read("head_dim", c.head_dim);
  fields.read("initializer_range", c.initializer_range);
  fields.read("rms_norm_eps", c.rms_norm_eps);
  fields.read("attention_bias", c.attention_bias);
  fields.read("mlp_bias", c.mlp_bias);
  fields.read("attention_dropout", c.attention_dropout);
  fields.read("tie_word_embeddings", c.tie_word_embeddings);
  read_rope(fields, c.rope_parameters);
  return c;
}

void load_pretrained(nn::Module& model, const nn::StateDict& state, const std::string& prefix) {
  nn::StateDict found;
  // One name for each tensor: a tied one is taken from whichever the file has.
  for (const auto& [name, parameter] :
       model.named_parameters("", /*recurse=*/true, /*remove_duplicate=*/false)) {
    const std::string short_name =
        name.starts_with(prefix + ".") ? name.substr(prefix.size() + 1) : name;
    for (const std::string& key : {name, short_name}) {
      if (const Tensor* value = state.find(key); value != nullptr && !found.contains(name)) {
        found.set(name, *value);
      }
    }
  }
  for (const auto& [name, parameter] : model.named_parameters("", true, false)) {
    if (found.contains(name)) continue;
    for (const auto& [other, same] : model.named_parameters("", true, false)) {
      if (other != name && same.is_same(parameter) && found.contains(other)) {
        found.set(name, found.at(other));
        break;
      }
    }
  }
  model.load_state_dict(found);
}

GPT2LMHeadModel gpt2_from_pretrained(const std::string& folder) {
  return loaded(GPT2LMHeadModel(read_gpt2_config(folder + "/config.json")), folder, "transformer");
}

LlamaForCausalLM llama_from_pretrained(const std::string& folder) {
  return loaded(LlamaForCausalLM(read_llama_config(folder + "/config.json")), folder, "model");
}

}  // namespace kiln::models
