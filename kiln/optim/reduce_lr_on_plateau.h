// ReduceLROnPlateau: a smaller rate when what is measured gets no better.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "kiln/core/config.h"
#include "kiln/optim/optimizer.h"

namespace kiln::optim {

enum class PlateauMode { min, max };
enum class ThresholdMode { rel, abs };
KILN_CONFIG_ENUM(PlateauMode, min, max)
KILN_CONFIG_ENUM(ThresholdMode, rel, abs)

struct PlateauOptions {
  PlateauMode mode = PlateauMode::min;  // what better means
  double factor = 0.1;
  int64_t patience = 10;    // epochs without anything better before the rate falls
  double threshold = 1e-4;  // better by more than this
  ThresholdMode threshold_mode = ThresholdMode::rel;
  int64_t cooldown = 0;  // epochs after a fall in which nothing is counted
  double min_lr = 0.0;
  double eps = 1e-8;  // smaller changes are not made
  KILN_CONFIG(PlateauOptions, mode, factor, patience, threshold, threshold_mode, cooldown, min_lr,
              eps)
};

// What a saved run continues from.
struct PlateauState {
  double best = std::numeric_limits<double>::infinity();
  int64_t num_bad_epochs = 0;
  int64_t cooldown_counter = 0;
  int64_t last_epoch = 0;
  KILN_CONFIG(PlateauState, best, num_bad_epochs, cooldown_counter, last_epoch)
};

// Multiplies the rate of each group of an optimizer, which must outlive it. Throws ValueError
// unless factor is below 1.
class ReduceLROnPlateau {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, const PlateauOptions& options = {});

  // To be called after each epoch with what it measured.
  void step(double value);
  std::vector<double> get_last_lr() const;
  const PlateauState& state() const { return state_; }
  void load_state(const PlateauState& state) { state_ = state; }

 private:
  bool is_better(double value) const;

  Optimizer* optimizer_;
  PlateauOptions options_;
  PlateauState state_;
};

}  // namespace kiln::optim
