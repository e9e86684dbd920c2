// Embedding: a table of vectors, looked up by index.
#pragma once

#include <optional>
#include <string>

#include "kiln/nn/layer.h"
#include "kiln/nn/real.h"
#include "kiln/tensor/nn/embedding.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

struct EmbeddingOptions {
  // The row for padding: starts at zero and gets no gradient. Negative numbers count from the end.
  std::optional<int64_t> padding_idx = {};
  // Rows that are used and have a larger norm_type-norm are first scaled down to it, in place.
  std::optional<Real> max_norm = {};
  Real norm_type = 2.0;
  bool scale_grad_by_freq = false;  // divides a row's gradient by how often the index names it
  bool sparse = false;              // for PyTorch's sake: gradients are dense
  Tensor _weight = {};              // the table to begin with; undefined: standard normal
  bool _freeze = false;             // the table requires no gradient
  KILN_CONFIG(EmbeddingOptions, doc(padding_idx, "the row that stays zero"),
              doc(max_norm, "rows that are used are scaled down to it"), norm_type,
              doc(scale_grad_by_freq, "divides a row's gradient by how often it is used"),
              doc(sparse, "gradients are dense all the same"),
              doc(_weight, "the table to begin with"), doc(_freeze, "no gradient"))
};

class Embedding;
struct EmbeddingConfig {
  Required<int64_t> num_embeddings = {};
  Required<int64_t> embedding_dim = {};
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
  KILN_MODULE_DECLARED(Embedding)

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

using EmbeddingBagMode = kiln::functional::BagMode;

struct EmbeddingBagConfig {
  Required<int64_t> num_embeddings = {};
  Required<int64_t> embedding_dim = {};
  std::optional<Real> max_norm = {};
  Real norm_type = 2.0;
  bool scale_grad_by_freq = false;
  EmbeddingBagMode mode = EmbeddingBagMode::mean;
  bool sparse = false;                      // for PyTorch's sake: gradients are dense
  Tensor _weight = {};                      // the table to begin with; undefined: standard normal
  bool include_last_offset = false;         // the last offset is the end, not a bag
  std::optional<int64_t> padding_idx = {};  // entries that count for nothing
  KILN_CONFIG(EmbeddingBagConfig, num_embeddings, embedding_dim, max_norm, norm_type,
              scale_grad_by_freq, mode, sparse, _weight, include_last_offset, padding_idx)
};

// The sum, mean or maximum of the rows of each bag -> [bags, embedding_dim]: index [bags, size], or
// index [n] and offsets [bags], where each bag starts. per_sample_weights, in mode sum, has the
// index's shape.
class EmbeddingBag : public Layer<EmbeddingBagConfig> {
 public:
  explicit EmbeddingBag(EmbeddingBagConfig config, const ParamOptions& param_options = {});

  Param<Tensor> weight;
  KILN_MODULE_DECLARED(EmbeddingBag)

  Tensor forward(const Tensor& index, const Tensor& offsets = {},
                 const Tensor& per_sample_weights = {}) const;
  void reset_parameters();
  std::string extra_repr() const override;
};

}  // namespace kiln::nn
