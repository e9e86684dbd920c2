#include "kiln/nn/embedding.h"

#include "kiln/core/error.h"
#include "kiln/nn/init.h"
#include "kiln/nn/repr.h"
#include "kiln/tensor/nn/embedding.h"

namespace kiln::nn {

namespace {

void check_table(const char* name, int64_t rows, int64_t dim, std::optional<int64_t>& padding) {
  if (rows < 0 || dim < 0) {
    throw_error<ValueError>(name, ": sizes must not be negative; got num_embeddings ", rows,
                            " and embedding_dim ", dim);
  }
  if (!padding) return;
  if (*padding >= rows || *padding < -rows) {
    throw_error<ValueError>(name, ": padding_idx must be within num_embeddings; got ", *padding,
                            " for ", rows);
  }
  if (*padding < 0) *padding += rows;
}

Param<Tensor> given_table(const char* name, const Tensor& table, int64_t rows, int64_t dim) {
  if (table.shape() != Shape{rows, dim}) {
    throw_error<ValueError>(name, ": _weight does not fit num_embeddings and embedding_dim; got ",
                            "shape ", table.shape(), "; expected ", Shape{rows, dim});
  }
  return Param<Tensor>::from_tensor(table);
}

std::function<void(Tensor&)> fill_table(std::optional<int64_t> padding) {
  return [padding](Tensor& x) {
    init::normal_(x);
    if (padding) x.detach().select(0, *padding).zero_();
  };
}

// The row for padding stays zero, whatever fills the table.
ParamOptions with_padding(ParamOptions options, std::optional<int64_t> padding) {
  if (options.initializer && padding) {
    options.initializer = [fill = std::move(options.initializer), padding](Tensor& x) {
      fill(x);
      x.detach().select(0, *padding).zero_();
    };
  }
  return options;
}

// "max_norm=1.0, norm_type=3.0" and the like, each behind a comma.
template <class Options>
std::string common_repr(const Options& o) {
  using detail::repr;
  std::string out;
  if (o.max_norm) out += ", max_norm=" + repr(*o.max_norm);
  if (double(o.norm_type) != 2.0) out += ", norm_type=" + repr(o.norm_type);
  if (o.scale_grad_by_freq) out += ", scale_grad_by_freq=True";
  return out;
}

std::optional<double> number(const std::optional<Real>& x) {
  return x ? std::optional<double>(*x) : std::nullopt;
}

}  // namespace

Embedding::Embedding(EmbeddingConfig config, const ParamOptions& param_options)
    : Layer(std::move(config)) {
  const int64_t rows = num_embeddings(), dim = embedding_dim();
  check_table("Embedding", rows, dim, config_.options.padding_idx);
  if (const Tensor table = std::exchange(config_.options._weight, {}); table.defined()) {
    weight = given_table("Embedding", table, rows, dim);
  } else {
    weight = parameter({rows, dim}, fill_weight(), with_padding(param_options, padding_idx()));
  }
  if (config_.options._freeze) weight.set_require_grad(false);
}

std::function<void(Tensor&)> Embedding::fill_weight() const { return fill_table(padding_idx()); }

Tensor Embedding::forward(const Tensor& index) const {
  const EmbeddingOptions& o = config_.options;
  const std::optional<int64_t> padding = padding_idx();
  if (o.max_norm || o.scale_grad_by_freq) {
    return functional::embedding(index, weight, padding, number(o.max_norm), o.norm_type,
                                 o.scale_grad_by_freq);
  }
  Tensor out = functional::embedding(index, weight);
  if (!padding || !out.requires_grad()) return out;
  // The same values, but no gradient for the padding row.
  return where(index.eq(*padding).unsqueeze(-1), out.detach(), out);
}

void Embedding::reset_parameters() { refill(weight, fill_weight()); }

std::string Embedding::extra_repr() const {
  const EmbeddingOptions& o = config_.options;
  std::string out = concat(num_embeddings(), ", ", embedding_dim());
  if (padding_idx()) out += concat(", padding_idx=", *padding_idx());
  return out + common_repr(o) + (o.sparse ? ", sparse=True" : "");
}

EmbeddingBag::EmbeddingBag(EmbeddingBagConfig config, const ParamOptions& param_options)
    : Layer(std::move(config)) {
  const int64_t rows = config_.num_embeddings, dim = config_.embedding_dim;
  check_table("EmbeddingBag", rows, dim, config_.padding_idx);
  if (const Tensor table = std::exchange(config_._weight, {}); table.defined()) {
    weight = given_table("EmbeddingBag", table, rows, dim);
  } else {
    weight = parameter({rows, dim}, fill_table(config_.padding_idx),
                       with_padding(param_options, config_.padding_idx));
  }
}

Tensor EmbeddingBag::forward(const Tensor& index, const Tensor& offsets,
                             const Tensor& per_sample_weights) const {
  functional::EmbeddingBagOptions o;
  o.max_norm = number(config_.max_norm);
  o.norm_type = config_.norm_type;
  o.scale_grad_by_freq = config_.scale_grad_by_freq;
  o.mode = config_.mode;
  o.per_sample_weights = per_sample_weights;
  o.include_last_offset = config_.include_last_offset;
  o.padding_idx = config_.padding_idx;
  return functional::embedding_bag(index, weight, offsets, o);
}

void EmbeddingBag::reset_parameters() { refill(weight, fill_table(config_.padding_idx)); }

std::string EmbeddingBag::extra_repr() const {
  const char* const mode = config_.mode == EmbeddingBagMode::sum    ? "sum"
                           : config_.mode == EmbeddingBagMode::mean ? "mean"
                                                                    : "max";
  std::string out = concat(config_.num_embeddings.value(), ", ", config_.embedding_dim.value(),
                           common_repr(config_), ", mode='", mode, "'");
  if (config_.padding_idx) out += concat(", padding_idx=", *config_.padding_idx);
  return out;
}

KILN_MODULE_DEFINED(EmbeddingBag, weight)
KILN_MODULE_DEFINED(Embedding, weight)

}  // namespace kiln::nn
