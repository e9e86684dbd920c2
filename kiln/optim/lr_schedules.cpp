#include "kiln/optim/lr_schedules.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kiln/core/error.h"

namespace kiln::optim {

namespace {

void check_at_least(const char* op, const char* name, int64_t value, int64_t least) {
  if (value < least)
    throw_error<ValueError>(op, ": ", name, " must be >= ", least, "; got ", value);
}
void check_above_0(const char* op, const char* name, double value) {
  if (!(value > 0.0)) throw_error<ValueError>(op, ": ", name, " must be > 0; got ", value);
}

// From start, at part = 0, to end, at part = 1, along half a period of the cosine.
double cosine(double start, double end, double part) {
  return end + (start - end) * (1.0 + std::cos(std::numbers::pi * part)) / 2.0;
}

// Of OneCycleLR's or CyclicLR's options.
template <class Options>
void check_momentum(const char* op, const Optimizer& optimizer, const Options& options) {
  if (!options.cycle_momentum) return;
  if (!optimizer.momentum()) {
    throw_error<ValueError>(op, ": ", optimizer.type_name(),
                            " has no momentum; try .cycle_momentum = false");
  }
  for (const double value : {options.base_momentum, options.max_momentum}) {
    if (!(value >= 0.0 && value < 1.0)) {
      throw_error<ValueError>(op, ": base_momentum and max_momentum must be in [0, 1); got ",
                              options.base_momentum, " and ", options.max_momentum);
    }
  }
}

}  // namespace

ConstantLR::ConstantLR(Optimizer& optimizer, double factor, int64_t total_iters)
    : LRScheduler(optimizer), factor_(factor), total_iters_(total_iters) {
  if (!(factor >= 0.0 && factor <= 1.0)) {
    throw_error<ValueError>("ConstantLR: factor must be in [0, 1]; got ", factor);
  }
  set_epoch(0);
}
double ConstantLR::lr_at(double base, int64_t epoch) const {
  return epoch < total_iters_ ? base * factor_ : base;
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma)
    : LRScheduler(optimizer), milestones_(std::move(milestones)), gamma_(gamma) {
  std::sort(milestones_.begin(), milestones_.end());
  set_epoch(0);
}
double MultiStepLR::lr_at(double base, int64_t epoch) const {
  const auto next = std::upper_bound(milestones_.begin(), milestones_.end(), epoch);
  return base * std::pow(gamma_, static_cast<double>(next - milestones_.begin()));
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma)
    : LRScheduler(optimizer), gamma_(gamma) {
  set_epoch(0);
}
double ExponentialLR::lr_at(double base, int64_t epoch) const {
  return base * std::pow(gamma_, static_cast<double>(epoch));
}

PolynomialLR::PolynomialLR(Optimizer& optimizer, int64_t total_iters, double power)
    : LRScheduler(optimizer), total_iters_(total_iters), power_(power) {
  check_at_least("PolynomialLR", "total_iters", total_iters, 1);
  set_epoch(0);
}
double PolynomialLR::lr_at(double base, int64_t epoch) const {
  const auto total = static_cast<double>(total_iters_);
  const double left = 1.0 - static_cast<double>(std::min(epoch, total_iters_)) / total;
  return base * std::pow(left, power_);
}

LambdaLR::LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> lr_lambda)
    : LRScheduler(optimizer), lr_lambda_(std::move(lr_lambda)) {
  if (!lr_lambda_) throw_error<ValueError>("LambdaLR: lr_lambda is empty");
  set_epoch(0);
}
double LambdaLR::lr_at(double base, int64_t epoch) const { return base * lr_lambda_(epoch); }

NoamLR::NoamLR(Optimizer& optimizer, int64_t model_size, int64_t warmup)
    : LRScheduler(optimizer), model_size_(model_size), warmup_(warmup) {
  check_at_least("NoamLR", "model_size", model_size, 1);
  check_at_least("NoamLR", "warmup", warmup, 1);
  set_epoch(0);
}
double NoamLR::lr_at(double base, int64_t epoch) const {
  const auto t = static_cast<double>(epoch + 1);
  const double rise = t * std::pow(static_cast<double>(warmup_), -1.5);
  return base / std::sqrt(static_cast<double>(model_size_)) * std::min(1.0 / std::sqrt(t), rise);
}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t t_0,
                                                         int64_t t_mult, double eta_min)
    : LRScheduler(optimizer), t_0_(t_0), t_mult_(t_mult), eta_min_(eta_min) {
  check_at_least("CosineAnnealingWarmRestarts", "t_0", t_0, 1);
  check_at_least("CosineAnnealingWarmRestarts", "t_mult", t_mult, 1);
  set_epoch(0);
}
double CosineAnnealingWarmRestarts::lr_at(double base, int64_t epoch) const {
  auto left = static_cast<double>(epoch);
  auto length = static_cast<double>(t_0_);
  if (t_mult_ == 1) left = std::fmod(left, length);
  while (left >= length) {
    left -= length;
    length *= static_cast<double>(t_mult_);
  }
  return cosine(base, eta_min_, left / length);
}

OneCycleLR::OneCycleLR(Optimizer& optimizer, OneCycleOptions options)
    : LRScheduler(optimizer), options_(std::move(options)) {
  kiln::detail::check_required(options_, "OneCycleLR");
  check_at_least("OneCycleLR", "total_steps", options_.total_steps, 1);
  check_above_0("OneCycleLR", "div_factor", options_.div_factor);
  check_above_0("OneCycleLR", "final_div_factor", options_.final_div_factor);
  if (!(options_.pct_start >= 0.0 && options_.pct_start <= 1.0)) {
    throw_error<ValueError>("OneCycleLR: pct_start must be in [0, 1]; got ", options_.pct_start);
  }
  check_momentum("OneCycleLR", optimizer, options_);
  set_epoch(0);
}
double OneCycleLR::value_at(int64_t epoch, double first, double most, double last) const {
  const int64_t total = options_.total_steps;
  if (epoch > total) {
    throw_error<ValueError>("OneCycleLR: step ", epoch, " is beyond total_steps, ", total);
  }
  const double up = options_.pct_start * static_cast<double>(total);
  const double end = static_cast<double>(total - 1);
  struct Phase {
    double end, from, to;
  };
  std::vector<Phase> phases = {{up - 1.0, first, most}, {end, most, last}};
  if (options_.three_phase) {
    phases = {{up - 1.0, first, most}, {2.0 * up - 2.0, most, first}, {end, first, last}};
  }
  const auto step = static_cast<double>(epoch);
  double start = 0.0;
  size_t i = 0;
  for (; i + 1 < phases.size() && step > phases[i].end; ++i) start = phases[i].end;
  const double length = phases[i].end - start;
  const double part = length != 0.0 ? (step - start) / length : 1.0;
  if (options_.anneal_strategy == Anneal::cos) return cosine(phases[i].from, phases[i].to, part);
  return phases[i].from + (phases[i].to - phases[i].from) * part;
}
double OneCycleLR::lr_at(double, int64_t epoch) const {
  const double most = options_.max_lr, first = most / options_.div_factor;
  return value_at(epoch, first, most, first / options_.final_div_factor);
}
std::optional<double> OneCycleLR::momentum_at(int64_t epoch) const {
  if (!options_.cycle_momentum) return {};
  const double most = options_.max_momentum;
  return value_at(epoch, most, options_.base_momentum, most);
}

CyclicLR::CyclicLR(Optimizer& optimizer, CyclicOptions options)
    : LRScheduler(optimizer), options_(std::move(options)) {
  kiln::detail::check_required(options_, "CyclicLR");
  check_at_least("CyclicLR", "step_size_up", options_.step_size_up, 1);
  check_at_least("CyclicLR", "step_size_down", options_.step_size_down, 0);
  check_momentum("CyclicLR", optimizer, options_);
  set_epoch(0);
}
double CyclicLR::height_at(int64_t epoch) const {
  const int64_t up = options_.step_size_up;
  const int64_t length = up + (options_.step_size_down == 0 ? up : options_.step_size_down);
  const int64_t cycle = epoch / length, at = epoch % length;
  double height = at <= up ? static_cast<double>(at) / static_cast<double>(up)
                           : static_cast<double>(length - at) / static_cast<double>(length - up);
  if (options_.mode == CyclicMode::triangular2) height *= std::pow(0.5, static_cast<double>(cycle));
  if (options_.mode == CyclicMode::exp_range) {
    height *= std::pow(options_.gamma, static_cast<double>(epoch));
  }
  return height;
}
double CyclicLR::lr_at(double base, int64_t epoch) const {
  return base + (options_.max_lr - base) * height_at(epoch);
}
std::optional<double> CyclicLR::momentum_at(int64_t epoch) const {
  if (!options_.cycle_momentum) return {};
  const double most = options_.max_momentum;
  return most - (most - options_.base_momentum) * height_at(epoch);
}

ComposedLR::ComposedLR(Optimizer& optimizer, std::vector<std::shared_ptr<LRScheduler>> schedulers,
                       RateReduction reduction)
    : LRScheduler(optimizer), schedulers_(std::move(schedulers)), reduction_(reduction) {
  if (schedulers_.empty()) throw_error<ValueError>("ComposedLR: there are no schedulers");
  for (const auto& scheduler : schedulers_) {
    if (scheduler == nullptr) throw_error<ValueError>("ComposedLR: a scheduler is null");
  }
  set_epoch(0);
}
std::optional<double> ComposedLR::momentum_at(int64_t epoch) const {
  std::optional<double> last;
  for (const auto& scheduler : schedulers_) {
    if (const auto momentum = scheduler->momentum_at(epoch)) last = momentum;
  }
  return last;
}
double ComposedLR::lr_at(double base, int64_t epoch) const {
  double sum = 0.0;
  double product = base;
  for (const auto& scheduler : schedulers_) {
    const double rate = scheduler->lr_at(base, epoch);
    sum += rate;
    product *= base != 0.0 ? rate / base : 0.0;
  }
  if (reduction_ == RateReduction::product) return product;
  return reduction_ == RateReduction::sum ? sum : sum / static_cast<double>(schedulers_.size());
}

}  // namespace kiln::optim
