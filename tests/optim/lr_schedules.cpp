// More schedules against PyTorch 2.13's rates, and against formulas worked out by hand.
#include "kiln/optim/lr_schedules.h"

#include <cmath>

#include <doctest/doctest.h>

#include "kiln/optim/adagrad.h"
#include "kiln/optim/adamw.h"
#include "kiln/optim/reduce_lr_on_plateau.h"
#include "kiln/optim/sgd.h"
#include "kiln/tensor/creation.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::test;

namespace {

optim::SGD make_sgd(double lr = 0.5) {
  return optim::SGD({ones({1}, {.requires_grad = true})}, {.lr = lr});
}

void check_rates(optim::LRScheduler& schedule, const std::vector<double>& rates) {
  for (size_t i = 0; i < rates.size(); ++i) {
    CAPTURE(i);
    CHECK(schedule.get_last_lr()[0] == doctest::Approx(rates[i]).epsilon(1e-8));
    CHECK(schedule.lr_at(0.5, static_cast<int64_t>(i)) == doctest::Approx(rates[i]).epsilon(1e-8));
    if (i + 1 < rates.size()) schedule.step();
  }
}

}  // namespace

TEST_CASE("schedules: PyTorch's rates") {
  {
    optim::SGD sgd = make_sgd();
    optim::ConstantLR schedule(sgd, 0.25, 3);
    check_rates(schedule, {0.125, 0.125, 0.125, 0.5, 0.5, 0.5});
  }
  {
    optim::SGD sgd = make_sgd();
    optim::MultiStepLR schedule(sgd, {2, 5, 5}, 0.5);
    check_rates(schedule, {0.5, 0.5, 0.25, 0.25, 0.25, 0.0625, 0.0625, 0.0625});
  }
  {
    optim::SGD sgd = make_sgd();
    optim::ExponentialLR schedule(sgd, 0.9);
    check_rates(schedule, {0.5, 0.45, 0.405, 0.3645, 0.32805, 0.295245});
  }
  {
    optim::SGD sgd = make_sgd();
    optim::PolynomialLR schedule(sgd, 4, 2.0);
    check_rates(schedule, {0.5, 0.28125, 0.125, 0.03125, 0.0, 0.0, 0.0});
  }
  {
    optim::SGD sgd = make_sgd();
    optim::LambdaLR schedule(sgd, [](int64_t e) { return 1.0 / (1.0 + double(e)); });
    check_rates(schedule, {0.5, 0.25, 0.166666667, 0.125, 0.1});
  }
  {
    optim::SGD sgd = make_sgd();
    optim::CosineAnnealingWarmRestarts schedule(sgd, 2, 2, 0.1);
    check_rates(schedule,
                {0.5, 0.3, 0.5, 0.441421356, 0.3, 0.158578644, 0.5, 0.484775907, 0.441421356});
  }
  {
    optim::SGD sgd = make_sgd();
    optim::CosineAnnealingWarmRestarts schedule(sgd, 3);
    check_rates(schedule, {0.5, 0.375, 0.125, 0.5, 0.375, 0.125});
  }
  {
    optim::SGD sgd = make_sgd();
    optim::OneCycleLR schedule(sgd, {.max_lr = 1.0, .total_steps = 10});
    check_rates(schedule, {0.04, 0.52, 1.0, 0.950484632, 0.811745654, 0.611262022, 0.388741978,
                           0.188258346, 0.049519368, 4e-06});
  }
  {
    optim::SGD sgd = make_sgd();
    optim::OneCycleLR schedule(sgd, {.max_lr = 1.0,
                                     .total_steps = 10,
                                     .anneal_strategy = optim::Anneal::linear,
                                     .three_phase = true});
    check_rates(schedule,
                {0.04, 0.52, 1.0, 0.52, 0.04, 0.0320008, 0.0240016, 0.0160024, 0.0080032, 4e-06});
  }
  {
    optim::SGD sgd = make_sgd();
    optim::CyclicLR schedule(sgd, {.max_lr = 1.0,
                                   .step_size_up = 3,
                                   .step_size_down = 2,
                                   .mode = optim::CyclicMode::triangular2});
    check_rates(schedule, {0.5, 0.666666667, 0.833333333, 1.0, 0.75, 0.5, 0.583333333, 0.666666667,
                           0.75, 0.625});
  }
  {
    optim::SGD sgd = make_sgd();
    optim::CyclicLR schedule(
        sgd,
        {.max_lr = 1.0, .step_size_up = 2, .mode = optim::CyclicMode::exp_range, .gamma = 0.9});
    check_rates(schedule, {0.5, 0.725, 0.905, 0.68225, 0.5, 0.6476225, 0.7657205});
  }
}

namespace {

// The momentum at each step, beginning with the present one.
void check_momenta(optim::LRScheduler& schedule, const optim::Optimizer& optimizer,
                   const std::vector<double>& expected) {
  for (const double momentum : expected) {
    CHECK(*optimizer.momentum() == doctest::Approx(momentum));
    schedule.step();
  }
}

}  // namespace

// The expected numbers are PyTorch's.
TEST_CASE("learning rates: cycles move the momentum the other way") {
  {
    optim::SGD sgd = make_sgd();
    optim::OneCycleLR schedule(sgd, {.max_lr = 1.0, .total_steps = 10});
    check_momenta(schedule, sgd,
                  {0.95, 0.9, 0.85, 0.854951557, 0.868825510, 0.888873953, 0.911126047, 0.931174490,
                   0.945048443, 0.95});
  }
  {
    const Tensor p = zeros({1}).requires_grad_();
    optim::AdamW adam({p}, {.lr = 0.1, .betas = {0.5, 0.9}});
    optim::OneCycleLR schedule(adam, {.max_lr = 1.0,
                                      .total_steps = 10,
                                      .anneal_strategy = optim::Anneal::linear,
                                      .three_phase = true,
                                      .base_momentum = 0.6,
                                      .max_momentum = 0.8});
    check_momenta(schedule, adam, {0.8, 0.7, 0.6, 0.7, 0.8, 0.8, 0.8});
    CHECK(adam.options().betas[1] == 0.9);
  }
  {
    optim::SGD sgd = make_sgd();
    optim::CyclicLR schedule(sgd, {.max_lr = 1.0, .step_size_up = 2, .step_size_down = 4});
    check_momenta(schedule, sgd, {0.9, 0.85, 0.8, 0.825, 0.85, 0.875, 0.9, 0.85});
  }
  {
    optim::SGD sgd = make_sgd();
    optim::CyclicLR schedule(sgd, {.max_lr = 1.0, .step_size_up = 2, .cycle_momentum = false});
    check_momenta(schedule, sgd, {0.0, 0.0});
  }
  {
    const Tensor p = zeros({1}).requires_grad_();
    optim::Adagrad adagrad({p});
    CHECK(message_of<ValueError>([&] {
            optim::OneCycleLR(adagrad, {.max_lr = 1.0, .total_steps = 5});
          }) == "OneCycleLR: Adagrad has no momentum; try .cycle_momentum = false");
    CHECK(message_of<ValueError>([&] {
            optim::SGD sgd = make_sgd();
            optim::CyclicLR(sgd, {.max_lr = 1.0, .max_momentum = 1.5});
          }) == "CyclicLR: base_momentum and max_momentum must be in [0, 1); got 0.8 and 1.5");
  }
}

TEST_CASE("Optimizer: momentum can be read and set") {
  Tensor p = zeros({1}).requires_grad_();
  optim::SGD sgd({p}, {.lr = 1.0});
  CHECK(*sgd.momentum() == 0.0);
  p.set_grad(ones({1}));
  sgd.step();  // -1: without momentum there is no buffer
  sgd.set_momentum(0.5);
  sgd.step();  // the buffer is 1 now
  sgd.step();  // and 1.5
  CHECK(p.item() == -3.5);
  CHECK(sgd.state_dict().tensors.contains("state.0.momentum_buffer"));
  CHECK_THROWS_AS(sgd.set_momentum(-1.0), ValueError);
  CHECK(*sgd.momentum() == 0.5);
  optim::Adagrad adagrad({p});
  CHECK(!adagrad.momentum());
  CHECK(message_of<ValueError>([&] { adagrad.set_momentum(0.5); }) ==
        "Adagrad: there is no momentum to be set");
}

TEST_CASE("NoamLR: rises linearly, then falls with the square root") {
  optim::SGD sgd = make_sgd(2.0);
  optim::NoamLR schedule(sgd, 16, 4);
  // 2 / sqrt(16) min(t^-1/2, t 4^-3/2)
  CHECK(schedule.lr_at(2.0, 0) == doctest::Approx(0.5 / 8.0));
  CHECK(schedule.lr_at(2.0, 3) == doctest::Approx(0.25));
  CHECK(schedule.lr_at(2.0, 15) == doctest::Approx(0.125));
  CHECK(sgd.param_groups()[0].lr == doctest::Approx(0.5 / 8.0));
}

TEST_CASE("ComposedLR: mean, sum and product") {
  optim::SGD sgd = make_sgd();
  const std::vector<std::shared_ptr<optim::LRScheduler>> parts = {
      std::make_shared<optim::ExponentialLR>(sgd, 0.5),
      std::make_shared<optim::ConstantLR>(sgd, 0.25, 10)};
  const auto rate = [&](optim::RateReduction reduction) {
    return optim::ComposedLR(sgd, parts, reduction).lr_at(0.8, 2);
  };
  CHECK(rate(optim::RateReduction::average) == doctest::Approx((0.2 + 0.2) / 2.0));
  CHECK(rate(optim::RateReduction::sum) == doctest::Approx(0.4));
  CHECK(rate(optim::RateReduction::product) == doctest::Approx(0.8 * 0.25 * 0.25));
}

TEST_CASE("ReduceLROnPlateau: patience, cooldown and the least rate") {
  optim::SGD sgd = make_sgd(1.0);
  optim::ReduceLROnPlateau schedule(sgd,
                                    {.factor = 0.5, .patience = 1, .cooldown = 2, .min_lr = 0.2});
  const auto after = [&](double value) {
    schedule.step(value);
    return schedule.get_last_lr()[0];
  };
  CHECK(after(3.0) == 1.0);
  CHECK(after(2.0) == 1.0);
  CHECK(after(2.0) == 1.0);  // not better: one epoch of patience
  CHECK(after(2.0) == 0.5);  // the second one
  const optim::PlateauState saved =
      optim::PlateauState::from_json_string(schedule.state().to_json_string());
  CHECK(after(2.0) == 0.5);  // cooldown
  CHECK(after(2.0) == 0.5);
  CHECK(after(2.0) == 0.5);
  CHECK(after(2.0) == 0.25);
  CHECK(after(std::nan("")) == 0.25);
  for (int i = 0; i < 10; ++i) schedule.step(5.0);
  CHECK(schedule.get_last_lr()[0] == 0.2);
  schedule.load_state(saved);
  CHECK(schedule.state().cooldown_counter == 2);
  CHECK(schedule.state().best == 2.0);
}

TEST_CASE("ReduceLROnPlateau: larger is better") {
  optim::SGD sgd = make_sgd(1.0);
  optim::ReduceLROnPlateau schedule(sgd, {.mode = optim::PlateauMode::max,
                                          .patience = 0,
                                          .threshold = 0.1,
                                          .threshold_mode = optim::ThresholdMode::abs});
  schedule.step(0.5);
  CHECK(sgd.param_groups()[0].lr == 1.0);
  schedule.step(0.55);  // less than 0.1 better
  CHECK(sgd.param_groups()[0].lr == doctest::Approx(0.1));
}

TEST_CASE("schedules: options that make no sense") {
  optim::SGD sgd = make_sgd();
  CHECK(message_of<ValueError>([&] { optim::PolynomialLR(sgd, 0); }) ==
        "PolynomialLR: total_iters must be >= 1; got 0");
  CHECK(message_of<ValueError>([&] { optim::ConstantLR(sgd, 2.0); }) ==
        "ConstantLR: factor must be in [0, 1]; got 2");
  CHECK(message_of<ValueError>([&] { optim::ReduceLROnPlateau(sgd, {.factor = 1.0}); }) ==
        "ReduceLROnPlateau: factor must be in [0, 1); got 1");
  CHECK_THROWS_AS(optim::NoamLR(sgd, 0), ValueError);
  CHECK_THROWS_AS(optim::LambdaLR(sgd, nullptr), ValueError);
  CHECK_THROWS_AS(optim::CosineAnnealingWarmRestarts(sgd, 0), ValueError);
  optim::OneCycleOptions no_steps;
  no_steps.max_lr = 1.0;
  CHECK_THROWS_AS(optim::OneCycleLR(sgd, no_steps), ValueError);
  CHECK_THROWS_AS(optim::OneCycleLR(sgd, {.max_lr = 1.0, .total_steps = 3, .div_factor = 0.0}),
                  ValueError);
  CHECK_THROWS_AS(optim::CyclicLR(sgd, {}), ValueError);
  CHECK_THROWS_AS(optim::ComposedLR(sgd, {}), ValueError);
  optim::OneCycleLR once(sgd, {.max_lr = 1.0, .total_steps = 1});
  once.step();
  CHECK_THROWS_AS(once.step(), ValueError);
}
