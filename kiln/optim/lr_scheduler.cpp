#include "kiln/optim/lr_scheduler.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kiln/core/error.h"

namespace kiln::optim {

void LRScheduler::set_epoch(int64_t epoch) {
  if (epoch < 0) throw_error<ValueError>("LRScheduler: an epoch must be >= 0; got ", epoch);
  epoch_ = epoch;
  for (ParamGroup& group : optimizer_->param_groups()) group.lr = lr_at(group.initial_lr, epoch);
  if (const std::optional<double> momentum = momentum_at(epoch)) {
    optimizer_->set_momentum(*momentum);
  }
}

std::vector<double> LRScheduler::get_last_lr() const {
  std::vector<double> out;
  for (const ParamGroup& group : optimizer_->param_groups()) out.push_back(group.lr);
  return out;
}

StepLR::StepLR(Optimizer& optimizer, int64_t step_size, double gamma)
    : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  if (step_size < 1) throw_error<ValueError>("StepLR: step_size must be >= 1; got ", step_size);
  set_epoch(0);
}

double StepLR::lr_at(double base, int64_t epoch) const {
  return base * std::pow(gamma_, static_cast<double>(epoch / step_size_));
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min)
    : LRScheduler(optimizer), t_max_(t_max), eta_min_(eta_min) {
  if (t_max < 1) throw_error<ValueError>("CosineAnnealingLR: t_max must be >= 1; got ", t_max);
  set_epoch(0);
}

double CosineAnnealingLR::lr_at(double base, int64_t epoch) const {
  const double turn = static_cast<double>(epoch) / static_cast<double>(t_max_);
  return eta_min_ + (base - eta_min_) * (1.0 + std::cos(std::numbers::pi * turn)) / 2.0;
}

LinearLR::LinearLR(Optimizer& optimizer, double start_factor, double end_factor,
                   int64_t total_iters)
    : LRScheduler(optimizer),
      start_factor_(start_factor),
      end_factor_(end_factor),
      total_iters_(total_iters) {
  if (!(start_factor > 0.0 && start_factor <= 1.0)) {
    throw_error<ValueError>("LinearLR: start_factor must be in (0, 1]; got ", start_factor);
  }
  if (!(end_factor >= 0.0 && end_factor <= 1.0)) {
    throw_error<ValueError>("LinearLR: end_factor must be in [0, 1]; got ", end_factor);
  }
  if (total_iters < 1) {
    throw_error<ValueError>("LinearLR: total_iters must be >= 1; got ", total_iters);
  }
  set_epoch(0);
}

double LinearLR::lr_at(double base, int64_t epoch) const {
  const double done =
      static_cast<double>(std::min(epoch, total_iters_)) / static_cast<double>(total_iters_);
  return base * (start_factor_ + (end_factor_ - start_factor_) * done);
}

SequentialLR::SequentialLR(Optimizer& optimizer,
                           std::vector<std::shared_ptr<LRScheduler>> schedulers,
                           std::vector<int64_t> milestones)
    : LRScheduler(optimizer),
      schedulers_(std::move(schedulers)),
      milestones_(std::move(milestones)) {
  if (schedulers_.size() != milestones_.size() + 1) {
    throw_error<ValueError>("SequentialLR: there must be one milestone less than schedulers; got ",
                            milestones_.size(), " and ", schedulers_.size());
  }
  for (const auto& scheduler : schedulers_) {
    if (scheduler == nullptr) throw_error<ValueError>("SequentialLR: a scheduler is null");
  }
  if (!std::is_sorted(milestones_.begin(), milestones_.end())) {
    throw_error<ValueError>("SequentialLR: milestones must ascend");
  }
  set_epoch(0);
}

std::pair<const LRScheduler*, int64_t> SequentialLR::at(int64_t epoch) const {
  const auto next = std::upper_bound(milestones_.begin(), milestones_.end(), epoch);
  const auto i = static_cast<size_t>(next - milestones_.begin());
  return {schedulers_[i].get(), i == 0 ? epoch : epoch - milestones_[i - 1]};
}

double SequentialLR::lr_at(double base, int64_t epoch) const {
  const auto [schedule, own] = at(epoch);
  return schedule->lr_at(base, own);
}

std::optional<double> SequentialLR::momentum_at(int64_t epoch) const {
  const auto [schedule, own] = at(epoch);
  return schedule->momentum_at(own);
}

}  // namespace kiln::optim
