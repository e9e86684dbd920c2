#include "kiln/optim/reduce_lr_on_plateau.h"

#include <algorithm>

#include "kiln/core/error.h"

namespace kiln::optim {

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, const PlateauOptions& options)
    : optimizer_(&optimizer), options_(options) {
  if (!(options.factor >= 0.0 && options.factor < 1.0)) {
    throw_error<ValueError>("ReduceLROnPlateau: factor must be in [0, 1); got ", options.factor);
  }
  if (options.mode == PlateauMode::max) state_.best = -state_.best;
}

bool ReduceLROnPlateau::is_better(double value) const {
  const bool rising = options_.mode == PlateauMode::max;
  const double margin = rising ? options_.threshold : -options_.threshold;
  const double bound = options_.threshold_mode == ThresholdMode::rel ? state_.best * (1.0 + margin)
                                                                     : state_.best + margin;
  return rising ? value > bound : value < bound;
}

void ReduceLROnPlateau::step(double value) {
  ++state_.last_epoch;
  if (is_better(value)) {
    state_.best = value;
    state_.num_bad_epochs = 0;
  } else {
    ++state_.num_bad_epochs;
  }
  if (state_.cooldown_counter > 0) {
    --state_.cooldown_counter;
    state_.num_bad_epochs = 0;
  }
  if (state_.num_bad_epochs <= options_.patience) return;
  state_.cooldown_counter = options_.cooldown;
  state_.num_bad_epochs = 0;
  for (ParamGroup& group : optimizer_->param_groups()) {
    const double lower = std::max(group.lr * options_.factor, options_.min_lr);
    if (group.lr - lower > options_.eps) group.lr = lower;
  }
}

std::vector<double> ReduceLROnPlateau::get_last_lr() const {
  std::vector<double> out;
  for (const ParamGroup& group : optimizer_->param_groups()) out.push_back(group.lr);
  return out;
}

}  // namespace kiln::optim
