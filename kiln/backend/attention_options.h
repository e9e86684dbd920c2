// The parameters of attention.
#pragma once

#include "kiln/core/random.h"

namespace kiln {

// Scaled dot-product attention (float_attention in ops.def).
struct AttentionOptions {
  double scale = 1.0;    // of the products of queries and keys
  bool causal = false;   // query l sees keys 0..l
  double dropout = 0.0;  // probability, in [0, 1): weights [N, H, L, S] go through float_dropout
  RandomStream stream = {};  // ... with this stream
};

}  // namespace kiln
