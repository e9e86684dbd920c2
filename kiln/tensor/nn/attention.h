// Scaled dot-product attention.
#pragma once

#include <optional>

#include "kiln/tensor/tensor.h"

namespace kiln::functional {

// softmax(scale query key^T + mask) value, without the matrix of scores in memory, in time and with
// gradients like PyTorch's function of this name (Vaswani et al., 2017; Dao et al., 2022):
//   query [.., L, E], key [.., S, E], value [.., S, V] -> [.., L, V], leading dims broadcast.
// attn_mask, undefined or broadcast to [.., L, S]: bool (true takes part) or the query's dtype
// (added
//   to the scores). A query that sees no key gives 0. A mask that requires a gradient gets one, by
//   way of the matrix of scores.
// dropout_p zeroes weights with this probability, always: pass 0 in evaluation.
// is_causal lets query l see keys 0..l only; not together with attn_mask.
// scale is 1 / sqrt(E) when absent.
// enable_gqa lets each head of key and value (dim -3) serve several heads of query, whose number it
//   must divide.
// Throws ShapeError, DTypeError, DeviceError, ValueError.
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask = {}, double dropout_p = 0.0,
                                    bool is_causal = false, std::optional<double> scale = {},
                                    bool enable_gqa = false);

}  // namespace kiln::functional
