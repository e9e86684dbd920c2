#include "kiln/optim/param_groups.h"

#include <algorithm>

#include "kiln/core/error.h"
#include "kiln/nn/module.h"

namespace kiln::optim {

std::vector<ParamGroupOptions> param_groups(nn::Module& module,
                                            const std::vector<GroupRule>& rules) {
  module.materialize();
  std::vector<ParamGroupOptions> groups;
  for (const GroupRule& rule : rules) {
    groups.push_back({{}, rule.settings.lr, rule.settings.weight_decay, rule.settings.options});
  }
  groups.emplace_back();  // of what no rule matches
  std::vector<int64_t> matched(rules.size(), 0);
  std::vector<int64_t> taken(rules.size(), 0);
  std::vector<Tensor> seen;
  module.for_each_parameter([&](const std::string& path, nn::Param<Tensor>& param) {
    const Tensor& value = param.get();
    const auto same = [&value](const Tensor& other) { return other.is_same(value); };
    const bool repeated = std::any_of(seen.begin(), seen.end(), same);
    size_t group = rules.size();
    for (size_t r = 0; r < rules.size(); ++r) {
      if (!rules[r].filter.matches(path, param.id())) continue;
      ++matched[r];
      group = std::min(group, r);
    }
    if (group < rules.size()) ++taken[group];
    if (repeated || !value.requires_grad()) return;
    seen.push_back(value);
    groups[group].params.push_back(value);
  });
  for (size_t r = 0; r < rules.size(); ++r) {
    if (matched[r] == 0 || taken[r] == 0) {
      throw_error<ValueError>(
          "param_groups: rule ", r,
          matched[r] == 0 ? " matches no parameter" : " matches only what earlier rules took",
          "; got ", rules[r].filter.description(), "; expected a pattern of the paths that ",
          module.type_name(), "'s named_parameters() has");
    }
  }
  std::erase_if(groups, [](const ParamGroupOptions& group) { return group.params.empty(); });
  if (groups.empty()) {
    throw_error<ValueError>("param_groups: no parameter of ", module.type_name(),
                            " requires a gradient");
  }
  return groups;
}

}  // namespace kiln::optim
