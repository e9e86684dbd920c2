#include "kiln/optim/sgd.h"

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "tests/optim/trajectory.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::optim::SGD;
using kiln::test::follows;
using kiln::test::message_of;
using kiln::test::TwoParams;

// Expected values: PyTorch's torch.optim.SGD with the same gradients.

TEST_CASE("SGD: plain") {
  TwoParams params;
  SGD optimizer(params.list(), {.lr = 0.1});
  CHECK(follows(params, optimizer,
                {{0.99, -1.98, 0.47, 0.33, -0.76},
                 {0.97, -1.94, 0.41, 0.37, -0.765},
                 {0.94, -1.88, 0.32, 0.37, -0.765},
                 {0.9, -1.8, 0.2, 0.33, -0.76}}));
}

TEST_CASE("SGD: weight decay") {
  TwoParams params;
  SGD optimizer(params.list(), {.lr = 0.1, .weight_decay = 0.01});
  CHECK(follows(params, optimizer,
                {{0.989, -1.978, 0.4695, 0.32975, -0.75925},
                 {0.968011, -1.936022, 0.4090305, 0.36942025, -0.76349075},
                 {0.937042989, -1.874085978, 0.318621469, 0.36905083, -0.762727259},
                 {0.896105946, -1.792211892, 0.198302848, 0.328681779, -0.756964532}}));
}

TEST_CASE("SGD: momentum") {
  TwoParams params;
  SGD optimizer(params.list(), {.lr = 0.1, .momentum = 0.9});
  CHECK(follows(params, optimizer,
                {{0.99, -1.98, 0.47, 0.33, -0.76},
                 {0.961, -1.922, 0.383, 0.442, -0.774},
                 {0.9049, -1.8098, 0.2147, 0.5428, -0.7866},
                 {0.81441, -1.62882, -0.05677, 0.59352, -0.79294}}));
}

TEST_CASE("SGD: the first step is not dampened") {
  TwoParams params;
  SGD optimizer(params.list(), {.lr = 0.1, .momentum = 0.9, .dampening = 0.5});
  CHECK(follows(params, optimizer,
                {{0.99, -1.98, 0.47, 0.33, -0.76},
                 {0.971, -1.942, 0.413, 0.422, -0.7715},
                 {0.9389, -1.8778, 0.3167, 0.5048, -0.78185},
                 {0.89001, -1.78002, 0.17003, 0.55932, -0.788665}}));
}

TEST_CASE("SGD: Nesterov's momentum with weight decay") {
  TwoParams params;
  SGD optimizer(params.list(),
                {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
  CHECK(follows(params, optimizer,
                {{0.9791, -1.9582, 0.44205, 0.401525, -0.767575},
                 {0.93032971, -1.86065942, 0.302505105, 0.541359603, -0.783109107},
                 {0.846550013, -1.693100025, 0.059737785, 0.630543534, -0.791792714},
                 {0.721377137, -1.442754273, -0.305594051, 0.634098263, -0.789308353}}));
}

TEST_CASE("SGD: options that make no sense") {
  TwoParams params;
  const auto message = [&params](const optim::SGDOptions& options) {
    return message_of<ValueError>([&] { SGD(params.list(), options); });
  };
  CHECK(message({.lr = -1.0}) == "SGD: lr must be >= 0; got -1");
  CHECK(message({.momentum = -0.5}) == "SGD: momentum must be >= 0; got -0.5");
  CHECK(message({.weight_decay = -1.0}) == "SGD: weight_decay must be >= 0; got -1");
  CHECK(message({.lr = std::nan("")}) == "SGD: lr must be >= 0; got nan");
  CHECK(message({.nesterov = true}) ==
        "SGD: nesterov needs momentum and no dampening; got momentum 0 and dampening 0");
  CHECK(message({.momentum = 0.9, .dampening = 0.1, .nesterov = true}) ==
        "SGD: nesterov needs momentum and no dampening; got momentum 0.9 and dampening 0.1");
}
