// RNN, LSTM and GRU (Elman, 1990; Hochreiter & Schmidhuber, 1997; Cho et al., 2014) over whole
// sequences, and one step of each as a cell.
//
// Sequences are [T, N, input_size] ([N, T, input_size] with batch_first), [T, input_size] without a
// batch, or packed. Results are the last layer's hidden states of all steps [T, N, D H], with D
// directions, and each layer's at the end [layers D, N, H]. A state that is left out is zero. The
// product of the input with its weights is one for all steps.
//
// Parameters have PyTorch's names: weight_ih_l0 [gates H, input], weight_hh_l0 [gates H, H],
// bias_ih_l0, bias_hh_l0, and weight_ih_l0_reverse, ... for the other direction. All start uniform
// within 1 / sqrt(hidden_size).
//
// Variants, which PyTorch lacks: states that are clipped after each step, coupled gates, a reset
// gate before the product, other activations (tanh, relu, sigmoid, hardsigmoid, hardtanh, softsign,
// softplus, elu, gelu, leaky_relu, silu, identity). They go step by step, without a kernel.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kiln/nn/layer.h"
#include "kiln/nn/packed_sequence.h"
#include "kiln/nn/real.h"
#include "kiln/nn/recurrent_steps.h"
#include "kiln/tensor/tensor.h"

namespace kiln::nn {

struct RNNConfig {
  Required<int64_t> input_size = {};
  Required<int64_t> hidden_size = {};
  int64_t num_layers = 1;
  std::string nonlinearity = "tanh";  // or relu
  bool bias = true;
  bool batch_first = false;
  Real dropout = 0.0;  // in training, of what all layers but the last give
  bool bidirectional = false;
  std::optional<Real> clip = {};                      // hidden states stay within [-clip, clip]
  std::optional<std::string> hidden_activation = {};  // in place of the nonlinearity
  KILN_CONFIG(RNNConfig, input_size, hidden_size, num_layers, doc(nonlinearity, "tanh or relu"),
              bias, doc(batch_first, "[N, T, ..] instead of [T, N, ..]"),
              doc(dropout, "of what all layers but the last give"), bidirectional,
              doc(clip, "hidden states stay within [-clip, clip]"),
              doc(hidden_activation, "another function in place of the nonlinearity, by its name"))
};
struct GRUConfig {
  Required<int64_t> input_size = {};
  Required<int64_t> hidden_size = {};
  int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;
  Real dropout = 0.0;  // in training, of what all layers but the last give
  bool bidirectional = false;
  bool reset_after = true;                  // false: the reset gate scales h before its product
  std::string gate_activation = "sigmoid";  // of r and z
  std::string hidden_activation = "tanh";   // of n
  std::optional<Real> clip = {};            // hidden states stay within [-clip, clip]
  KILN_CONFIG(GRUConfig, input_size, hidden_size, num_layers, bias,
              doc(batch_first, "[N, T, ..] instead of [T, N, ..]"),
              doc(dropout, "of what all layers but the last give"), bidirectional,
              doc(reset_after,
                  "False: the reset gate scales h before the product with its weights"),
              doc(gate_activation, "of r and z"), doc(hidden_activation, "of n"),
              doc(clip, "hidden states stay within [-clip, clip]"))
};
struct LSTMConfig {
  Required<int64_t> input_size = {};
  Required<int64_t> hidden_size = {};
  int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;
  Real dropout = 0.0;  // in training, of what all layers but the last give
  bool bidirectional = false;
  int64_t proj_size = 0;          // > 0: hidden states are projected to that size (weight_hr_l0)
  std::optional<Real> clip = {};  // cell states stay within [-clip, clip]
  bool input_forget = false;      // f = 1 - i: the forget gate's weights are not used
  std::string gate_activation = "sigmoid";  // of i, f and o
  std::string cell_activation = "tanh";     // of g
  std::string hidden_activation = "tanh";   // of c'
  KILN_CONFIG(LSTMConfig, input_size, hidden_size, num_layers, bias,
              doc(batch_first, "[N, T, ..] instead of [T, N, ..]"),
              doc(dropout, "of what all layers but the last give"), bidirectional,
              doc(proj_size, "> 0: hidden states are projected to that size"),
              doc(clip, "cell states stay within [-clip, clip]"),
              doc(input_forget, "f = 1 - i: the forget gate's weights are not used"),
              doc(gate_activation, "of i, f and o"), doc(cell_activation, "of g"),
              doc(hidden_activation, "of c'"))
};

namespace detail {

// What the three have in common. The configurations read as one.
struct RecurrentOptions {
  const char* name;  // of the class
  int64_t gates;     // 1, 3 or 4
  int64_t input_size, hidden_size, num_layers;
  bool bias, batch_first, bidirectional;
  Real dropout;
  int64_t proj_size = 0;
  bool relu = false;
  RecurrentVariant variant = {};

  int64_t directions() const { return bidirectional ? 2 : 1; }
  int64_t state_size() const { return proj_size > 0 ? proj_size : hidden_size; }
};
RecurrentOptions recurrent_options(const RNNConfig& config);
RecurrentOptions recurrent_options(const GRUConfig& config);
RecurrentOptions recurrent_options(const LSTMConfig& config);

}  // namespace detail

template <class ConfigType>
class RecurrentLayer : public Layer<ConfigType> {
 public:
  void visit_members(MemberVisitor& visitor) override;
  void reset_parameters();
  std::string extra_repr() const override;
  // In the order of the state dict.
  const std::vector<Param<Tensor>>& weights() const { return weights_; }

 protected:
  RecurrentLayer(ConfigType config, const ParamOptions& param_options);
  // `cell` in and out for the LSTM alone.
  struct Result {
    Tensor output, hidden, cell;
  };
  Result run(const Tensor& x, const Tensor& hidden, const Tensor& cell) const;
  Result run(const PackedSequence& x, const Tensor& hidden, const Tensor& cell) const;

 private:
  std::vector<Tensor> values() const;

  std::vector<Param<Tensor>> weights_;
};
extern template class RecurrentLayer<RNNConfig>;
extern template class RecurrentLayer<GRUConfig>;
extern template class RecurrentLayer<LSTMConfig>;

// h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu.
class RNN : public RecurrentLayer<RNNConfig> {
 public:
  explicit RNN(RNNConfig config, const ParamOptions& param_options = {});
  KILN_MODULE_DECLARED_WITHOUT_VISIT(RNN)
  std::pair<Tensor, Tensor> forward(const Tensor& x, const Tensor& h0 = {}) const;
  std::pair<PackedSequence, Tensor> forward(const PackedSequence& x, const Tensor& h0 = {}) const;
};

// r, z = sigmoid(..), n = tanh(W_in x + b_in + r (W_hn h + b_hn)), h' = (1 - z) n + z h.
class GRU : public RecurrentLayer<GRUConfig> {
 public:
  explicit GRU(GRUConfig config, const ParamOptions& param_options = {});
  KILN_MODULE_DECLARED_WITHOUT_VISIT(GRU)
  std::pair<Tensor, Tensor> forward(const Tensor& x, const Tensor& h0 = {}) const;
  std::pair<PackedSequence, Tensor> forward(const PackedSequence& x, const Tensor& h0 = {}) const;
};

// The hidden and the cell state. forward takes them as a std::tuple, too.
using LSTMState = std::pair<Tensor, Tensor>;

// i, f, o = sigmoid(..), g = tanh(..), c' = f c + i g, h' = o tanh(c').
class LSTM : public RecurrentLayer<LSTMConfig> {
 public:
  explicit LSTM(LSTMConfig config, const ParamOptions& param_options = {});
  KILN_MODULE_DECLARED_WITHOUT_VISIT(LSTM)
  std::pair<Tensor, LSTMState> forward(const Tensor& x,
                                       const std::optional<LSTMState>& state = {}) const;
  std::pair<PackedSequence, LSTMState> forward(const PackedSequence& x,
                                               const std::optional<LSTMState>& state = {}) const;
  template <class X>
    requires std::same_as<X, Tensor> || std::same_as<X, PackedSequence>
  std::pair<X, LSTMState> forward(const X& x, const std::tuple<Tensor, Tensor>& state) const {
    return forward(x, std::optional(std::make_from_tuple<LSTMState>(state)));
  }
};

// ---- One step: x [N, input_size] or [input_size], states [N, hidden_size] or [hidden_size]

struct RNNCellConfig {
  Required<int64_t> input_size = {};
  Required<int64_t> hidden_size = {};
  bool bias = true;
  std::string nonlinearity = "tanh";  // or relu
  KILN_CONFIG(RNNCellConfig, input_size, hidden_size, bias, doc(nonlinearity, "tanh or relu"))
};
struct RecurrentCellConfig {
  Required<int64_t> input_size = {};
  Required<int64_t> hidden_size = {};
  bool bias = true;
  KILN_CONFIG(RecurrentCellConfig, input_size, hidden_size, bias)
};

template <class ConfigType>
class RecurrentCell : public Layer<ConfigType> {
 public:
  Param<Tensor> weight_ih;  // [gates hidden_size, input_size]
  Param<Tensor> weight_hh;  // [gates hidden_size, hidden_size]
  Param<Tensor> bias_ih;    // [gates hidden_size]
  Param<Tensor> bias_hh;    // [gates hidden_size]

  void reset_parameters();
  std::string extra_repr() const override;

 protected:
  RecurrentCell(const char* name, int64_t gates, ConfigType config,
                const ParamOptions& param_options);
  // The next hidden and cell state, with a batch.
  LSTMState step(const Tensor& x, const Tensor& hidden, const Tensor& cell) const;

 private:
  const char* name_;
  int64_t gates_;
};
extern template class RecurrentCell<RNNCellConfig>;
extern template class RecurrentCell<RecurrentCellConfig>;

class RNNCell : public RecurrentCell<RNNCellConfig> {
 public:
  explicit RNNCell(RNNCellConfig config, const ParamOptions& param_options = {});
  KILN_MODULE_DECLARED(RNNCell)
  Tensor forward(const Tensor& x, const Tensor& hidden = {}) const;
};

class GRUCell : public RecurrentCell<RecurrentCellConfig> {
 public:
  explicit GRUCell(RecurrentCellConfig config, const ParamOptions& param_options = {});
  KILN_MODULE_DECLARED(GRUCell)
  Tensor forward(const Tensor& x, const Tensor& hidden = {}) const;
};

class LSTMCell : public RecurrentCell<RecurrentCellConfig> {
 public:
  explicit LSTMCell(RecurrentCellConfig config, const ParamOptions& param_options = {});
  KILN_MODULE_DECLARED(LSTMCell)
  LSTMState forward(const Tensor& x, const std::optional<LSTMState>& state = {}) const;
  template <std::same_as<Tensor> X>
  LSTMState forward(const X& x, const std::tuple<Tensor, Tensor>& state) const {
    return forward(x, std::optional(std::make_from_tuple<LSTMState>(state)));
  }
};

}  // namespace kiln::nn
