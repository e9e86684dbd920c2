// AveragedModel: means worked out by hand.
#include "kiln/optim/averaged_model.h"

#include <doctest/doctest.h>

#include "kiln/nn/batch_norm.h"
#include "kiln/nn/linear.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "tests/support/near.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::test;

namespace {

void set(nn::Linear& fc, double value) {
  NoGradGuard no_grad;
  fc.weight->fill_(value);
  fc.bias->fill_(-value);
}

}  // namespace

TEST_CASE("AveragedModel: the plain mean") {
  nn::Linear fc({.in_features = 1, .out_features = 1});
  optim::AveragedModel mean(fc);
  for (const double value : {1.0, 4.0, 10.0}) {
    set(fc, value);
    mean.update_parameters(fc);
  }
  CHECK(mean.n_averaged() == 3);
  CHECK(near(mean.module.weight->detach().flatten(), {5.0}, 1e-6));
  CHECK(near(mean.module(ones({1, 1})).detach().flatten(), {0.0}, 1e-6, 1e-6));
  CHECK(near(fc.weight->detach().flatten(), {10.0}));
}

TEST_CASE("AveragedModel: an exponential average") {
  nn::Linear fc({.in_features = 1, .out_features = 1});
  optim::AveragedModel ema(fc, {.decay = 0.75});
  for (const double value : {1.0, 5.0, 9.0}) {
    set(fc, value);
    ema.update_parameters(fc);
  }
  CHECK(near(ema.module.weight->detach().flatten(), {0.75 * 2.0 + 0.25 * 9.0}, 1e-6));
}

TEST_CASE("AveragedModel: an average is resumed") {
  nn::Linear fc({.in_features = 1, .out_features = 1});
  optim::AveragedModel before(fc, {.decay = 0.75});
  for (const double value : {1.0, 5.0}) {
    set(fc, value);
    before.update_parameters(fc);
  }
  optim::AveragedModel ema(fc, {.decay = 0.75});
  ema.module.load_state_dict(before.module.state_dict());
  ema.set_n_averaged(before.n_averaged());
  set(fc, 9.0);
  ema.update_parameters(fc);
  CHECK(ema.n_averaged() == 3);
  CHECK(near(ema.module.weight->detach().flatten(), {0.75 * 2.0 + 0.25 * 9.0}, 1e-6));
  CHECK(message_of<ValueError>([&] { ema.set_n_averaged(-1); }) ==
        "AveragedModel: n_averaged must be >= 0; got -1");
}

TEST_CASE("AveragedModel: buffers are copied, or averaged") {
  for (const bool average : {false, true}) {
    nn::BatchNorm2d norm({.num_features = 1});
    optim::AveragedModel mean(norm, {.use_buffers = average});
    for (const double value : {2.0, 4.0}) {
      norm.running_mean->fill_(value);
      mean.update_parameters(norm);
    }
    CHECK(near(mean.module.running_mean->flatten(), {average ? 3.0 : 4.0}));
  }
}

TEST_CASE("AveragedModel: bad input") {
  nn::Linear fc({.in_features = 1, .out_features = 1}), wide({.in_features = 2, .out_features = 1});
  CHECK(message_of<ValueError>([&] { optim::AveragedModel(fc, {.decay = 1.5}); }) ==
        "AveragedModel: decay must be in [0, 1]; got 1.5");
  optim::AveragedModel mean(fc);
  CHECK(message_of<ValueError>([&] { mean.update_parameters(wide); }) ==
        "AveragedModel: parameter 0 has another shape; got [1, 2]; expected [1, 1]");
  CHECK(mean.n_averaged() == 0);
}
