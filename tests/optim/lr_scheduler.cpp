#include "kiln/optim/lr_scheduler.h"

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/optim/sgd.h"
#include "kiln/tensor/creation.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::optim;
using kiln::test::message_of;

namespace {

SGD make_optimizer() {
  return SGD({zeros({1}, {.dtype = f32, .requires_grad = true})}, {.lr = 0.1});
}

// The rates of epochs 0, 1, ... are these.
bool gives(LRScheduler& scheduler, const Optimizer& optimizer,
           const std::vector<double>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (i > 0) scheduler.step();
    if (scheduler.last_epoch() != static_cast<int64_t>(i)) return false;
    if (!(std::abs(optimizer.param_groups()[0].lr - expected[i]) < 1e-11)) return false;
  }
  return true;
}

}  // namespace

// Expected values: PyTorch's schedulers with lr 0.1.

TEST_CASE("StepLR") {
  SGD optimizer = make_optimizer();
  StepLR scheduler(optimizer, 3, 0.5);
  CHECK(gives(scheduler, optimizer, {0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.025, 0.025, 0.025}));
  CHECK(scheduler.get_last_lr() == std::vector{0.025});
}

TEST_CASE("CosineAnnealingLR") {
  SGD optimizer = make_optimizer();
  CosineAnnealingLR scheduler(optimizer, 6, 0.01);
  CHECK(gives(
      scheduler, optimizer,
      {0.1, 0.09397114317, 0.0775, 0.055, 0.0325, 0.01602885683, 0.01, 0.01602885683, 0.0325}));
}

TEST_CASE("LinearLR warms up") {
  SGD optimizer = make_optimizer();
  LinearLR scheduler(optimizer, 0.25, 1.0, 4);
  CHECK(gives(scheduler, optimizer, {0.025, 0.04375, 0.0625, 0.08125, 0.1, 0.1, 0.1}));
}

TEST_CASE("SequentialLR: warm-up, then cosine") {
  SGD optimizer = make_optimizer();
  SequentialLR scheduler(optimizer,
                         {std::make_shared<LinearLR>(optimizer, 0.25, 1.0, 4),
                          std::make_shared<CosineAnnealingLR>(optimizer, 4)},
                         {4});
  CHECK(gives(scheduler, optimizer,
              {0.025, 0.04375, 0.0625, 0.08125, 0.1, 0.085355339059, 0.05, 0.014644660941, 0.0}));
}

TEST_CASE("scheduler: goes on from any epoch, each group from its own rate") {
  SGD optimizer({{.params = {zeros({1}, {.dtype = f32, .requires_grad = true})}},
                 {.params = {zeros({1}, {.dtype = f32, .requires_grad = true})}, .lr = 1.0}},
                {.lr = 0.1});
  StepLR scheduler(optimizer, 2, 0.1);
  scheduler.set_epoch(5);
  CHECK(optimizer.param_groups()[0].lr == doctest::Approx(0.001));
  CHECK(optimizer.param_groups()[1].lr == doctest::Approx(0.01));
  scheduler.step();
  CHECK(optimizer.param_groups()[1].lr == doctest::Approx(0.001));
}

TEST_CASE("scheduler: arguments that make no sense") {
  SGD optimizer = make_optimizer();
  CHECK(message_of<ValueError>([&] { StepLR(optimizer, 0); }) ==
        "StepLR: step_size must be >= 1; got 0");
  CHECK(message_of<ValueError>([&] { CosineAnnealingLR(optimizer, 0); }) ==
        "CosineAnnealingLR: t_max must be >= 1; got 0");
  CHECK(message_of<ValueError>([&] { LinearLR(optimizer, 0.0); }) ==
        "LinearLR: start_factor must be in (0, 1]; got 0");
  CHECK(message_of<ValueError>([&] { LinearLR(optimizer, 0.5, 2.0); }) ==
        "LinearLR: end_factor must be in [0, 1]; got 2");
  CHECK(message_of<ValueError>([&] { SequentialLR(optimizer, {}, {}); }) ==
        "SequentialLR: there must be one milestone less than schedulers; got 0 and 0");
}
