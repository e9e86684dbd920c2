#include "kiln/nn/embedding.h"

#include "kiln/core/error.h"
#include "kiln/nn/init.h"

namespace kiln::nn {

Embedding::Embedding(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingOptions& options,
                     const ParamOptions& param_options)
    : num_embeddings_(num_embeddings),
      embedding_dim_(embedding_dim),
      padding_idx_(options.padding_idx) {
  if (num_embeddings < 0 || embedding_dim < 0) {
    throw_error<ValueError>("Embedding: sizes must not be negative; got num_embeddings ",
                            num_embeddings, " and embedding_dim ", embedding_dim);
  }
  if (padding_idx_) {
    if (*padding_idx_ >= num_embeddings || *padding_idx_ < -num_embeddings) {
      throw_error<ValueError>("Embedding: padding_idx must be within num_embeddings; got ",
                              *padding_idx_, " for ", num_embeddings);
    }
    if (*padding_idx_ < 0) *padding_idx_ += num_embeddings;
  }
  weight = parameter({num_embeddings, embedding_dim}, fill_weight(), param_options);
}

std::function<void(Tensor&)> Embedding::fill_weight() const {
  return [padding = padding_idx_](Tensor& x) {
    init::normal_(x);
    if (padding) x.select(0, *padding).zero_();
  };
}

Tensor Embedding::forward(const Tensor& index) const {
  Tensor out = functional::embedding(index, weight);
  if (!padding_idx_ || !out.requires_grad()) return out;
  // The same values, but no gradient for the padding row.
  return where(index.eq(*padding_idx_).unsqueeze(-1), out.detach(), out);
}

void Embedding::reset_parameters() { refill(weight, fill_weight()); }

std::string Embedding::extra_repr() const {
  std::string out = concat(num_embeddings_, ", ", embedding_dim_);
  if (padding_idx_) out += concat(", padding_idx=", *padding_idx_);
  return out;
}

}  // namespace kiln::nn
