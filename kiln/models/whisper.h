// Whisper (Radford et al., 2022), with the keys and options of Hugging Face's transformers.
#pragma once

#include "kiln/models/generation.h"
#include "kiln/nn/conv_layers.h"
#include "kiln/nn/embedding.h"
#include "kiln/nn/layer_norm.h"
#include "kiln/nn/linear.h"
#include "kiln/nn/module_list.h"

namespace kiln::models {

// Defaults are those of the tiny model.
struct WhisperConfig {
  int64_t vocab_size = 51865;
  int64_t num_mel_bins = 80;
  int64_t encoder_layers = 4;
  int64_t encoder_attention_heads = 6;
  int64_t decoder_layers = 4;
  int64_t decoder_attention_heads = 6;
  int64_t encoder_ffn_dim = 1536;
  int64_t decoder_ffn_dim = 1536;
  int64_t d_model = 384;
  double dropout = 0.0;
  double init_std = 0.02;
  int64_t max_source_positions = 1500;
  int64_t max_target_positions = 448;
  int64_t decoder_start_token_id = 50257;
};

// Mel spectrograms [N, num_mel_bins, 2 max_source_positions] -> [N, max_source_positions, d_model].
class WhisperEncoder : public nn::Module {
 public:
  explicit WhisperEncoder(const WhisperConfig& config);
  nn::Conv1d conv1, conv2;
  nn::Embedding embed_positions;
  nn::ModuleList layers;
  nn::LayerNorm layer_norm;
  KILN_MODULE_DECLARED(WhisperEncoder)
  Tensor forward(const Tensor& input_features);

 private:
  WhisperConfig config_;
};

struct WhisperCall {
  Tensor attention_mask = {};       // [N, all], 0 at padding
  Tensor position_ids = {};         // [N, T] or [T]
  KeyValueCache* cache = nullptr;   // of the decoder's own positions
  KeyValueCache* memory = nullptr;  // of the encoder's states
};

// Token ids [N, T] and the encoder's states -> [N, T, d_model].
class WhisperDecoder : public nn::Module {
 public:
  explicit WhisperDecoder(const WhisperConfig& config);
  nn::Embedding embed_tokens, embed_positions;
  nn::ModuleList layers;
  nn::LayerNorm layer_norm;
  KILN_MODULE_DECLARED(WhisperDecoder)
  Tensor forward(const Tensor& ids, const Tensor& memory, const WhisperCall& call = {});

 private:
  WhisperConfig config_;
};

struct WhisperModel : nn::Module {
  explicit WhisperModel(const WhisperConfig& config) : encoder(config), decoder(config) {}
  WhisperEncoder encoder;
  WhisperDecoder decoder;
  KILN_MODULE_DECLARED(WhisperModel)
  Tensor forward(const Tensor& input_features, const Tensor& ids);
};

// Mel spectrograms and token ids [N, T] -> logits [N, T, vocab_size].
class WhisperForConditionalGeneration : public nn::Module {
 public:
  explicit WhisperForConditionalGeneration(const WhisperConfig& config = {});
  WhisperModel model;
  nn::Linear proj_out;
  KILN_MODULE_DECLARED(WhisperForConditionalGeneration)
  Tensor forward(const Tensor& input_features, const Tensor& decoder_input_ids);
  // Token ids for each spectrogram, from the start token on.
  Tensor generate(const Tensor& input_features, const GenerateOptions& options = {});

 private:
  WhisperConfig config_;
};

}  // namespace kiln::models
