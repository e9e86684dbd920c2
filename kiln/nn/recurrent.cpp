#include "kiln/nn/recurrent.h"

#include <cmath>

#include "kiln/core/error.h"
#include "kiln/nn/init.h"
#include "kiln/nn/recurrent_steps.h"
#include "kiln/nn/repr.h"
#include "kiln/tensor/amp/autocast.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/nn/recurrence.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

using detail::RecurrentOptions;
using detail::RecurrentVariant;
using detail::RecurrentWeights;
using detail::repr;

namespace {

template <class Config>
RecurrentVariant variant_of(const Config& c) {
  RecurrentVariant out;
  if (c.clip) out.clip = double(*c.clip);
  if constexpr (requires { c.nonlinearity; }) {
    out.hidden = c.hidden_activation.value_or(c.nonlinearity == "relu" ? "relu" : "tanh");
  } else {
    out.gate = c.gate_activation;
    out.hidden = c.hidden_activation;
  }
  if constexpr (requires { c.reset_after; }) out.reset_after = c.reset_after;
  if constexpr (requires { c.input_forget; }) {
    out.input_forget = c.input_forget;
    out.cell = c.cell_activation;
  }
  return out;
}

// What no name stands for is checked where the layer is made, and at each call, for options may
// change.
void check_variant(const RecurrentOptions& o) {
  const RecurrentVariant& v = o.variant;
  if (v.clip && !(*v.clip > 0.0)) {
    throw_error<ValueError>(o.name, ": clip must be positive; got ", repr(*v.clip));
  }
  const std::pair<const char*, const std::string*> activations[] = {
      {"gate_activation", &v.gate}, {"cell_activation", &v.cell}, {"hidden_activation", &v.hidden}};
  for (const auto& [what, name] : activations) {
    if (detail::recurrent_activation(*name) != nullptr) continue;
    throw_error<ValueError>(o.name, ": unknown ", what, " '", *name, "'; expected one of ",
                            detail::recurrent_activation_names());
  }
}

template <class Config>
RecurrentOptions common_options(const char* name, int64_t gates, const Config& c) {
  return {.name = name,
          .gates = gates,
          .input_size = c.input_size,
          .hidden_size = c.hidden_size,
          .num_layers = c.num_layers,
          .bias = c.bias,
          .batch_first = c.batch_first,
          .bidirectional = c.bidirectional,
          .dropout = c.dropout,
          .variant = variant_of(c)};
}

void check(const RecurrentOptions& o) {
  if (o.input_size < 1 || o.hidden_size < 1 || o.num_layers < 1) {
    throw_error<ValueError>(o.name, ": sizes must be at least 1; got input_size ", o.input_size,
                            ", hidden_size ", o.hidden_size, ", num_layers ", o.num_layers);
  }
  if (o.num_layers > 10000) {
    throw_error<ValueError>(o.name, ": num_layers must be at most 10000; got ", o.num_layers);
  }
  const double p = o.dropout;
  if (!(p >= 0.0 && p <= 1.0)) {
    throw_error<ValueError>(o.name, ": dropout must be between 0 and 1; got ", repr(o.dropout));
  }
  if (o.proj_size < 0 || o.proj_size >= o.hidden_size) {
    throw_error<ValueError>(o.name,
                            ": proj_size must be less than hidden_size, and 0 or more; got ",
                            o.proj_size, " for hidden_size ", o.hidden_size);
  }
  check_variant(o);
}

std::function<void(Tensor&)> fill(int64_t hidden_size) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(hidden_size));
  return [bound](Tensor& x) { init::uniform_(x, -bound, bound); };
}

// How many parameters one direction of one layer has.
size_t parts(const RecurrentOptions& o) {
  return 2u + (o.bias ? 2u : 0u) + (o.proj_size > 0 ? 1u : 0u);
}

// Calls f(name, shape) for each parameter, in the order of the state dict.
template <class F>
void for_each_weight(const RecurrentOptions& o, const F& f) {
  const int64_t rows = o.gates * o.hidden_size;
  for (int64_t layer = 0; layer < o.num_layers; ++layer) {
    const int64_t inputs = layer == 0 ? o.input_size : o.state_size() * o.directions();
    for (int64_t d = 0; d < o.directions(); ++d) {
      const std::string end = concat("_l", layer, d == 1 ? "_reverse" : "");
      f("weight_ih" + end, Shape{rows, inputs});
      f("weight_hh" + end, Shape{rows, o.state_size()});
      if (o.bias) {
        f("bias_ih" + end, Shape{rows});
        f("bias_hh" + end, Shape{rows});
      }
      if (o.proj_size > 0) f("weight_hr" + end, Shape{o.proj_size, o.hidden_size});
    }
  }
}

void check_state(const RecurrentOptions& o, const char* what, const Tensor& state, int64_t batch,
                 int64_t size) {
  const Shape expected{o.num_layers * o.directions(), batch, size};
  if (state.shape() == expected) return;
  throw_error<ShapeError>(o.name, ": the ", what, " state does not fit; got shape ", state.shape(),
                          "; expected ", expected);
}

// What the kernels cannot compute: of an RNN they know relu besides tanh.
RecurrentVariant kernel_variant(const RecurrentOptions& o) {
  RecurrentVariant out = o.variant;
  if (o.relu && !out.clip) out.hidden = RecurrentVariant().hidden;
  return out;
}

// `x`: what the user gave.
void check_features(const RecurrentOptions& o, const Tensor& x) {
  if (x.size(-1) == o.input_size) return;
  throw_error<ShapeError>(o.name, ": the input's last dim must be input_size; got ", x.size(-1),
                          " in an input of shape ", x.shape(), "; expected ", o.input_size);
}

// All layers over data [all steps, input_size].
struct Run {
  Tensor output, hidden, cell;
};
Run run_layers(const RecurrentOptions& o, bool training, const std::vector<Tensor>& weights,
               const Tensor& data, const std::vector<int64_t>& batch_sizes, const Tensor& h0,
               const Tensor& c0) {
  check_variant(o);
  const size_t each = parts(o);
  if (weights.size() != each * static_cast<size_t>(o.num_layers * o.directions())) {
    throw_error<ValueError>(o.name, ": the options do not fit the parameters; got ", weights.size(),
                            " parameters");
  }
  const int64_t batch = batch_sizes[0];
  const TensorOptions like{data.dtype(), data.device()};
  const int64_t rows = o.num_layers * o.directions();
  const Tensor hidden = h0.defined() ? h0 : zeros({rows, batch, o.state_size()}, like);
  check_state(o, "hidden", hidden, batch, o.state_size());
  Tensor cells = c0;
  if (o.gates == 4) {
    if (!cells.defined()) cells = zeros({rows, batch, o.hidden_size}, like);
    check_state(o, "cell", cells, batch, o.hidden_size);
  }
  Tensor x = data;
  std::vector<Tensor> last_hidden, last_cells;
  for (int64_t layer = 0; layer < o.num_layers; ++layer) {
    std::vector<Tensor> out;
    for (int64_t d = 0; d < o.directions(); ++d) {
      const int64_t row = layer * o.directions() + d;
      const Tensor* w = &weights[each * static_cast<size_t>(row)];
      RecurrentWeights of{w[0], w[1], {}, {}, {}};
      if (o.bias) {
        of.b_ih = w[2];
        of.b_hh = w[3];
      }
      if (o.proj_size > 0) of.w_hr = w[each - 1];
      Tensor h = hidden.select(0, row);
      Tensor c = cells.defined() ? cells.select(0, row) : Tensor();
      out.push_back(detail::recurrent_sequence(o.gates, o.relu, d == 1, x, batch_sizes, h, c, of,
                                               kernel_variant(o)));
      last_hidden.push_back(h);
      last_cells.push_back(c);
    }
    x = out.size() == 1 ? out[0] : cat(out, -1);
    if (training && double(o.dropout) > 0.0 && layer + 1 < o.num_layers) {
      x = functional::dropout(x, o.dropout, true);
    }
  }
  return {x, stack(last_hidden, 0), o.gates == 4 ? stack(last_cells, 0) : Tensor()};
}

}  // namespace

RecurrentOptions detail::recurrent_options(const RNNConfig& config) {
  RecurrentOptions out = common_options("RNN", 1, config);
  out.relu = out.variant.hidden == "relu";
  return out;
}
RecurrentOptions detail::recurrent_options(const GRUConfig& config) {
  return common_options("GRU", 3, config);
}
RecurrentOptions detail::recurrent_options(const LSTMConfig& config) {
  RecurrentOptions out = common_options("LSTM", 4, config);
  out.proj_size = config.proj_size;
  return out;
}

// ---- The layers

template <class ConfigType>
RecurrentLayer<ConfigType>::RecurrentLayer(ConfigType config, const ParamOptions& param_options)
    : Layer<ConfigType>(std::move(config)) {
  const RecurrentOptions o = detail::recurrent_options(this->config_);
  check(o);
  for_each_weight(o, [&](const std::string&, const Shape& shape) {
    weights_.push_back(parameter(shape, fill(o.hidden_size), param_options));
  });
}

template <class ConfigType>
void RecurrentLayer<ConfigType>::visit_members(MemberVisitor& visitor) {
  size_t i = 0;
  for_each_weight(detail::recurrent_options(this->config_),
                  [&](const std::string& name, const Shape&) {
                    if (i < weights_.size()) detail::visit_member(visitor, name, weights_[i++]);
                  });
}

template <class ConfigType>
void RecurrentLayer<ConfigType>::reset_parameters() {
  for (Param<Tensor>& weight : weights_) refill(weight, fill(this->config_.hidden_size));
}

template <class ConfigType>
std::string RecurrentLayer<ConfigType>::extra_repr() const {
  const RecurrentOptions o = detail::recurrent_options(this->config_);
  std::string out = concat(o.input_size, ", ", o.hidden_size);
  if (o.proj_size != 0) out += concat(", proj_size=", o.proj_size);
  if (o.num_layers != 1) out += concat(", num_layers=", o.num_layers);
  if (!o.bias) out += ", bias=False";
  if (o.batch_first) out += ", batch_first=True";
  if (double(o.dropout) != 0.0) out += ", dropout=" + repr(double(o.dropout));
  if (o.bidirectional) out += ", bidirectional=True";
  const RecurrentVariant& v = o.variant;
  const RecurrentVariant usual;
  if (v.clip) out += ", clip=" + repr(*v.clip);
  if (v.input_forget) out += ", input_forget=True";
  if (!v.reset_after) out += ", reset_after=False";
  if (v.gate != usual.gate) out += concat(", gate_activation=", v.gate);
  if (v.cell != usual.cell) out += concat(", cell_activation=", v.cell);
  if (v.hidden != usual.hidden && !o.relu) out += concat(", hidden_activation=", v.hidden);
  return out;
}

template <class ConfigType>
std::vector<Tensor> RecurrentLayer<ConfigType>::values() const {
  std::vector<Tensor> out;
  for (const Param<Tensor>& weight : weights_) out.push_back(weight.val());
  return out;
}

template <class ConfigType>
auto RecurrentLayer<ConfigType>::run(const Tensor& x, const Tensor& hidden,
                                     const Tensor& cell) const -> Result {
  const RecurrentOptions o = detail::recurrent_options(this->config_);
  if (x.dim() != 2 && x.dim() != 3) {
    throw_error<ShapeError>(o.name, ": expected input of 2 or 3 dims; got shape ", x.shape());
  }
  check_features(o, x);
  const bool batched = x.dim() == 3;
  const auto state = [&](const Tensor& s) {
    if (!s.defined()) return s;
    if (s.dim() != x.dim()) {
      throw_error<ShapeError>(o.name, ": input and state must both have a batch or both none; got ",
                              x.shape(), " and ", s.shape());
    }
    return batched ? s : s.unsqueeze(1);
  };
  Tensor steps = batched ? x : x.unsqueeze(1);  // [T, N, input]
  if (batched && o.batch_first) steps = steps.transpose(0, 1);
  const int64_t length = steps.size(0), batch = steps.size(1);
  if (length == 0) throw_error<ShapeError>(o.name, ": expected at least one step; got ", x.shape());
  const Run out = run_layers(o, this->is_training(), values(), steps.flatten(0, 1),
                             std::vector<int64_t>(static_cast<size_t>(length), batch),
                             state(hidden), state(cell));
  const Tensor y = out.output.reshape({length, batch, out.output.size(-1)});
  const auto result = [&](const Tensor& s) { return batched || !s.defined() ? s : s.squeeze(1); };
  return {!batched        ? y.squeeze(1)
          : o.batch_first ? y.transpose(0, 1)
                          : y,
          result(out.hidden), result(out.cell)};
}

template <class ConfigType>
auto RecurrentLayer<ConfigType>::run(const PackedSequence& x, const Tensor& hidden,
                                     const Tensor& cell) const -> Result {
  const RecurrentOptions o = detail::recurrent_options(this->config_);
  const std::vector<int64_t> batch_sizes = detail::batch_sizes_of(o.name, x);
  if (x.data.dim() != 2) {
    throw_error<ShapeError>(o.name, ": expected packed data of 2 dims; got shape ", x.data.shape());
  }
  check_features(o, x.data);
  const auto order = [&](const Tensor& s, const Tensor& indices) {
    return s.defined() && indices.defined() ? s.index_select(1, indices) : s;
  };
  const Run out = run_layers(o, this->is_training(), values(), x.data, batch_sizes,
                             order(hidden, x.sorted_indices), order(cell, x.sorted_indices));
  return {out.output, order(out.hidden, x.unsorted_indices), order(out.cell, x.unsorted_indices)};
}

template class RecurrentLayer<RNNConfig>;
template class RecurrentLayer<GRUConfig>;
template class RecurrentLayer<LSTMConfig>;

namespace {

PackedSequence like(const PackedSequence& x, const Tensor& data) {
  return {data, x.batch_sizes, x.sorted_indices, x.unsorted_indices};
}

bool has_one_length(const PackedSequence& x) {
  const std::vector<int64_t> sizes = detail::batch_sizes_of("LSTM", x);
  return sizes.front() == sizes.back();
}

// In a region of autocast products read its dtype, while states stay in f32. The results have
// PyTorch's dtypes: the region's where `always` says so or the input has it.
void lower_results(bool always, const Tensor& x, std::initializer_list<Tensor*> results) {
  const amp::AutocastState region = amp::autocast_state();
  if (!region.enabled || !(always || x.dtype() == region.dtype)) return;
  for (Tensor* result : results) {
    if (result->defined() && result->dtype() == f32) *result = result->to(region.dtype);
  }
}

void check_nonlinearity(const char* name, const std::string& word) {
  if (word != "tanh" && word != "relu") {
    throw_error<ValueError>(name, ": nonlinearity must be tanh or relu; got '", word, "'");
  }
}

}  // namespace

RNN::RNN(RNNConfig config, const ParamOptions& param_options)
    : RecurrentLayer(std::move(config), param_options) {
  check_nonlinearity("RNN", config_.nonlinearity);
}
std::pair<Tensor, Tensor> RNN::forward(const Tensor& x, const Tensor& h0) const {
  Result out = run(x, h0, {});
  lower_results(true, x, {&out.output, &out.hidden});
  return {out.output, out.hidden};
}
std::pair<PackedSequence, Tensor> RNN::forward(const PackedSequence& x, const Tensor& h0) const {
  Result out = run(x, h0, {});
  lower_results(true, x.data, {&out.output, &out.hidden});
  return {like(x, out.output), out.hidden};
}

GRU::GRU(GRUConfig config, const ParamOptions& param_options)
    : RecurrentLayer(std::move(config), param_options) {}
std::pair<Tensor, Tensor> GRU::forward(const Tensor& x, const Tensor& h0) const {
  Result out = run(x, h0, {});
  lower_results(false, x, {&out.output, &out.hidden});
  return {out.output, out.hidden};
}
std::pair<PackedSequence, Tensor> GRU::forward(const PackedSequence& x, const Tensor& h0) const {
  Result out = run(x, h0, {});
  lower_results(false, x.data, {&out.output, &out.hidden});
  return {like(x, out.output), out.hidden};
}

LSTM::LSTM(LSTMConfig config, const ParamOptions& param_options)
    : RecurrentLayer(std::move(config), param_options) {}
std::pair<Tensor, LSTMState> LSTM::forward(const Tensor& x,
                                           const std::optional<LSTMState>& state) const {
  const LSTMState given = state.value_or(LSTMState());
  Result out = run(x, given.first, given.second);
  lower_results(true, x, {&out.output, &out.hidden, &out.cell});
  return {out.output, {out.hidden, out.cell}};
}
std::pair<PackedSequence, LSTMState> LSTM::forward(const PackedSequence& x,
                                                   const std::optional<LSTMState>& state) const {
  const LSTMState given = state.value_or(LSTMState());
  Result out = run(x, given.first, given.second);
  const bool always = amp::autocast_state().enabled && has_one_length(x);
  lower_results(always, x.data, {&out.output, &out.hidden, &out.cell});
  return {like(x, out.output), {out.hidden, out.cell}};
}

// ---- The cells

template <class ConfigType>
RecurrentCell<ConfigType>::RecurrentCell(const char* name, int64_t gates, ConfigType config,
                                         const ParamOptions& param_options)
    : Layer<ConfigType>(std::move(config)), name_(name), gates_(gates) {
  const int64_t in = this->config_.input_size, hidden = this->config_.hidden_size;
  if (in < 1 || hidden < 1) {
    throw_error<ValueError>(name, ": sizes must be at least 1; got input_size ", in,
                            " and hidden_size ", hidden);
  }
  weight_ih = parameter({gates * hidden, in}, fill(hidden), param_options);
  weight_hh = parameter({gates * hidden, hidden}, fill(hidden), param_options);
  if (!this->config_.bias) return;
  bias_ih = parameter({gates * hidden}, fill(hidden), param_options);
  bias_hh = parameter({gates * hidden}, fill(hidden), param_options);
}

template <class ConfigType>
void RecurrentCell<ConfigType>::reset_parameters() {
  for (Param<Tensor>* p : {&weight_ih, &weight_hh, &bias_ih, &bias_hh}) {
    refill(*p, fill(this->config_.hidden_size));
  }
}

template <class ConfigType>
std::string RecurrentCell<ConfigType>::extra_repr() const {
  const ConfigType& c = this->config_;
  std::string out = concat(c.input_size.value(), ", ", c.hidden_size.value());
  if (!c.bias) out += ", bias=False";
  if constexpr (requires { c.nonlinearity; }) {
    if (c.nonlinearity != "tanh") out += ", nonlinearity=" + c.nonlinearity;
  }
  return out;
}

template <class ConfigType>
LSTMState RecurrentCell<ConfigType>::step(const Tensor& x, const Tensor& hidden,
                                          const Tensor& cell) const {
  const ConfigType& c = this->config_;
  if ((x.dim() != 1 && x.dim() != 2) || x.size(-1) != c.input_size.value()) {
    throw_error<ShapeError>(name_, ": expected [N, input_size] or [input_size] with input_size ",
                            c.input_size.value(), "; got shape ", x.shape());
  }
  const bool batched = x.dim() == 2;
  const Tensor input = batched ? x : x.unsqueeze(0);
  const Shape expected{input.size(0), c.hidden_size};
  const auto state = [&](const Tensor& s) {
    if (!s.defined()) return zeros(expected, {x.dtype(), x.device()});
    Tensor out = batched ? s : s.unsqueeze(0);
    if (out.shape() != expected) {
      throw_error<ShapeError>(name_, ": the state does not fit the input; got ", s.shape(), " for ",
                              x.shape());
    }
    return out;
  };
  bool relu = false;
  if constexpr (requires { c.nonlinearity; }) relu = c.nonlinearity == "relu";
  const Tensor w = weight_ih.val();  // drawn in the order of parameters(), should all be lazy
  const Tensor w_hidden = weight_hh.val();
  const Tensor bias = bias_ih.defined() ? bias_ih.val() : Tensor();
  const Tensor bias_hidden = bias_ih.defined() ? bias_hh.val() : Tensor();
  const Tensor before = gates_ == 4 ? state(cell) : Tensor();
  functional::RecurrentState next = functional::recurrent_cell(
      detail::cell_of(gates_, relu), input, state(hidden), before, w, w_hidden, bias, bias_hidden);
  lower_results(gates_ == 1, x, {&next.hidden, &next.cell});
  if (batched) return {std::move(next.hidden), std::move(next.cell)};
  return {next.hidden.squeeze(0), gates_ == 4 ? next.cell.squeeze(0) : next.cell};
}

template class RecurrentCell<RNNCellConfig>;
template class RecurrentCell<RecurrentCellConfig>;

RNNCell::RNNCell(RNNCellConfig config, const ParamOptions& param_options)
    : RecurrentCell("RNNCell", 1, std::move(config), param_options) {
  check_nonlinearity("RNNCell", config_.nonlinearity);
}
Tensor RNNCell::forward(const Tensor& x, const Tensor& hidden) const {
  return step(x, hidden, {}).first;
}
GRUCell::GRUCell(RecurrentCellConfig config, const ParamOptions& param_options)
    : RecurrentCell("GRUCell", 3, std::move(config), param_options) {}
Tensor GRUCell::forward(const Tensor& x, const Tensor& hidden) const {
  return step(x, hidden, {}).first;
}
LSTMCell::LSTMCell(RecurrentCellConfig config, const ParamOptions& param_options)
    : RecurrentCell("LSTMCell", 4, std::move(config), param_options) {}
LSTMState LSTMCell::forward(const Tensor& x, const std::optional<LSTMState>& state) const {
  const LSTMState given = state.value_or(LSTMState());
  return step(x, given.first, given.second);
}

KILN_MODULE_DEFINED_WITHOUT_VISIT(RNN)
KILN_MODULE_DEFINED_WITHOUT_VISIT(GRU)
KILN_MODULE_DEFINED_WITHOUT_VISIT(LSTM)
KILN_MODULE_DEFINED(RNNCell, weight_ih, weight_hh, bias_ih, bias_hh)
KILN_MODULE_DEFINED(GRUCell, weight_ih, weight_hh, bias_ih, bias_hh)
KILN_MODULE_DEFINED(LSTMCell, weight_ih, weight_hh, bias_ih, bias_hh)

}  // namespace kiln::nn
