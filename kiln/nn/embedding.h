// Embedding: a table of vectors, looked up by index.
#pragma once

#include <optional>
#include <string>

#include "kiln/nn/layer.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

struct EmbeddingOptions {
  // The row for padding: starts at zero and gets no gradient. Negative numbers count from the end.
  std::optional<int64_t> padding_idx = {};
  KILN_CONFIG(EmbeddingOptions, doc(padding_idx, "the row that stays zero"))
};

class Embedding;
struct EmbeddingConfig {
  Required<int64_t> num_embeddings;
  Required<int64_t> embedding_dim;
  EmbeddingOptions options = {};
  KILN_CONFIG(EmbeddingConfig, num_embeddings, embedding_dim, options)
  Embedding init(const ParamOptions& param_options = {}) const;
};

// index [..], integers -> [.., embedding_dim]. weight [num_embeddings, embedding_dim] starts
// standard normal.
class Embedding : public Layer<EmbeddingConfig> {
 public:
  Embedding(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingOptions& options = {},
            const ParamOptions& param_options = {})
      : Embedding(EmbeddingConfig{num_embeddings, embedding_dim, options}, param_options) {}
  explicit Embedding(EmbeddingConfig config, const ParamOptions& param_options = {});

  Param<Tensor> weight;
  KILN_MODULE(Embedding, weight)

  Tensor forward(const Tensor& index) const;
  void reset_parameters();
  std::string extra_repr() const override;

  int64_t num_embeddings() const { return config_.num_embeddings; }
  int64_t embedding_dim() const { return config_.embedding_dim; }
  // Not negative.
  std::optional<int64_t> padding_idx() const { return config_.options.padding_idx; }

 private:
  std::function<void(Tensor&)> fill_weight() const;
};

inline Embedding EmbeddingConfig::init(const ParamOptions& param_options) const {
  return Embedding(*this, param_options);
}

}  // namespace kiln::nn
