#include "kiln/nn/transformer_encoder_layer.h"

#include "kiln/core/error.h"

namespace kiln::nn {

TransformerEncoderLayer::TransformerEncoderLayer(int64_t d_model, int64_t nhead,
                                                 const TransformerEncoderLayerOptions& o,
                                                 const ParamOptions& param_options)
    : self_attn(d_model, nhead,
                {.dropout = o.dropout, .bias = o.bias, .batch_first = o.batch_first},
                param_options),
      linear1(d_model, o.dim_feedforward, o.bias, param_options),
      dropout(o.dropout),
      linear2(o.dim_feedforward, d_model, o.bias, param_options),
      norm1(d_model, {.eps = o.layer_norm_eps, .bias = o.bias}, param_options),
      norm2(d_model, {.eps = o.layer_norm_eps, .bias = o.bias}, param_options),
      dropout1(o.dropout),
      dropout2(o.dropout),
      norm_first_(o.norm_first),
      gelu_(o.activation == "gelu") {
  if (o.activation != "relu" && o.activation != "gelu") {
    throw_error<ValueError>("TransformerEncoderLayer: the activation is unknown; got '",
                            o.activation, "'; expected 'relu' or 'gelu'");
  }
}
TransformerEncoderLayer::TransformerEncoderLayer(const Config& config,
                                                 const ParamOptions& param_options)
    : TransformerEncoderLayer(int64_t{kiln::detail::with_required(config).d_model},
                              int64_t{kiln::detail::with_required(config).nhead}, config.options,
                              param_options) {}

Tensor TransformerEncoderLayer::attend(const Tensor& x, const Tensor& mask, const Tensor& padding,
                                       bool is_causal) {
  const MultiheadAttentionCall call{.key_padding_mask = padding,
                                    .need_weights = false,
                                    .attn_mask = mask,
                                    .is_causal = is_causal && !mask.defined()};
  return dropout1(self_attn(x, x, x, call).first);
}

// Of a normalized x, plus `residual`. What hooks are shown is what PyTorch shows them: a linear
// layer takes part in the activation or the sum only where it has none.
Tensor TransformerEncoderLayer::feed_forward(const Tensor& x, const Tensor& residual) {
  using functional::LinearOptions;
  const Activation activation = gelu_ ? Activation::gelu : Activation::relu;
  const Tensor hidden =
      dropout(linear1.has_forward_hooks() ? functional::activate(linear1(x), activation)
                                          : linear1(x, LinearOptions{activation, {}}));
  const bool drops = dropout2.is_training() && dropout2.p() > 0;
  if (drops || linear2.has_forward_hooks() || dropout2.has_forward_hooks()) {
    return residual + dropout2(linear2(hidden));
  }
  return linear2(hidden, LinearOptions{Activation::none, residual});
}

Tensor TransformerEncoderLayer::forward(const Tensor& src, const Tensor& src_mask,
                                        const Tensor& src_key_padding_mask, bool is_causal) {
  if (norm_first_) {
    const Tensor x = src + attend(norm1(src), src_mask, src_key_padding_mask, is_causal);
    return feed_forward(norm2(x), x);
  }
  const Tensor x = norm1(src + attend(src, src_mask, src_key_padding_mask, is_causal));
  return norm2(feed_forward(x, x));
}

KILN_MODULE_DEFINED(TransformerEncoderLayer, self_attn, linear1, dropout, linear2, norm1, norm2,
                    dropout1, dropout2)

}  // namespace kiln::nn
