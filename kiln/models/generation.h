// generate: what a language model writes behind prompts.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "kiln/core/random.h"
#include "kiln/tensor/tensor.h"

namespace kiln::models {

// Keys and values of each layer, [N, heads, length, features]. What a layer has room for doubles
// when it is full, so that a step costs what it adds.
class KeyValueCache {
 public:
  // How many positions a layer keeps.
  int64_t length(size_t layer = 0) const;
  // Appends keys and values [N, heads, new, features] to a layer's; gives all of them. Layers come
  // in order.
  std::pair<Tensor, Tensor> update(size_t layer, const Tensor& key, const Tensor& value);
  // A layer's keys and values.
  std::pair<Tensor, Tensor> layer(size_t layer) const;

 private:
  struct Layer {
    Tensor key, value;
    int64_t length;
  };
  std::vector<Layer> layers_;
};

struct GenerateOptions {
  int64_t max_new_tokens = 20;
  int64_t min_new_tokens = 0;  // no end before
  bool do_sample = false;      // draw tokens; otherwise the likeliest is taken
  double temperature = 1.0;    // divides the logits
  int64_t top_k = 0;           // draw from the k likeliest; 0: from all
  double top_p = 1.0;          // draw from the likeliest that together have this probability
  double repetition_penalty =
      1.0;  // above 1: what has occurred is less likely (Keskar et al., 2019)
  std::vector<int64_t> eos_token_id = {};       // these end a row
  std::vector<std::vector<int64_t>> stop = {};  // and these sequences
  int64_t pad_token_id = 0;                     // what rows that have ended get
  bool use_cache = true;                        // keep what was computed for earlier positions
  std::optional<uint64_t> seed = {};            // of the draws; without one those of the process
  std::function<void(const Tensor&)> on_step = {};  // called with each step's tokens [N]
};

// One step of a model: the new tokens [N, T], the mask [N, all] (0 at padding), the tokens'
// positions [N, T], the cache or null -> the last position's logits [N, V].
using GenerationStep = std::function<Tensor(const Tensor& ids, const Tensor& mask,
                                            const Tensor& positions, KeyValueCache* cache)>;

// The prompts and what the model writes behind them, [N, length]. Shorter prompts get padding
// before them. Throws ValueError for an impossible option and for an empty prompt.
Tensor generate(const GenerationStep& step, const std::vector<std::vector<int64_t>>& prompts,
                const GenerateOptions& options = {});

// (mask, is_causal) for attention of the last `queries` of `keys` positions, each to itself and
// those before it; attention_mask [N, keys] (or undefined) is 0 where nobody may look.
std::pair<Tensor, bool> causal_mask(const Tensor& attention_mask, int64_t queries, int64_t keys,
                                    const Device& device);

}  // namespace kiln::models
