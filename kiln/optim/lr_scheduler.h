// Learning rate schedules: each is a function of the number of epochs (or steps, as the caller
// counts).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kiln/optim/optimizer.h"

namespace kiln::optim {

// Sets the lr of every group of an optimizer, which must outlive it: at once to that of epoch 0,
// then at each step() to that of the next epoch. Rates are computed from each group's initial_lr,
// so that a schedule continues from any epoch.
class LRScheduler {
 public:
  virtual ~LRScheduler() = default;
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;

  // The rate at an epoch for a group that began with `base`.
  virtual double lr_at(double base, int64_t epoch) const = 0;

  // The momentum at an epoch, in a schedule that sets it, too: see Optimizer::set_momentum().
  virtual std::optional<double> momentum_at(int64_t epoch) const {
    static_cast<void>(epoch);
    return {};
  }

  // To be called after the optimizer's step.
  void step() { set_epoch(epoch_ + 1); }
  int64_t last_epoch() const { return epoch_; }
  // Goes to an epoch, as when training is resumed. Throws ValueError below 0.
  void set_epoch(int64_t epoch);
  // The present rate of each group.
  std::vector<double> get_last_lr() const;

 protected:
  explicit LRScheduler(Optimizer& optimizer) : optimizer_(&optimizer) {}

 private:
  Optimizer* optimizer_;
  int64_t epoch_ = 0;
};

// base gamma^floor(epoch / step_size).
class StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1);
  double lr_at(double base, int64_t epoch) const override;

 private:
  int64_t step_size_;
  double gamma_;
};

// eta_min + (base - eta_min) (1 + cos(pi epoch / t_max)) / 2 (Loshchilov & Hutter, 2017, without
// restarts).
class CosineAnnealingLR : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min = 0.0);
  double lr_at(double base, int64_t epoch) const override;

 private:
  int64_t t_max_;
  double eta_min_;
};

// Linear warm-up: base times a factor that goes from start_factor to end_factor in total_iters
// epochs and stays there.
class LinearLR : public LRScheduler {
 public:
  LinearLR(Optimizer& optimizer, double start_factor = 1.0 / 3.0, double end_factor = 1.0,
           int64_t total_iters = 5);
  double lr_at(double base, int64_t epoch) const override;

 private:
  double start_factor_;
  double end_factor_;
  int64_t total_iters_;
};

// One schedule after another: schedulers[i] from milestones[i - 1] on, counting its epochs from
// there. Warm-up and decay: SequentialLR(optimizer, {make_shared<LinearLR>(..),
// make_shared<CosineAnnealingLR>(..)}, {5}).
class SequentialLR : public LRScheduler {
 public:
  SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<LRScheduler>> schedulers,
               std::vector<int64_t> milestones);
  double lr_at(double base, int64_t epoch) const override;
  std::optional<double> momentum_at(int64_t epoch) const override;

 private:
  // Which schedule an epoch belongs to, and which of its own epochs it is.
  std::pair<const LRScheduler*, int64_t> at(int64_t epoch) const;

  std::vector<std::shared_ptr<LRScheduler>> schedulers_;
  std::vector<int64_t> milestones_;
};

}  // namespace kiln::optim
