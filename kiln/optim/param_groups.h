// Parameter groups by name: which parameters are trained with which settings.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kiln/nn/path_filter.h"
#include "kiln/optim/optimizer.h"

namespace kiln::nn {
class Module;
}

namespace kiln::optim {

// What a rule's parameters are trained with; what is left out comes from the optimizer's options.
struct GroupSettings {
  std::optional<double> lr = {};
  std::optional<double> weight_decay = {};
  std::map<std::string, GroupOption> options = {};  // as in ParamGroupOptions
};
struct GroupRule {
  nn::PathFilter filter;
  GroupSettings settings = {};
};

// A group for each rule, in their order, and one of all that no rule matches:
//
//   optim::AdamW adam(optim::param_groups(model, {{"*.bias", {.weight_decay = 0.0}},
//                                                 {"head.*", {.lr = 1e-2}}}), {.lr = 1e-3});
//
// A parameter belongs to the first rule that matches it; one that is tied counts once; frozen ones
// (requires_grad() is false) belong to no group, and a rule that only matches those to no purpose
// is left out. Initializes lazy parameters. Throws ValueError for a rule that matches nothing, or
// only what earlier rules took, and when nothing is left to train.
std::vector<ParamGroupOptions> param_groups(nn::Module& module,
                                            const std::vector<GroupRule>& rules);

}  // namespace kiln::optim
