#include "kiln/models/lstm_lm.h"

#include "kiln/core/error.h"
#include "kiln/models/language_support.h"
#include "kiln/nn/init.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/nn/dropout.h"
#include "kiln/tensor/ops.h"

namespace kiln::models {

LSTMLanguageModel::LSTMLanguageModel(const LSTMLanguageModelOptions& o)
    : encoder(o.ntoken, o.ninp),
      rnn({.input_size = o.ninp,
           .hidden_size = o.nhid,
           .num_layers = o.nlayers,
           .batch_first = true,
           .dropout = o.nlayers > 1 ? o.dropout : 0.0}),
      decoder(o.nhid, o.ntoken),
      dropout_(o.dropout) {
  require_at_least_one(
      "LSTMLanguageModel",
      {{"ntoken", o.ntoken}, {"ninp", o.ninp}, {"nhid", o.nhid}, {"nlayers", o.nlayers}});
  const auto uniform = [](Tensor& x) { nn::init::uniform_(x, -0.1, 0.1); };
  encoder.weight = nn::parameter({o.ntoken, o.ninp}, uniform);
  decoder.weight = nn::parameter({o.ntoken, o.nhid}, uniform);
  decoder.bias = nn::parameter({o.ntoken}, nn::init::zeros_);
  if (o.tie_weights) {
    if (o.nhid != o.ninp) {
      throw_error<ValueError>("LSTMLanguageModel: tie_weights needs nhid equal to ninp; got ",
                              o.nhid, " and ", o.ninp);
    }
    nn::tie_weights(decoder.weight, encoder.weight);
  }
}

std::pair<Tensor, nn::LSTMState> LSTMLanguageModel::forward(
    const Tensor& ids, const std::optional<nn::LSTMState>& state) {
  check_input_ids("LSTMLanguageModel", ids);
  const Tensor x = functional::dropout(encoder(ids), dropout_, is_training());
  auto [y, last] = rnn(x, state);
  return {decoder(functional::dropout(y, dropout_, is_training())), last};
}

Tensor LSTMLanguageModel::generate(const std::vector<std::vector<int64_t>>& prompts,
                                   const GenerateOptions& options) {
  std::optional<nn::LSTMState> state;
  const auto step = [&](const Tensor& ids, const Tensor& mask, const Tensor&,
                        KeyValueCache* cache) {
    if (cache == nullptr) state.reset();
    // The mask has all positions, ids those that are new.
    const int64_t length = ids.size(1), past = mask.size(1) - length;
    if (mask.ne(0).all().item<bool>() || past > 0) {
      auto [logits, last] = forward(ids, state);
      state = last;
      return logits.select(1, -1);
    }
    Tensor logits;
    for (int64_t t = 0; t < length; ++t) {
      const auto [y, next] = forward(ids.narrow(1, t, 1), state);
      const Tensor present = mask.narrow(1, t, 1).ne(0);  // [N, 1], beside states [layers, N, ..]
      const auto kept = [&](const Tensor& a, const Tensor& before) {
        return where(present, a, before);
      };
      state = state
                  ? nn::LSTMState(kept(next.first, state->first), kept(next.second, state->second))
                  : nn::LSTMState(kept(next.first, zeros_like(next.first)),
                                  kept(next.second, zeros_like(next.second)));
      logits = y.select(1, -1);
    }
    return logits;
  };
  return models::generate(step, prompts, options);
}
KILN_MODULE_DEFINED(LSTMLanguageModel, encoder, rnn, decoder)

}  // namespace kiln::models
