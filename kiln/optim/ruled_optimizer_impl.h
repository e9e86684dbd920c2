// What a RuledOptimizer does with its rule. For the files that define rules.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kiln/optim/ruled_optimizer.h"

namespace kiln::optim {

namespace detail {

// Calls f(name, field) for each option that is not lr or weight_decay: those belong to groups.
template <class Options, class F>
void for_each_option(Options& options, F&& f) {
  const auto visit = [&f](std::string_view name, auto& field, const char*) {
    if (name != "lr" && name != "weight_decay") f(std::string(name).c_str(), field);
  };
  options.kiln_visit_config(visit);
}

template <class T>
inline constexpr bool is_array = false;
template <size_t N>
inline constexpr bool is_array<std::array<double, N>> = true;

}  // namespace detail

// A rule of the second kind.
template <class Rule>
concept ComposedRule = requires { &Rule::compose; };

namespace detail {

// The op, on tensors of one dtype and device.
void fused_step(std::span<Tensor> params, std::span<const Tensor> grads,
                std::span<const std::span<Tensor>> slots, const OptimizerStep& step);
// Calls compose(p, g, its slots) for each parameter.
void for_each_parameter(
    std::span<Tensor> params, std::span<const Tensor> grads,
    std::span<const std::span<Tensor>> slots,
    const std::function<void(Tensor&, const Tensor&, std::span<Tensor>)>& compose);

// One step of a rule on parameters with the same number of steps and numbers.
template <class Rule>
void take_step(const typename Rule::Options& options, int64_t t, std::span<Tensor> params,
               std::span<const Tensor> grads, std::span<const std::span<Tensor>> slots,
               std::span<double> numbers) {
  if constexpr (ComposedRule<Rule>) {
    for_each_parameter(params, grads, slots, [&](Tensor& p, const Tensor& g, auto state) {
      Rule::compose(options, t, p, g, state);
    });
  } else {
    fused_step(params, grads, slots, Rule::step(options, t, numbers));
  }
}

}  // namespace detail

template <class Rule>
RuledOptimizer<Rule>::RuledOptimizer(std::vector<Tensor> params, const Options& options)
    : RuledOptimizer(detail::one_group(std::move(params)), options) {}
template <class Rule>
RuledOptimizer<Rule>::RuledOptimizer(std::vector<ParamGroupOptions> groups, const Options& options)
    : options_(options) {
  add_groups(std::move(groups));
}

template <class Rule>
std::string RuledOptimizer<Rule>::type_name() const {
  return Rule::kName;
}

template <class Rule>
std::vector<StateInfo> RuledOptimizer<Rule>::slots(const ParamGroup& group) const {
  return Rule::slots(of(group));
}
template <class Rule>
std::vector<StateInfo> RuledOptimizer<Rule>::numbers(const ParamGroup& group) const {
  return Rule::numbers(of(group));
}
template <class Rule>
void RuledOptimizer<Rule>::update(const Batch& batch) {
  detail::take_step<Rule>(of(batch.group), batch.steps_before + 1, batch.params, batch.grads,
                          batch.slots, batch.numbers);
}

template <class Rule>
void RuledOptimizer<Rule>::visit_options(OptionVisitor& visitor) {
  visit(options_, visitor);
}
template <class Rule>
void RuledOptimizer<Rule>::check_options() const {
  check(options_);
}
template <class Rule>
void RuledOptimizer<Rule>::check_group_options(const ParamGroup& group) const {
  check(of(group));
}
template <class Rule>
double RuledOptimizer<Rule>::default_lr() const {
  return options_.lr;
}
template <class Rule>
double RuledOptimizer<Rule>::default_weight_decay() const {
  return options_.weight_decay;
}

template <class Rule>
void RuledOptimizer<Rule>::visit(Options& options, OptionVisitor& visitor) {
  detail::for_each_option(options, [&](const char* name, auto& field) {
    using Field = std::decay_t<decltype(field)>;
    if constexpr (std::same_as<Field, bool>) {
      visitor.flag(name, field);
    } else if constexpr (detail::is_array<Field>) {
      for (size_t i = 0; i < field.size(); ++i) {
        visitor.number(detail::element_name(name, i).c_str(), field[i]);
      }
    } else {
      auto value = static_cast<double>(field);
      visitor.number(name, value);
      field = static_cast<Field>(value);
    }
  });
}

template <class Rule>
void RuledOptimizer<Rule>::check(const Options& options) {
  detail::check_not_negative(Rule::kName, "lr", options.lr);
  detail::check_not_negative(Rule::kName, "weight_decay", options.weight_decay);
  Rule::check(Rule::kName, options);
}

template <class Rule>
auto RuledOptimizer<Rule>::of(const ParamGroup& group) const -> Options {
  Options out = options_;
  out.lr = group.lr;
  out.weight_decay = group.weight_decay;
  if (!group.options.empty()) {
    GroupOptionSetter setter(group.options);
    visit(out, setter);
  }
  return out;
}

}  // namespace kiln::optim
