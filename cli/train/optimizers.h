// The optimizers and schedules that a configuration may name.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/train/fields.h"
#include "kiln/optim/lr_schedules.h"
#include "kiln/optim/optimizer.h"

namespace kiln::cli {

// An optimizer before there are parameters.
struct OptimizerPlan {
  std::string name;
  double lr = 0.0;
  std::function<std::unique_ptr<optim::Optimizer>(std::vector<Tensor>)> make;
};
std::vector<std::string> optimizer_names();
// Reads {"name", "lr", ..}; other fields are the optimizer's own, with the library's defaults.
OptimizerPlan read_optimizer(Fields fields, Json& read);

// The factor of the rate at a step, of `total` steps with `per_epoch` in an epoch.
struct SchedulePlan {
  std::string name;
  double warmup = 0.0;  // share of all steps in which the rate rises
  double final = 0.0;   // share of the rate that is left at the end
  int64_t every = 1;    // epochs
  double factor = 1.0;

  double at(int64_t step, int64_t total, int64_t per_epoch) const;
  std::string text() const;
};
std::vector<std::string> schedule_names();
SchedulePlan read_schedule(Fields fields, Json& read);

}  // namespace kiln::cli
