// L-BFGS against PyTorch 2.13's values, and against a problem with a known solution.
#include "kiln/optim/lbfgs.h"

#include <memory>

#include <doctest/doctest.h>

#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "tests/support/near.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::test;
using optim::LBFGS;
using optim::LineSearch;

namespace {

struct Rosenbrock {
  Tensor x = tensor({-1.2, 1.0, 0.5}, {.dtype = f64, .requires_grad = true});
  Tensor loss() {
    const Tensor a = x.slice(0, 0, 2), b = x.slice(0, 1, 3);
    return ((1.0 - a) * (1.0 - a) + (b - a * a) * (b - a * a) * 100.0).sum();
  }
};

}  // namespace

TEST_CASE("LBFGS: steps of a fixed length") {
  Rosenbrock problem;
  LBFGS optimizer({problem.x}, {.lr = 0.01, .max_iter = 5, .history_size = 3});
  const std::vector<std::vector<double>> lines = {{-1.186589765, 0.99219262, 0.508782038},
                                                  {-1.176924632, 0.9873376349, 0.5202595784},
                                                  {-1.168022196, 0.9842975264, 0.534965764},
                                                  {-1.160044902, 0.9826834296, 0.5523871105}};
  for (const auto& line : lines) {
    optimizer.step([&] { return problem.loss(); });
    CHECK(near(problem.x.detach(), line, 1e-8));
  }
  CHECK(optimizer.state().func_evals == 20);
}

TEST_CASE("LBFGS: with a line search, and continued from a saved state") {
  const std::vector<std::vector<double>> lines = {{-0.8774655307, 0.7865341643, 0.6240128605},
                                                  {-0.8405752752, 0.6916421294, 0.466212732},
                                                  {-0.5923462866, 0.3622501259, 0.1138106047},
                                                  {-0.515951254, 0.2593841591, 0.05922340608}};
  Rosenbrock problem;
  auto optimizer = std::make_unique<LBFGS>(
      std::vector<Tensor>{problem.x},
      optim::LBFGSOptions{
          .max_iter = 5, .history_size = 3, .line_search_fn = LineSearch::strong_wolfe});
  for (size_t s = 0; s < lines.size(); ++s) {
    optimizer->step([&] { return problem.loss(); });
    CHECK(near(problem.x.detach(), lines[s], 1e-6));
    const auto saved = optimizer->state_dict();
    optimizer = std::make_unique<LBFGS>(std::vector<Tensor>{problem.x});
    optimizer->load_state_dict(saved);
  }
  CHECK(optimizer->state().func_evals == 25);
}

TEST_CASE("LBFGS: finds the minimum") {
  Rosenbrock problem;
  LBFGS optimizer({problem.x}, {.max_iter = 200, .line_search_fn = LineSearch::strong_wolfe});
  const double first = optimizer.step([&] { return problem.loss(); }).item<double>();
  CHECK(first == doctest::Approx(2.2 * 2.2 + 0.44 * 0.44 * 100 + 0.25 * 100));
  CHECK(near(problem.x.detach(), {1.0, 1.0, 1.0}, 1e-5));
}

TEST_CASE("LBFGS: bad input") {
  Tensor x = ones({2}, {.requires_grad = true}),
         y = ones({2}, {.dtype = f64, .requires_grad = true});
  CHECK(message_of<ValueError>([] { LBFGS(std::vector<Tensor>{}); }) ==
        "LBFGS: there are no parameters to optimize");
  CHECK(message_of<ValueError>([&] {
          LBFGS({x, y});
        }) ==
        "LBFGS: parameters must be of one dtype and device; got float32 on cpu and float64 on cpu");
  CHECK_THROWS_AS(LBFGS({x}, {.history_size = 0}), ValueError);
  CHECK_THROWS_AS(LBFGS({x}, {.lr = -1.0}), ValueError);
  LBFGS optimizer({x});
  CHECK(message_of<ValueError>([&] { optimizer.load_state_dict({}); }) ==
        "LBFGS: load_state_dict: the state is that of another optimizer; got none");
  optimizer.step([&] { return (x * x).sum(); });
  auto state = optimizer.state_dict();
  LBFGS larger({ones({3}, {.requires_grad = true})});
  CHECK(message_of<ValueError>([&] { larger.load_state_dict(state); }) ==
        "LBFGS: load_state_dict: 'd' has another shape; got [2]; expected [3]");
  state.scalars["history"] = "1000000";
  CHECK_THROWS_AS(optimizer.load_state_dict(state), ValueError);
}

TEST_CASE("LBFGS: a closure that differentiates the loss itself, as PyTorch's do") {
  Rosenbrock plain, own;
  const optim::LBFGSOptions options{.max_iter = 5, .line_search_fn = "strong_wolfe"};
  LBFGS expected({plain.x}, options), optimizer({own.x}, options);
  for (int step = 0; step < 3; ++step) {
    expected.step([&] { return plain.loss(); });
    optimizer.step([&] {
      optimizer.zero_grad();
      const Tensor loss = own.loss();
      loss.backward_accumulate();
      return loss;
    });
    CHECK(own.x.detach().equal(plain.x.detach()));
  }
  CHECK(own.x.grad().defined());
  // Gradients that were there before are no part of the loss, and stay.
  plain.x.set_grad(full({3}, 7.0, {.dtype = f64}));
  expected.step([&] { return plain.loss(); });
  CHECK(near(plain.x.grad(), {7, 7, 7}));
  CHECK(message_of<AutodiffError>([&] {
          expected.step([&] {
            const Tensor loss = plain.loss();
            static_cast<void>(loss.backward());
            return loss;
          });
        }).find("LBFGS::step: the closure differentiated the loss") == 0);
  CHECK(near(plain.x.grad(), {7, 7, 7}));
}
