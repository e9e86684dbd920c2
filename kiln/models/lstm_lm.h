// A language model of recurrent layers, with the keys of PyTorch's word-level example.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "kiln/models/generation.h"
#include "kiln/nn/embedding.h"
#include "kiln/nn/linear.h"
#include "kiln/nn/recurrent.h"

namespace kiln::models {

struct LSTMLanguageModelOptions {
  int64_t ntoken = 0;
  int64_t ninp = 0;
  int64_t nhid = 0;
  int64_t nlayers = 1;
  double dropout = 0.5;
  bool tie_weights = false;  // the last layer's matrix is the embedding's
};

// Token ids [N, T] -> logits [N, T, ntoken] of each next token, and the state behind them.
class LSTMLanguageModel : public nn::Module {
 public:
  explicit LSTMLanguageModel(const LSTMLanguageModelOptions& options);
  nn::Embedding encoder;
  nn::LSTM rnn;
  nn::Linear decoder;
  KILN_MODULE_DECLARED(LSTMLanguageModel)
  std::pair<Tensor, nn::LSTMState> forward(const Tensor& ids,
                                           const std::optional<nn::LSTMState>& state = {});
  // The prompts and what the model writes behind them. Padding changes no state.
  Tensor generate(const std::vector<std::vector<int64_t>>& prompts,
                  const GenerateOptions& options = {});

 private:
  double dropout_;
};

}  // namespace kiln::models
