#include "kiln/optim/optimizer.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "kiln/core/cached_vector.h"
#include "kiln/core/dim_order.h"
#include "kiln/core/error.h"
#include "kiln/graph/capture.h"
#include "kiln/optim/ruled_optimizer.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/nn/optimizer_steps.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln::optim {

namespace detail {

void check_not_negative(const std::string& op, const char* name, double value) {
  if (!(value >= 0.0)) throw_error<ValueError>(op, ": ", name, " must be >= 0; got ", value);
}

void check_rate(const std::string& op, const char* name, double value) {
  if (!(value >= 0.0 && value < 1.0)) {
    throw_error<ValueError>(op, ": ", name, " must be in [0, 1); got ", value);
  }
}

void check_betas(const std::string& op, std::span<const double> betas) {
  const auto outside = [](double beta) { return !(beta >= 0.0 && beta < 1.0); };
  if (!std::any_of(betas.begin(), betas.end(), outside)) return;
  std::string text;
  for (const double beta : betas) text += concat(text.empty() ? "" : ", ", beta);
  throw_error<ValueError>(op, ": each of betas must be in [0, 1); got {", text, "}");
}

std::string element_name(std::string_view option, size_t i) {
  static const std::map<std::string_view, std::vector<std::string>> names = {
      {"etas", {"eta_minus", "eta_plus"}},
      {"step_sizes", {"step_size_min", "step_size_max"}},
      {"ns_coefficients", {"ns_a", "ns_b", "ns_c"}},
      {"betas", {"beta1", "beta2", "beta3"}},
      {"eps", {"eps1", "eps2"}},
  };
  const auto found = names.find(option);
  return found == names.end() || i >= found->second.size() ? "" : found->second[i];
}

void fused_step(std::span<Tensor> params, std::span<const Tensor> grads,
                std::span<const std::span<Tensor>> slots, const OptimizerStep& step) {
  kiln::detail::optimizer_step(params, grads, slots, step);
}

void for_each_parameter(
    std::span<Tensor> params, std::span<const Tensor> grads,
    std::span<const std::span<Tensor>> slots,
    const std::function<void(Tensor&, const Tensor&, std::span<Tensor>)>& compose) {
  std::vector<Tensor> state(slots.size());
  for (size_t i = 0; i < params.size(); ++i) {
    for (size_t s = 0; s < slots.size(); ++s) state[s] = slots[s][i];
    compose(params[i], grads[i], state);
  }
}

std::vector<ParamGroupOptions> one_group(std::vector<Tensor> params) {
  std::vector<ParamGroupOptions> groups(1);
  groups[0].params = std::move(params);
  return groups;
}

}  // namespace detail

std::optional<Shape> state_shape(const StateInfo& info, const Shape& parameter) {
  const StateShape like = info.like;
  if (const int64_t n = parameter.numel(); n < info.from || n >= info.below) return std::nullopt;
  if (like == StateShape::parameter) return parameter;
  if (like == StateShape::blocks) {
    const int64_t n = parameter.numel();
    return Shape{n == 0 ? 0 : (n - 1) / info.block + 1};
  }
  const int rank = parameter.rank();
  if ((rank < 2) != (like == StateShape::vector)) return std::nullopt;
  Shape out = parameter;
  if (like == StateShape::rows) out[rank - 1] = 1;
  if (like == StateShape::columns) out[rank - 2] = 1;
  return out;
}

Tensor new_slot(const StateInfo& info, const Tensor& param, const Shape& shape) {
  const TensorOptions options{.dtype = state_dtype(info, param.dtype()), .device = param.device()};
  if (!(shape == param.shape()) || param.is_contiguous()) return full(shape, info.initial, options);
  const Dims order = by_stride(param.stride());
  return full(permuted(shape, order), info.initial, options).permute(inverse(order));
}

// ---- Groups

void Optimizer::add_groups(std::vector<ParamGroupOptions> groups) {
  check_options();
  if (groups.empty() || std::all_of(groups.begin(), groups.end(),
                                    [](const auto& group) { return group.params.empty(); })) {
    throw_error<ValueError>(type_name(), ": there are no parameters to optimize");
  }
  for (ParamGroupOptions& group : groups) add_param_group(std::move(group));
}

void Optimizer::add_param_group(ParamGroupOptions options) {
  ParamGroup group;
  group.lr = group.initial_lr = options.lr.value_or(default_lr());
  group.weight_decay = options.weight_decay.value_or(default_weight_decay());
  set_group_options(group, options.options);
  check_settings(group);
  for (const Tensor& param : options.params) {
    check_param(param, group);
    group.params.push_back(param);
  }
  states_.push_back(new_state(group));
  groups_.push_back(std::move(group));
}

void Optimizer::check_settings(const ParamGroup& group) const {
  if (group.lr >= 0.0 && group.weight_decay >= 0.0 && group.options.empty()) [[likely]]
    return;
  detail::check_not_negative(type_name(), "lr", group.lr);
  detail::check_not_negative(type_name(), "weight_decay", group.weight_decay);
  if (group.options.empty()) return;
  // This runs at each step: no list of names unless one is unknown.
  struct Known final : OptionVisitor {
    explicit Known(const std::map<std::string, double>& of) : options(of) {}
    void number(const char* name, double&) override { count += options.count(name); }
    void flag(const char* name, bool&) override { count += options.count(name); }
    const std::map<std::string, double>& options;
    size_t count = 0;
  } known(group.options);
  const_cast<Optimizer*>(this)->visit_options(known);
  if (known.count != group.options.size()) throw_unknown_option(group);
  check_group_options(group);
}

void Optimizer::throw_unknown_option(const ParamGroup& group) const {
  const std::vector<std::string> names = option_names();
  std::string all = "lr, weight_decay";
  for (const std::string& name : names) all += ", " + name;
  const auto unknown =
      std::find_if(group.options.begin(), group.options.end(), [&names](const auto& option) {
        return std::find(names.begin(), names.end(), option.first) == names.end();
      });
  throw_error<ValueError>(type_name(), ": a group has an unknown option; got '",
                          unknown == group.options.end() ? "" : unknown->first,
                          "'; expected one of ", all);
}

std::vector<std::string> Optimizer::option_names() const {
  struct Names final : OptionVisitor {
    void number(const char* name, double&) override { all.emplace_back(name); }
    void flag(const char* name, bool&) override { all.emplace_back(name); }
    std::vector<std::string> all;
  } names;
  const_cast<Optimizer*>(this)->visit_options(names);
  return names.all;
}

void Optimizer::set_group_options(ParamGroup& group,
                                  const std::map<std::string, GroupOption>& options) const {
  for (const auto& [name, option] : options) {
    const std::vector<double>& values = option.values();
    for (size_t i = 0; i < values.size(); ++i) {
      const std::string element = option.is_list() ? detail::element_name(name, i) : name;
      group.options[element.empty() ? name : element] = values[i];
    }
  }
}

Optimizer::State Optimizer::new_state(const ParamGroup& group) const {
  const size_t count = group.params.size();
  State state;
  state.slot_infos = slots(group);
  state.slots.assign(state.slot_infos.size(), std::vector<Tensor>(count));
  state.number_infos = numbers(group);
  for (const StateInfo& number : state.number_infos) {
    state.numbers.emplace_back(count, number.initial);
  }
  state.steps.assign(count, 0);
  return state;
}

void Optimizer::check_param(const Tensor& param, const ParamGroup& group) const {
  if (!param.defined()) throw_error<ValueError>(type_name(), ": a parameter is undefined");
  if (!param.is_floating_point()) {
    throw_error<ValueError>(type_name(), ": a parameter must be floating point; got ",
                            param.dtype());
  }
  if (!param.is_leaf()) {
    throw_error<ValueError>(type_name(), ": a parameter must be a leaf; got the result of ",
                            param.grad_fn(), " of shape ", param.shape());
  }
  const auto is_param = [&param](const Tensor& other) { return other.is_same(param); };
  bool known = std::any_of(group.params.begin(), group.params.end(), is_param);
  for (const ParamGroup& other : groups_) {
    known = known || std::any_of(other.params.begin(), other.params.end(), is_param);
  }
  if (known) {
    throw_error<ValueError>(type_name(), ": a parameter of shape ", param.shape(),
                            " was given twice");
  }
}

// ---- Steps

void Optimizer::step() {
  step_along([](const Tensor& param) { return param.grad(); });
}

namespace {

bool is_momentum(std::string_view name) { return name == "momentum" || name == "beta1"; }

}  // namespace

std::optional<double> Optimizer::momentum() const {
  struct Reader final : OptionVisitor {
    void number(const char* name, double& value) override {
      if (is_momentum(name)) found = value;
    }
    void flag(const char*, bool&) override {}
    std::optional<double> found;
  } reader;
  const_cast<Optimizer*>(this)->visit_options(reader);
  return reader.found;
}

void Optimizer::set_momentum(double value) {
  struct Exchange final : OptionVisitor {
    explicit Exchange(double v) : other(v) {}
    void number(const char* name, double& own) override {
      if (!is_momentum(name)) return;
      std::swap(own, other);
      found = name;
    }
    void flag(const char*, bool&) override {}
    double other;
    std::string found;
  } exchange(value);
  visit_options(exchange);
  if (exchange.found.empty())
    throw_error<ValueError>(type_name(), ": there is no momentum to be set");
  try {
    check_options();
  } catch (...) {
    visit_options(exchange);
    throw;
  }
  for (size_t g = 0; g < groups_.size(); ++g) {
    const auto own = groups_[g].options.find(exchange.found);
    if (own != groups_[g].options.end()) own->second = value;
    refit_slots(g);
  }
}

void Optimizer::refit_slots(size_t g) {
  State& state = states_[g];
  std::vector<StateInfo> infos = slots(groups_[g]);
  std::vector<std::vector<Tensor>> fitting;
  for (const StateInfo& info : infos) {
    const auto same = std::find_if(state.slot_infos.begin(), state.slot_infos.end(),
                                   [&](const StateInfo& old) { return old.name == info.name; });
    if (same == state.slot_infos.end()) {
      fitting.emplace_back(groups_[g].params.size());
    } else {
      fitting.push_back(
          std::move(state.slots[static_cast<size_t>(same - state.slot_infos.begin())]));
    }
  }
  state.slot_infos = std::move(infos);
  state.slots = std::move(fitting);
}

void Optimizer::step(const Gradients& gradients) {
  const bool any =
      step_along([&](const Tensor& param) { return gradients.get(param).value_or(Tensor()); });
  if (!any) throw_no_gradients(gradients.size());
}

template <class GradOf>
bool Optimizer::step_along(GradOf grad_of) {
  NoGradGuard no_grad;
  bool any = false;
  if (graph::is_capturing()) {
    // A graph holds the step as a call: rates, numbers of steps and state are the optimizer's.
    std::vector<bool> given;
    std::vector<ErasedTensor> values;
    for (const ParamGroup& group : groups_) {
      for (const Tensor& param : group.params) {
        const Tensor grad = grad_of(param);
        given.push_back(grad.defined());
        if (!grad.defined()) continue;
        any = true;
        values.push_back(kiln::detail::parts_or_value("step", grad).inner);
      }
    }
    graph::call_on_host("optimizer_step", values,
                        [this, given](std::span<const ErasedTensor> grads) {
                          size_t param = 0, next = 0;
                          const std::function<Tensor(const Tensor&)> in_turn = [&](const Tensor&) {
                            return given[param++] ? kiln::detail::wrap(grads[next++]) : Tensor();
                          };
                          step_along(in_turn);
                        });
    return any;
  }
  grads_.clear();
  for (const ParamGroup& group : groups_) {
    for (const Tensor& param : group.params) {
      grads_.push_back(grad_of(param));
      any = any || grads_.back().defined();
    }
  }
  // Everything is checked before anything is written.
  size_t first = 0;
  for (size_t g = 0; g < groups_.size(); first += groups_[g].params.size(), ++g) {
    fit_group(g, first);
  }
  std::span<Tensor> rest = grads_;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const size_t size = groups_[g].params.size();
    step_group(g, rest.first(size));
    rest = rest.subspan(size);
  }
  grads_.clear();
  return any;
}

// Note [Parameters that change]. A parameter may be given other values between its gradient and
// its step, or between two steps: module.double(), p.data = .... Of another dtype, its gradient
// and its state are converted, and training goes on; of another shape they belong to a parameter
// that is no more.
void Optimizer::fit_group(size_t g, size_t first) {
  const std::vector<Tensor>& params = groups_[g].params;
  check_settings(groups_[g]);
  if (const bool own = !groups_[g].options.empty(); own || states_[g].own_options) [[unlikely]] {
    refit_slots(g);  // they may be others than at the last step
    states_[g].own_options = own;
  }
  for (size_t i = 0; i < params.size(); ++i) {
    Tensor& grad = grads_[first + i];
    if (!grad.defined()) continue;
    const Shape& shape = params[i].shape();
    if (!(grad.shape() == shape)) {
      throw_error<ShapeError>(type_name(), ": step: the gradient of parameter ", i, " of group ", g,
                              " was computed when the parameter had another shape; got ",
                              grad.shape(), "; expected ", shape,
                              ", try zero_grad() and another backward pass");
    }
    if (grad.device() != params[i].device()) {
      throw_error<DeviceError>(type_name(), ": step: the gradient of parameter ", i, " of group ",
                               g, " lives elsewhere; got ", grad.device(), "; expected ",
                               params[i].device(), ", try zero_grad() and another backward pass");
    }
    for (size_t s = 0; s < states_[g].slots.size(); ++s) {
      const Tensor& slot = states_[g].slots[s][i];
      const auto wanted = state_shape(states_[g].slot_infos[s], shape);
      if (!slot.defined() || (wanted && slot.shape() == *wanted)) continue;
      throw_error<ShapeError>(type_name(), ": step: the state of parameter ", i, " of group ", g,
                              " was made for another shape; got ", states_[g].slot_infos[s].name,
                              " of shape ", slot.shape(), " for a parameter of shape ", shape,
                              "; expected a new optimizer for the parameters as they are now");
    }
    if (grad.dtype() != params[i].dtype()) grad = grad.to(params[i].dtype());
  }
}

void Optimizer::throw_no_gradients(size_t given) const {
  size_t params = 0;
  for (const ParamGroup& group : groups_) params += group.params.size();
  throw_error<ValueError>(
      type_name(), "::step: none of the optimizer's parameters has a gradient; got ", given,
      " gradients of other tensors for ", params,
      " parameters; expected gradients of a loss that they were used in. Make the optimizer from "
      "the module that computes the loss, and again after what puts other tensors into it: fork(), "
      "map(), load_state_dict(.., assign = true)");
}

// Cuts a group into batches that one fused call can take: usually there is one, of all parameters.
void Optimizer::step_group(size_t g, std::span<Tensor> grads) {
  const ParamGroup& group = groups_[g];
  const State& state = states_[g];
  with_grad_.clear();
  bool alike = true;
  const auto fits = [&](size_t a, size_t b) {
    for (const std::vector<double>& number : state.numbers) {
      if (number[a] != number[b]) return false;
    }
    return state.steps[a] == state.steps[b] && group.params[a].dtype() == group.params[b].dtype() &&
           group.params[a].device() == group.params[b].device();
  };
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined()) continue;
    alike = alike && (with_grad_.empty() || fits(with_grad_[0], i));
    with_grad_.push_back(i);
  }
  if (with_grad_.empty()) return;
  if (alike) {
    run(g, with_grad_, grads);
    return;
  }
  // Steps change as batches run: all batches are found first.
  std::vector<std::vector<size_t>> batches;
  for (const size_t i : with_grad_) {
    const auto same = std::find_if(batches.begin(), batches.end(),
                                   [&](const auto& batch) { return fits(batch[0], i); });
    if (same == batches.end()) {
      batches.push_back({i});
    } else {
      same->push_back(i);
    }
  }
  for (const auto& batch : batches) run(g, batch, grads);
}

void Optimizer::run(size_t g, std::span<const size_t> which, std::span<Tensor> grads) {
  ParamGroup& group = groups_[g];
  State& state = states_[g];
  for (size_t s = 0; s < state.slots.size(); ++s) {
    std::vector<Tensor>& slot = state.slots[s];
    for (const size_t i : which) {
      const Tensor& param = group.params[i];
      const StateInfo& info = state.slot_infos[s];
      const DType dtype = state_dtype(info, param.dtype());
      if (!slot[i].defined()) {
        const auto shape = state_shape(info, param.shape());
        if (!shape) continue;
        slot[i] = new_slot(info, param, *shape);
      } else if (slot[i].dtype() != dtype || slot[i].device() != param.device()) {
        slot[i] = slot[i].to(param.device(), dtype);
      }
    }
  }
  const int64_t steps_before = state.steps[which[0]];
  kiln::detail::CachedVector<double> numbers;
  for (const std::vector<double>& number : state.numbers) numbers.push_back(number[which[0]]);
  kiln::detail::CachedVector<std::span<Tensor>> slots;
  if (which.size() == group.params.size()) {
    for (std::vector<Tensor>& slot : state.slots) slots.emplace_back(slot);
    update({group.params, grads, slots, numbers, group, steps_before});
  } else {
    // Handles to the same tensors, side by side.
    const auto gather = [&which](std::span<Tensor> from) {
      std::vector<Tensor> out;
      for (const size_t i : which) out.push_back(from[i]);
      return out;
    };
    std::vector<Tensor> params = gather(group.params);
    const std::vector<Tensor> some_grads = gather(grads);
    std::vector<std::vector<Tensor>> gathered;
    for (std::vector<Tensor>& slot : state.slots) gathered.push_back(gather(slot));
    for (std::vector<Tensor>& slot : gathered) slots.emplace_back(slot);
    update({params, some_grads, slots, numbers, group, steps_before});
    for (size_t s = 0; s < gathered.size(); ++s) {
      for (size_t k = 0; k < which.size(); ++k) {
        state.slots[s][which[k]] = std::move(gathered[s][k]);
      }
    }
  }
  for (const size_t i : which) {
    ++state.steps[i];
    for (size_t k = 0; k < numbers.size(); ++k) state.numbers[k][i] = numbers[k];
  }
}

void Optimizer::zero_grad(bool set_to_none) {
  for (ParamGroup& group : groups_) {
    for (Tensor& param : group.params) param.zero_grad(set_to_none);
  }
}

void Optimizer::GroupOptionSetter::number(const char* name, double& value) {
  if (const auto found = options_.find(name); found != options_.end()) value = found->second;
}
void Optimizer::GroupOptionSetter::flag(const char* name, bool& value) {
  if (const auto found = options_.find(name); found != options_.end()) value = found->second != 0.0;
}

}  // namespace kiln::optim
