// Embedding: a table of vectors, looked up by index.
#pragma once

#include <optional>
#include <string>

#include "kiln/core/config.h"
#include "kiln/nn/module.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

struct EmbeddingOptions {
  // The row for padding: starts at zero and gets no gradient. Negative numbers count from the end.
  std::optional<int64_t> padding_idx = {};
  KILN_CONFIG(EmbeddingOptions, doc(padding_idx, "the row that stays zero"))
};

// index [..], integers -> [.., embedding_dim]. weight [num_embeddings, embedding_dim] starts
// standard normal.
class Embedding : public Module {
 public:
  Embedding(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingOptions& options = {},
            const ParamOptions& param_options = {});

  Param<Tensor> weight;
  KILN_MODULE(Embedding, weight)

  Tensor forward(const Tensor& index) const;
  void reset_parameters();
  std::string extra_repr() const override;

  int64_t num_embeddings() const { return num_embeddings_; }
  int64_t embedding_dim() const { return embedding_dim_; }
  std::optional<int64_t> padding_idx() const { return padding_idx_; }

 private:
  std::function<void(Tensor&)> fill_weight() const;

  int64_t num_embeddings_;
  int64_t embedding_dim_;
  std::optional<int64_t> padding_idx_;  // not negative
};

}  // namespace kiln::nn
