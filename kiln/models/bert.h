// BERT (Devlin et al., 2019), with the keys and options of Hugging Face's transformers.
#pragma once

#include "kiln/nn/embedding.h"
#include "kiln/nn/layer_norm.h"
#include "kiln/nn/linear.h"
#include "kiln/nn/module_list.h"

namespace kiln::models {

// Defaults are those of the base model.
struct BertConfig {
  int64_t vocab_size = 30522;
  int64_t hidden_size = 768;
  int64_t num_hidden_layers = 12;
  int64_t num_attention_heads = 12;
  int64_t intermediate_size = 3072;
  double hidden_dropout_prob = 0.1;
  double attention_probs_dropout_prob = 0.1;
  int64_t max_position_embeddings = 512;
  int64_t type_vocab_size = 2;
  double initializer_range = 0.02;
  double layer_norm_eps = 1e-12;
  int64_t num_labels = 2;
};

struct BertCall {
  Tensor attention_mask = {};  // [N, T], 0 at padding
  Tensor token_type_ids = {};  // [N, T], which sentence; 0 without them
};

struct BertEmbeddings : nn::Module {
  explicit BertEmbeddings(const BertConfig& config);
  nn::Embedding word_embeddings, position_embeddings, token_type_embeddings;
  nn::LayerNorm LayerNorm;
  KILN_MODULE_DECLARED(BertEmbeddings)
  Tensor forward(const Tensor& input_ids, const Tensor& token_type_ids);

 private:
  double dropout_;
};

struct BertEncoder : nn::Module {
  explicit BertEncoder(const BertConfig& config);
  nn::ModuleList layer;
  KILN_MODULE_DECLARED(BertEncoder)
  Tensor forward(const Tensor& x, const Tensor& mask);
};

struct BertPooler : nn::Module {
  explicit BertPooler(const BertConfig& config);
  nn::Linear dense;
  KILN_MODULE_DECLARED(BertPooler)
  Tensor forward(const Tensor& x);
};

// Token ids [N, T] -> hidden states [N, T, hidden_size]; pooled() takes those to [N, hidden_size].
class BertModel : public nn::Module {
 public:
  explicit BertModel(const BertConfig& config = {}, bool add_pooling_layer = true);
  BertEmbeddings embeddings;
  BertEncoder encoder;
  std::optional<BertPooler> pooler;
  KILN_MODULE_DECLARED(BertModel)
  Tensor forward(const Tensor& input_ids, const BertCall& call = {});
  Tensor pooled(const Tensor& hidden) { return pooler.value()(hidden); }

 private:
  BertConfig config_;
};

struct BertTransform : nn::Module {
  explicit BertTransform(const BertConfig& config);
  nn::Linear dense;
  nn::LayerNorm LayerNorm;
  KILN_MODULE_DECLARED(BertTransform)
  Tensor forward(const Tensor& x);
};

struct BertPredictions : nn::Module {
  explicit BertPredictions(const BertConfig& config);
  nn::Param<Tensor> bias;
  BertTransform transform;
  nn::Linear decoder;
  KILN_MODULE_DECLARED(BertPredictions)
  Tensor forward(const Tensor& x) { return decoder(transform(x)); }
};

struct BertMaskedHead : nn::Module {
  explicit BertMaskedHead(const BertConfig& config) : predictions(config) {}
  BertPredictions predictions;
  KILN_MODULE_DECLARED(BertMaskedHead)
  Tensor forward(const Tensor& x) { return predictions(x); }
};

// Token ids [N, T] -> logits [N, T, vocab_size].
class BertForMaskedLM : public nn::Module {
 public:
  explicit BertForMaskedLM(const BertConfig& config = {});
  BertModel bert;
  BertMaskedHead cls;
  KILN_MODULE_DECLARED(BertForMaskedLM)
  Tensor forward(const Tensor& input_ids, const BertCall& call = {});
};

// Token ids [N, T] -> logits [N, num_labels].
class BertForSequenceClassification : public nn::Module {
 public:
  explicit BertForSequenceClassification(const BertConfig& config = {});
  BertModel bert;
  nn::Linear classifier;
  KILN_MODULE_DECLARED(BertForSequenceClassification)
  Tensor forward(const Tensor& input_ids, const BertCall& call = {});

 private:
  double dropout_;
};

}  // namespace kiln::models
