#include "kiln/models/bert.h"

#include "kiln/core/error.h"
#include "kiln/models/language_support.h"
#include "kiln/nn/init.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/nn/attention.h"
#include "kiln/tensor/nn/dropout.h"
#include "kiln/tensor/ops.h"

namespace kiln::models {
namespace {

nn::LayerNorm norm(const BertConfig& c) {
  return nn::LayerNorm(c.hidden_size, {.eps = c.layer_norm_eps});
}
nn::Linear dense_layer(const BertConfig& c, int64_t inputs, int64_t outputs) {
  return projection(inputs, outputs, true, c.initializer_range);
}

struct BertSelfAttention : nn::Module {
  nn::Linear query, key, value;
  KILN_MODULE(BertSelfAttention, query, key, value)

  explicit BertSelfAttention(const BertConfig& c)
      : query(dense_layer(c, c.hidden_size, c.hidden_size)),
        key(dense_layer(c, c.hidden_size, c.hidden_size)),
        value(dense_layer(c, c.hidden_size, c.hidden_size)),
        heads_(c.num_attention_heads),
        dropout_(c.attention_probs_dropout_prob) {}
  Tensor forward(const Tensor& x, const Tensor& mask) {
    const Tensor y = functional::scaled_dot_product_attention(
        split_heads(query(x), heads_), split_heads(key(x), heads_), split_heads(value(x), heads_),
        mask, is_training() ? dropout_ : 0.0);
    return y.transpose(1, 2).reshape(x.shape());
  }

 private:
  int64_t heads_;
  double dropout_;
};

// A linear layer, the residual connection and a norm behind it.
struct BertResidual : nn::Module {
  nn::Linear dense;
  nn::LayerNorm LayerNorm;
  KILN_MODULE(BertResidual, dense, LayerNorm)

  BertResidual(const BertConfig& c, int64_t inputs)
      : dense(dense_layer(c, inputs, c.hidden_size)),
        LayerNorm(norm(c)),
        dropout_(c.hidden_dropout_prob) {}
  Tensor forward(const Tensor& x, const Tensor& residual) {
    return LayerNorm(functional::dropout(dense(x), dropout_, is_training()) + residual);
  }

 private:
  double dropout_;
};

struct BertAttention : nn::Module {
  BertSelfAttention self;
  BertResidual output;
  KILN_MODULE(BertAttention, self, output)

  explicit BertAttention(const BertConfig& c) : self(c), output(c, c.hidden_size) {}
  Tensor forward(const Tensor& x, const Tensor& mask) { return output(self(x, mask), x); }
};

struct BertIntermediate : nn::Module {
  nn::Linear dense;
  KILN_MODULE(BertIntermediate, dense)

  explicit BertIntermediate(const BertConfig& c)
      : dense(dense_layer(c, c.hidden_size, c.intermediate_size)) {}
  Tensor forward(const Tensor& x) { return dense(x).gelu(); }
};

struct BertLayer : nn::Module {
  BertAttention attention;
  BertIntermediate intermediate;
  BertResidual output;
  KILN_MODULE(BertLayer, attention, intermediate, output)

  explicit BertLayer(const BertConfig& c)
      : attention(c), intermediate(c), output(c, c.intermediate_size) {}
  Tensor forward(const Tensor& x, const Tensor& mask) {
    const Tensor y = attention(x, mask);
    return output(intermediate(y), y);
  }
};

BertConfig checked(const BertConfig& c) {
  require_at_least_one("BertConfig", {{"vocab_size", c.vocab_size},
                                      {"hidden_size", c.hidden_size},
                                      {"num_hidden_layers", c.num_hidden_layers},
                                      {"num_attention_heads", c.num_attention_heads},
                                      {"intermediate_size", c.intermediate_size},
                                      {"max_position_embeddings", c.max_position_embeddings},
                                      {"type_vocab_size", c.type_vocab_size},
                                      {"num_labels", c.num_labels}});
  require_multiple("BertConfig", "hidden_size", c.hidden_size, "num_attention_heads",
                   c.num_attention_heads);
  return c;
}

}  // namespace

BertEmbeddings::BertEmbeddings(const BertConfig& c)
    : word_embeddings(table(c.vocab_size, c.hidden_size, c.initializer_range)),
      position_embeddings(table(c.max_position_embeddings, c.hidden_size, c.initializer_range)),
      token_type_embeddings(table(c.type_vocab_size, c.hidden_size, c.initializer_range)),
      LayerNorm(norm(c)),
      dropout_(c.hidden_dropout_prob) {}

Tensor BertEmbeddings::forward(const Tensor& input_ids, const Tensor& token_type_ids) {
  const Tensor types = token_type_ids.defined() ? token_type_ids : zeros_like(input_ids);
  const Tensor positions = arange(0, input_ids.size(1), 1, {.device = input_ids.device()});
  const Tensor x = word_embeddings(input_ids) + token_type_embeddings(types);
  return functional::dropout(LayerNorm(x + position_embeddings(positions)), dropout_,
                             is_training());
}
KILN_MODULE_DEFINED(BertEmbeddings, word_embeddings, position_embeddings, token_type_embeddings,
                    LayerNorm)

BertEncoder::BertEncoder(const BertConfig& c) {
  for (int64_t i = 0; i < c.num_hidden_layers; ++i) layer.push_back(BertLayer(c));
}
Tensor BertEncoder::forward(const Tensor& x, const Tensor& mask) {
  Tensor y = x;
  for (int64_t i = 0; i < int64_t(layer.size()); ++i) y = layer.at<BertLayer>(i)(y, mask);
  return y;
}
KILN_MODULE_DEFINED(BertEncoder, layer)

BertPooler::BertPooler(const BertConfig& c) : dense(dense_layer(c, c.hidden_size, c.hidden_size)) {}
Tensor BertPooler::forward(const Tensor& x) { return dense(x.select(1, 0)).tanh(); }
KILN_MODULE_DEFINED(BertPooler, dense)

BertModel::BertModel(const BertConfig& c, bool add_pooling_layer)
    : embeddings(c), encoder(c), config_(checked(c)) {
  if (add_pooling_layer) pooler.emplace(c);
}

Tensor BertModel::forward(const Tensor& input_ids, const BertCall& call) {
  check_input_ids("BERT", input_ids);
  if (input_ids.size(1) > config_.max_position_embeddings) {
    throw_error<ValueError>("BERT: at most ", config_.max_position_embeddings, " positions; got ",
                            input_ids.size(1));
  }
  Tensor mask;
  if (call.attention_mask.defined()) {
    mask = call.attention_mask.ne(0).unsqueeze(1).unsqueeze(1);
  }
  return encoder(embeddings(input_ids, call.token_type_ids), mask);
}
KILN_MODULE_DEFINED(BertModel, embeddings, encoder, pooler)

BertTransform::BertTransform(const BertConfig& c)
    : dense(dense_layer(c, c.hidden_size, c.hidden_size)), LayerNorm(norm(c)) {}
Tensor BertTransform::forward(const Tensor& x) { return LayerNorm(dense(x).gelu()); }
KILN_MODULE_DEFINED(BertTransform, dense, LayerNorm)

BertPredictions::BertPredictions(const BertConfig& c)
    : bias(nn::parameter({c.vocab_size}, nn::init::zeros_)),
      transform(c),
      decoder(dense_layer(c, c.hidden_size, c.vocab_size)) {
  nn::tie_weights(decoder.bias, bias);
}
KILN_MODULE_DEFINED(BertPredictions, bias, transform, decoder)
KILN_MODULE_DEFINED(BertMaskedHead, predictions)

BertForMaskedLM::BertForMaskedLM(const BertConfig& c) : bert(c, false), cls(c) {
  nn::tie_weights(cls.predictions.decoder.weight, bert.embeddings.word_embeddings.weight);
}
Tensor BertForMaskedLM::forward(const Tensor& input_ids, const BertCall& call) {
  return cls(bert(input_ids, call));
}
KILN_MODULE_DEFINED(BertForMaskedLM, bert, cls)

BertForSequenceClassification::BertForSequenceClassification(const BertConfig& c)
    : bert(c),
      classifier(dense_layer(c, c.hidden_size, c.num_labels)),
      dropout_(c.hidden_dropout_prob) {}
Tensor BertForSequenceClassification::forward(const Tensor& input_ids, const BertCall& call) {
  const Tensor pooled = bert.pooled(bert(input_ids, call));
  return classifier(functional::dropout(pooled, dropout_, is_training()));
}
KILN_MODULE_DEFINED(BertForSequenceClassification, bert, classifier)

}  // namespace kiln::models
