#include "kiln/models/lstm_lm.h"

#include "kiln/core/error.h"
#include "kiln/models/language_support.h"
#include "kiln/nn/init.h"
#include "kiln/tensor/nn/dropout.h"

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
KILN_MODULE_DEFINED(LSTMLanguageModel, encoder, rnn, decoder)

}  // namespace kiln::models
