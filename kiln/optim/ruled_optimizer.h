// RuledOptimizer: an optimizer whose step is one of the rules of kiln/backend/optimizer_step.h.
//
// Note [Optimizers in two languages]
// A rule is written once: its options with their defaults, its state, and which step they mean. The
// C++ class derives from RuledOptimizer<Rule>; the Python class, whose options and state are dicts
// that a user may change, takes its step through the same Rule (python/src/optim.cpp).
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

#include "kiln/backend/optimizer_step.h"
#include "kiln/core/config.h"
#include "kiln/optim/optimizer.h"

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

// A Rule has these members, all of them static:
//
//   using Options        a KILN_CONFIG of numbers, arrays of them, flags and enumerations; lr and
//                        weight_decay are among them
//   kName                the optimizer's name
//   check(op, options)   throws ValueError for options that make no sense
//   slots(options)       the tensors in a parameter's state
//   numbers(options)     the numbers in it
//
// and one of these two, where t counts from 1:
//
//   OptimizerStep step(options, t, numbers)    may change the numbers
//   void compose(options, t, p, g, slots)      for steps that look at a parameter as a whole; a
//                                              slot that is not there is undefined

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
class RuledOptimizer : public Optimizer {
 public:
  using Options = typename Rule::Options;

  explicit RuledOptimizer(std::vector<Tensor> params, const Options& options = {})
      : RuledOptimizer(detail::one_group(std::move(params)), options) {}
  explicit RuledOptimizer(std::vector<ParamGroupOptions> groups, const Options& options = {})
      : options_(options) {
    add_groups(std::move(groups));
  }

  std::string type_name() const override { return Rule::kName; }
  const Options& options() const { return options_; }

 protected:
  std::vector<StateInfo> slots(const ParamGroup& group) const override {
    return Rule::slots(of(group));
  }
  std::vector<StateInfo> numbers(const ParamGroup& group) const override {
    return Rule::numbers(of(group));
  }
  void update(const Batch& batch) override {
    detail::take_step<Rule>(of(batch.group), batch.steps_before + 1, batch.params, batch.grads,
                            batch.slots, batch.numbers);
  }
  void visit_options(OptionVisitor& visitor) override { visit(options_, visitor); }
  void check_options() const override { check(options_); }
  void check_group_options(const ParamGroup& group) const override { check(of(group)); }
  double default_lr() const override { return options_.lr; }
  double default_weight_decay() const override { return options_.weight_decay; }

 private:
  static void visit(Options& options, OptionVisitor& visitor) {
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
  static void check(const Options& options) {
    detail::check_not_negative(Rule::kName, "lr", options.lr);
    detail::check_not_negative(Rule::kName, "weight_decay", options.weight_decay);
    Rule::check(Rule::kName, options);
  }
  Options of(const ParamGroup& group) const {
    Options out = options_;
    out.lr = group.lr;
    out.weight_decay = group.weight_decay;
    if (!group.options.empty()) {
      GroupOptionSetter setter(group.options);
      visit(out, setter);
    }
    return out;
  }

  Options options_;
};

}  // namespace kiln::optim
