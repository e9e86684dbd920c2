// More learning rate schedules, each a function of the epoch; PyTorch's names. Options that make no
// sense throw ValueError.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "kiln/core/config.h"
#include "kiln/optim/lr_scheduler.h"

namespace kiln::optim {

// base factor until total_iters, then base.
class ConstantLR : public LRScheduler {
 public:
  explicit ConstantLR(Optimizer& optimizer, double factor = 1.0 / 3.0, int64_t total_iters = 5);
  double lr_at(double base, int64_t epoch) const override;

 private:
  double factor_;
  int64_t total_iters_;
};

// base gamma^(how many of the milestones have been reached).
class MultiStepLR : public LRScheduler {
 public:
  MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma = 0.1);
  double lr_at(double base, int64_t epoch) const override;

 private:
  std::vector<int64_t> milestones_;
  double gamma_;
};

// base gamma^epoch.
class ExponentialLR : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);
  double lr_at(double base, int64_t epoch) const override;

 private:
  double gamma_;
};

// base (1 - epoch / total_iters)^power, and 0 from total_iters on.
class PolynomialLR : public LRScheduler {
 public:
  explicit PolynomialLR(Optimizer& optimizer, int64_t total_iters = 5, double power = 1.0);
  double lr_at(double base, int64_t epoch) const override;

 private:
  int64_t total_iters_;
  double power_;
};

// base lr_lambda(epoch).
class LambdaLR : public LRScheduler {
 public:
  LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> lr_lambda);
  double lr_at(double base, int64_t epoch) const override;

 private:
  std::function<double(int64_t)> lr_lambda_;
};

// base model_size^(-1/2) min(t^(-1/2), t warmup^(-3/2)), where t = epoch + 1 (Vaswani et al.,
// 2017).
class NoamLR : public LRScheduler {
 public:
  explicit NoamLR(Optimizer& optimizer, int64_t model_size = 512, int64_t warmup = 4000);
  double lr_at(double base, int64_t epoch) const override;

 private:
  int64_t model_size_;
  int64_t warmup_;
};

// eta_min + (base - eta_min) (1 + cos(pi T / T_i)) / 2 (Loshchilov & Hutter, 2017): T counts epochs
// since the last restart. The first restart is after t_0 epochs, each next one after t_mult times
// as many.
class CosineAnnealingWarmRestarts : public LRScheduler {
 public:
  CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t t_0, int64_t t_mult = 1,
                              double eta_min = 0.0);
  double lr_at(double base, int64_t epoch) const override;

 private:
  int64_t t_0_;
  int64_t t_mult_;
  double eta_min_;
};

class Anneal {
  KILN_CHOICE(Anneal, cos, linear)
};

// Up to max_lr and down below where it began, once (Smith & Topin, 2018); an epoch is a batch here.
// From max_lr / div_factor to max_lr in pct_start of total_steps, then to max_lr / div_factor /
// final_div_factor; with three_phase by way of the first rate. The optimizer's own rate does not
// count. With cycle_momentum the momentum (or the first of betas) goes the other way, from
// max_momentum to base_momentum and back; an optimizer that has none throws ValueError. So does a
// step beyond total_steps.
struct OneCycleOptions {
  Required<double> max_lr = {};
  Required<int64_t> total_steps = {};
  double pct_start = 0.3;
  Anneal anneal_strategy = Anneal::cos;
  double div_factor = 25.0;
  double final_div_factor = 1e4;
  bool three_phase = false;
  bool cycle_momentum = true;
  double base_momentum = 0.85;
  double max_momentum = 0.95;
  KILN_CONFIG(OneCycleOptions, max_lr, total_steps, pct_start, anneal_strategy, div_factor,
              final_div_factor, three_phase, cycle_momentum, base_momentum, max_momentum)
};
class OneCycleLR : public LRScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, OneCycleOptions options);
  double lr_at(double base, int64_t epoch) const override;
  std::optional<double> momentum_at(int64_t epoch) const override;

 private:
  // The value at a step of what is `first`, `most` and `last` at the ends of the phases.
  double value_at(int64_t epoch, double first, double most, double last) const;

  OneCycleOptions options_;
};

class CyclicMode {
  KILN_CHOICE(CyclicMode, triangular, triangular2, exp_range)
};

// Up and down between the optimizer's rate and max_lr (Smith, 2017); an epoch is a batch here. Up
// in step_size_up steps, down in step_size_down (0: the same). triangular2 is half as high each
// time, exp_range times gamma^step. With cycle_momentum the momentum (or the first of betas) goes
// the other way, between max_momentum and base_momentum; an optimizer that has none throws
// ValueError.
struct CyclicOptions {
  Required<double> max_lr = {};
  int64_t step_size_up = 2000;
  int64_t step_size_down = 0;
  CyclicMode mode = CyclicMode::triangular;
  double gamma = 1.0;
  bool cycle_momentum = true;
  double base_momentum = 0.8;
  double max_momentum = 0.9;
  KILN_CONFIG(CyclicOptions, max_lr, step_size_up, step_size_down, mode, gamma, cycle_momentum,
              base_momentum, max_momentum)
};
class CyclicLR : public LRScheduler {
 public:
  CyclicLR(Optimizer& optimizer, CyclicOptions options);
  double lr_at(double base, int64_t epoch) const override;
  std::optional<double> momentum_at(int64_t epoch) const override;

 private:
  // How far up a step is, from 0 to 1.
  double height_at(int64_t epoch) const;

  CyclicOptions options_;
};

enum class RateReduction { average, sum, product };
KILN_CONFIG_ENUM(RateReduction, average, sum, product)

// Several schedules at once: the mean, the sum or the product of their rates as parts of base.
class ComposedLR : public LRScheduler {
 public:
  ComposedLR(Optimizer& optimizer, std::vector<std::shared_ptr<LRScheduler>> schedulers,
             RateReduction reduction = RateReduction::product);
  double lr_at(double base, int64_t epoch) const override;
  // That of the last schedule that has one.
  std::optional<double> momentum_at(int64_t epoch) const override;

 private:
  std::vector<std::shared_ptr<LRScheduler>> schedulers_;
  RateReduction reduction_;
};

}  // namespace kiln::optim
