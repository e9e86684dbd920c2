// Saving and loading an optimizer's state.
#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/optim/adam.h"
#include "kiln/optim/adamw.h"
#include "kiln/optim/sgd.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "tests/optim/trajectory.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::optim::Adam;
using kiln::optim::OptimizerState;
using kiln::optim::SGD;
using kiln::test::message_of;
using kiln::test::near;
using kiln::test::TwoParams;

namespace {

void run(TwoParams& params, optim::Optimizer& optimizer, int64_t from, int64_t to) {
  for (int64_t s = from; s < to; ++s) {
    params.set_grads(s);
    optimizer.step();
  }
}

// Copies values, so that a second optimizer can go on where a first one stopped.
void copy_values(const TwoParams& from, TwoParams& to) {
  NoGradGuard no_grad;
  to.first.copy_(from.first);
  to.second.copy_(from.second);
}

// A half-way state and one that ran through: loading the first into a new optimizer gives the
// second.
template <class O, class Options>
void check_resume(const Options& options) {
  TwoParams whole;
  O whole_optimizer(whole.list(), options);
  run(whole, whole_optimizer, 0, 2);
  const OptimizerState state = whole_optimizer.state_dict();

  TwoParams resumed;
  Options other = options;
  other.lr = 0.7;  // settings come from the state
  O resumed_optimizer(resumed.list(), other);
  copy_values(whole, resumed);
  resumed_optimizer.load_state_dict(state);
  CHECK(resumed_optimizer.param_groups()[0].lr == options.lr);

  run(whole, whole_optimizer, 2, 5);  // the loaded state is a copy
  run(resumed, resumed_optimizer, 2, 5);
  CHECK(resumed.values().equal(whole.values()));
}

}  // namespace

TEST_CASE("optimizer state: resuming is exact") {
  check_resume<SGD>(optim::SGDOptions{.lr = 0.1});
  check_resume<SGD>(optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.5});
  check_resume<Adam>(optim::AdamOptions{.lr = 0.1, .weight_decay = 0.1});
  check_resume<Adam>(optim::AdamOptions{.lr = 0.1, .betas = {0.9, 0.6}, .amsgrad = true});
  check_resume<optim::AdamW>(optim::AdamWOptions{.lr = 0.1});
}

TEST_CASE("optimizer state: names") {
  TwoParams params;
  Adam optimizer({{.params = {params.first}}, {.params = {params.second}, .lr = 0.5}},
                 {.lr = 0.1, .amsgrad = true});
  params.set_grads(0);
  params.second.set_grad(Tensor());
  optimizer.step();
  const OptimizerState state = optimizer.state_dict();
  CHECK(state.tensors.keys() == std::vector<std::string>{"state.0.exp_avg", "state.0.exp_avg_sq",
                                                         "state.0.max_exp_avg_sq"});
  CHECK(near(state.tensors.at("state.0.exp_avg"), {0.01, -0.02, 0.03}));
  CHECK(near(state.tensors.at("state.0.exp_avg_sq"), {0.00001, 0.00004, 0.00009}));
  const std::map<std::string, std::string> expected = {{"optimizer", "Adam"},
                                                       {"options.amsgrad", "true"},
                                                       {"options.beta1", "0.9"},
                                                       {"options.beta2", "0.999"},
                                                       {"options.eps", "1e-08"},
                                                       {"param_groups.0.initial_lr", "0.1"},
                                                       {"param_groups.0.lr", "0.1"},
                                                       {"param_groups.0.size", "1"},
                                                       {"param_groups.0.weight_decay", "0"},
                                                       {"param_groups.1.initial_lr", "0.5"},
                                                       {"param_groups.1.lr", "0.5"},
                                                       {"param_groups.1.size", "1"},
                                                       {"param_groups.1.weight_decay", "0"},
                                                       {"state.0.step", "1"}};
  CHECK(state.scalars == expected);
}

TEST_CASE("optimizer state: options come from the state") {
  TwoParams params;
  Adam saved(params.list(), {.betas = {0.5, 0.999}, .amsgrad = true});
  run(params, saved, 0, 1);
  Adam other(params.list());
  other.load_state_dict(saved.state_dict());
  CHECK(other.options().betas[0] == 0.5);
  CHECK(other.options().amsgrad);
  CHECK(other.state_dict().tensors.contains("state.1.max_exp_avg_sq"));
}

TEST_CASE("optimizer state: what does not fit changes nothing") {
  TwoParams params;
  Adam optimizer(params.list(), {.lr = 0.1});
  run(params, optimizer, 0, 2);
  const OptimizerState good = optimizer.state_dict();
  const auto message = [&](const auto& spoil) {
    OptimizerState state = good;
    spoil(state);
    return message_of<ValueError>([&] { optimizer.load_state_dict(state); });
  };
  CHECK(message([](auto& s) { s.scalars["optimizer"] = "SGD"; }) ==
        "Adam: load_state_dict: the state is that of another optimizer; got SGD");
  CHECK(message([](auto& s) { s.scalars.erase("param_groups.0.lr"); }) ==
        "Adam: load_state_dict: the state has no 'param_groups.0.lr'");
  CHECK(message([](auto& s) { s.scalars["param_groups.0.lr"] = "-1"; }) ==
        "Adam: load_state_dict: param_groups.0.lr must be >= 0; got -1");
  CHECK(message([](auto& s) { s.scalars["options.beta1"] = "0.5x"; }) ==
        "Adam: load_state_dict: 'options.beta1' is no number; got '0.5x'");
  CHECK(message([](auto& s) { s.scalars["options.beta1"] = "1.5"; }) ==
        "Adam: each of betas must be in [0, 1); got {1.5, 0.999}");
  CHECK(message([](auto& s) { s.scalars["param_groups.0.size"] = "3"; }) ==
        "Adam: load_state_dict: group 0 has another size; got 3 parameters; expected 2");
  CHECK(message([](auto& s) { s.scalars["param_groups.1.lr"] = "3"; }) ==
        "Adam: load_state_dict: 'param_groups.1.lr' belongs to nothing in this optimizer");
  CHECK(message([](auto& s) { s.scalars["state.1.step"] = "0"; }) ==
        "Adam: load_state_dict: 'state.1.step' must be at least 1");
  CHECK(message([](auto& s) { s.tensors.erase("state.1.exp_avg_sq"); }) ==
        "Adam: load_state_dict: the state has no tensor 'state.1.exp_avg_sq'");
  CHECK(message([](auto& s) { s.tensors.set("state.1.exp_avg", zeros({2})); }) ==
        "Adam: load_state_dict: 'state.1.exp_avg' has another shape; got [2]; expected [1, 2]");
  CHECK(message([](auto& s) { s.tensors.set("state.7.exp_avg", zeros({2})); }) ==
        "Adam: load_state_dict: the state has tensors that belong to nothing in this optimizer; "
        "got 5; expected 4");
  // As if nothing had been tried.
  TwoParams twin;
  Adam twin_optimizer(twin.list(), {.lr = 0.1});
  run(twin, twin_optimizer, 0, 4);
  run(params, optimizer, 2, 4);
  CHECK(params.values().equal(twin.values()));
}
