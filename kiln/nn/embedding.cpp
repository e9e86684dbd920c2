#include "kiln/nn/embedding.h"

#include "kiln/core/error.h"
#include "kiln/nn/init.h"

namespace kiln::nn {

Embedding::Embedding(EmbeddingConfig config, const ParamOptions& param_options)
    : Layer(std::move(config)) {
  const int64_t rows = num_embeddings(), dim = embedding_dim();
  if (rows < 0 || dim < 0) {
    throw_error<ValueError>("Embedding: sizes must not be negative; got num_embeddings ", rows,
                            " and embedding_dim ", dim);
  }
  if (std::optional<int64_t>& padding = config_.options.padding_idx) {
    if (*padding >= rows || *padding < -rows) {
      throw_error<ValueError>("Embedding: padding_idx must be within num_embeddings; got ",
                              *padding, " for ", rows);
    }
    if (*padding < 0) *padding += rows;
  }
  weight = parameter({rows, dim}, fill_weight(), param_options);
}

std::function<void(Tensor&)> Embedding::fill_weight() const {
  return [padding = padding_idx()](Tensor& x) {
    init::normal_(x);
    if (padding) x.detach().select(0, *padding).zero_();
  };
}

Tensor Embedding::forward(const Tensor& index) const {
  Tensor out = functional::embedding(index, weight);
  const std::optional<int64_t> padding = padding_idx();
  if (!padding || !out.requires_grad()) return out;
  // The same values, but no gradient for the padding row.
  return where(index.eq(*padding).unsqueeze(-1), out.detach(), out);
}

void Embedding::reset_parameters() { refill(weight, fill_weight()); }

std::string Embedding::extra_repr() const {
  std::string out = concat(num_embeddings(), ", ", embedding_dim());
  if (padding_idx()) out += concat(", padding_idx=", *padding_idx());
  return out;
}

}  // namespace kiln::nn
