// kiln.optim: the steps that its Python classes take, each on one parameter group.
#include "kiln/optim/optim.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "kiln/optim/ruled_optimizer_impl.h"
#include "kiln/tensor/nn/optimizer_steps.h"
#include "optim_group.h"

namespace kiln::python {

namespace {

using Slot = GroupMembers::Slot;

void refuse_differentiable(const GroupOptions& options) {
  static const DictKey kDifferentiable("differentiable");
  if (options.flag(kDifferentiable)) {
    throw_error<NotImplementedError>(options.op(),
                                     ": a step with differentiable=True is not there; try "
                                     "kiln.autograd.grad with create_graph=True and updates "
                                     "written with tensor ops");
  }
}

// ---- Options: a field of a Rule's Options, and where a group's dict has it

// Names that are made once, by their text.
const DictKey& key_of(std::string_view name) {
  static auto& keys = *new std::map<std::string, std::unique_ptr<DictKey>, std::less<>>();
  const auto found = keys.find(name);
  if (found != keys.end()) return *found->second;
  const auto [made, inserted] = keys.emplace(std::string(name), nullptr);
  made->second = std::make_unique<DictKey>(made->first.c_str());
  return *made->second;
}

template <class Enum>
Enum enum_of(const GroupOptions& group, const DictKey& key, const std::string& text) {
  std::string known;
  for (const auto& [name, value] : kiln::detail::config_enum_values<Enum>()) {
    if (name == text) return value;
    known += (known.empty() ? "'" : ", '") + name + "'";
  }
  throw_error<ValueError>(group.op(), ": '", key.name(), "' of a parameter group is unknown; got '",
                          text, "'; expected ", known);
}

template <class Field>
void read_option(const GroupOptions& group, const DictKey& key, Field& field) {
  if constexpr (std::same_as<Field, bool>) {
    field = group.flag(key);
  } else if constexpr (std::is_enum_v<Field>) {
    field = Field{};  // None: the first one
    if (const std::optional<std::string> text = group.text(key)) {
      field = enum_of<Field>(group, key, *text);
    }
  } else if constexpr (std::is_integral_v<Field>) {
    field = group.whole(key);
  } else if constexpr (optim::detail::is_array<Field>) {
    const int count = static_cast<int>(field.size());
    for (int i = 0; i < count; ++i) {
      field[static_cast<size_t>(i)] = group.number(key, i, count, 0.0);
    }
  } else {
    field = group.number(key);
  }
}

// Rprop and SparseAdam have no weight decay, and no key for it.
template <class Rule>
inline constexpr bool kDecays =
    !std::same_as<Rule, optim::RpropRule> && !std::same_as<Rule, optim::SparseAdamRule>;

template <class Rule>
typename Rule::Options options_of(const GroupOptions& group) {
  typename Rule::Options out;
  static const std::vector<const DictKey*>& keys = *[] {
    auto* found = new std::vector<const DictKey*>();
    typename Rule::Options some;
    const auto note = [&](std::string_view name, auto&, const char*) {
      found->push_back(&key_of(name));
    };
    some.kiln_visit_config(note);
    return found;
  }();
  size_t at = 0;
  const auto read = [&](std::string_view name, auto& field, const char*) {
    const DictKey& key = *keys[at++];
    if (!kDecays<Rule> && name == "weight_decay") return;
    read_option(group, key, field);
  };
  out.kiln_visit_config(read);
  return out;
}

// ---- Steps

// SGD's and Muon's states have no number of steps: a buffer that is not there yet tells the first
// one.
template <class Rule>
inline constexpr bool kCountsSteps =
    !std::same_as<Rule, optim::SGDRule> && !std::same_as<Rule, optim::MuonRule>;

// A step on a parameter group; how many parameters had a gradient.
template <class Rule>
size_t rule_step(nb::handle group, nb::handle state, const Gradients* gradients) {
  const GroupOptions given(Rule::kName, group);
  refuse_differentiable(given);
  const typename Rule::Options options = options_of<Rule>(given);
  NoGradGuard no_grad;
  GroupMembers members(given, state, gradients);
  if (members.size() == 0) return 0;
  const std::vector<optim::StateInfo> infos = Rule::slots(options);
  std::array<Slot, GroupMembers::kMostSlots> slots;
  std::array<Slot*, GroupMembers::kMostSlots> pointers;
  // State of another dtype, with its slot and member.
  std::vector<std::pair<Tensor, std::pair<size_t, size_t>>> others;
  if (kCountsSteps<Rule> || !infos.empty()) members.find_state();
  for (size_t s = 0; s < infos.size(); ++s) {
    slots[s] = members.slot(key_of(infos[s].name), infos[s], !kCountsSteps<Rule>);
    pointers[s] = &slots[s];
    for (size_t i = 0; i < members.size(); ++i) {
      Tensor& x = slots[s].tensors[i];
      const DType dtype = optim::state_dtype(infos[s], members.params[i].dtype());
      if (!x.defined() || x.dtype() == dtype) continue;
      others.push_back({x, {s, i}});
      x = x.to(dtype);
    }
  }
  const std::span<Slot* const> used(pointers.data(), infos.size());
  const std::vector<optim::StateInfo> number_infos = Rule::numbers(options);
  std::vector<std::vector<double>> numbers(members.size());  // [member][number]
  for (const optim::StateInfo& info : number_infos) {
    for (size_t i = 0; i < members.size(); ++i) {
      numbers[i].push_back(members.number(i, key_of(info.name), info.initial));
    }
  }
  if constexpr (kCountsSteps<Rule>) members.count_steps();
  const auto step_of = [&](size_t i) -> int64_t {
    if constexpr (kCountsSteps<Rule>) return members.steps[i] + 1;
    return !infos.empty() && !slots[0].made[i] ? 2 : 1;
  };
  {
    const Unlocked lock(members.numel);
    for_each_batch(
        members, used,
        [&](size_t i, size_t j) { return step_of(i) == step_of(j) && numbers[i] == numbers[j]; },
        [&](size_t first, auto params, auto grads, auto& tensors) {
          std::vector<double> changed = numbers[first];
          optim::detail::take_step<Rule>(options, step_of(first), params, grads,
                                         std::span(tensors).first(infos.size()), changed);
        });
    for (auto& [x, at] : others) x.copy_(slots[at.first].tensors[at.second]);
  }
  if constexpr (!optim::ComposedRule<Rule>) {
    for (size_t i = 0; !number_infos.empty() && i < members.size(); ++i) {
      static_cast<void>(Rule::step(options, step_of(i), numbers[i]));
      for (size_t k = 0; k < number_infos.size(); ++k) {
        members.keep_number(i, key_of(number_infos[k].name), numbers[i][k]);
      }
    }
  }
  members.keep(used);
  return members.size();
}

size_t adam_step(nb::handle group, nb::handle state, const Gradients* gradients) {
  const bool decoupled = GroupOptions("Adam", group).flag(key_of("decoupled_weight_decay"));
  return (decoupled ? &rule_step<optim::AdamWRule> : &rule_step<optim::AdamRule>)(group, state,
                                                                                  gradients);
}

void zero_grad(nb::handle params, bool set_to_none) {
  for (nb::handle item : params) {
    Tensor param = tensor_arg("zero_grad", item);
    param.zero_grad(set_to_none);
  }
}

}  // namespace

void bind_optim(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("_optim", "Optimizers' steps, and gradient clipping.");
  const auto gradients = nb::arg("gradients").none() = nb::none();
  const auto def = [&](const char* name, auto* step) {
    m.def(name, step, "group"_a, "state"_a, gradients,
          "A step on a parameter group; how many parameters had a gradient.");
  };
  def("adam_step", &adam_step);
  def("adafactor_step", &rule_step<optim::AdafactorRule>);
  def("adadelta_step", &rule_step<optim::AdadeltaRule>);
  def("adagrad_step", &rule_step<optim::AdagradRule>);
  def("adamax_step", &rule_step<optim::AdamaxRule>);
  def("adamw_8bit_step", &rule_step<optim::AdamW8bitRule>);
  def("adan_step", &rule_step<optim::AdanRule>);
  def("asgd_step", &rule_step<optim::ASGDRule>);
  def("lamb_step", &rule_step<optim::LAMBRule>);
  def("lion_step", &rule_step<optim::LionRule>);
  def("muon_step", &rule_step<optim::MuonRule>);
  def("nadam_step", &rule_step<optim::NAdamRule>);
  def("radam_step", &rule_step<optim::RAdamRule>);
  def("rmsprop_step", &rule_step<optim::RMSpropRule>);
  def("rprop_step", &rule_step<optim::RpropRule>);
  def("sgd_step", &rule_step<optim::SGDRule>);
  def("sparse_adam_step", &rule_step<optim::SparseAdamRule>);
  bind_lbfgs(m);
  m.def("zero_grad", &zero_grad, "params"_a, "set_to_none"_a = true);
  m.def(
      "clip_grad_norm_",
      [](const std::vector<Tensor>& params, double max_norm, double norm_type,
         bool error_if_nonfinite) {
        Unlocked lock;
        return optim::clip_grad_norm_(params, max_norm, norm_type, error_if_nonfinite);
      },
      "parameters"_a, "max_norm"_a, "norm_type"_a = 2.0, "error_if_nonfinite"_a = false);
  m.def(
      "clip_grad_value_",
      [](const std::vector<Tensor>& params, double clip_value) {
        Unlocked lock;
        optim::clip_grad_value_(params, clip_value);
      },
      "parameters"_a, "clip_value"_a);
}

}  // namespace kiln::python
