// RuledOptimizer: an optimizer whose step is one of the rules of kiln/backend/optimizer_step.h.
//
// Note [Optimizers in two languages]
// A rule is written once: its options with their defaults, its state, and which step they mean. The
// C++ class derives from RuledOptimizer<Rule>; the Python class, whose options and state are dicts
// that a user may change, takes its step through the same Rule (python/src/optim.cpp).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kiln/backend/optimizer_step.h"
#include "kiln/core/config.h"
#include "kiln/optim/optimizer.h"

namespace kiln::optim {

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
//
// What the class does with them is in ruled_optimizer_impl.h. The file that defines a rule includes
// it and says template class RuledOptimizer<Rule>.
template <class Rule>
class RuledOptimizer : public Optimizer {
 public:
  using Options = typename Rule::Options;

  explicit RuledOptimizer(std::vector<Tensor> params, const Options& options = {});
  explicit RuledOptimizer(std::vector<ParamGroupOptions> groups, const Options& options = {});

  std::string type_name() const override;
  const Options& options() const { return options_; }

 protected:
  std::vector<StateInfo> slots(const ParamGroup& group) const override;
  std::vector<StateInfo> numbers(const ParamGroup& group) const override;
  void update(const Batch& batch) override;
  void visit_options(OptionVisitor& visitor) override;
  void check_options() const override;
  void check_group_options(const ParamGroup& group) const override;
  double default_lr() const override;
  double default_weight_decay() const override;

 private:
  static void visit(Options& options, OptionVisitor& visitor);
  static void check(const Options& options);
  Options of(const ParamGroup& group) const;

  Options options_;
};

}  // namespace kiln::optim
