#include "kiln/optim/adam.h"

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/optim/adamw.h"
#include "tests/optim/trajectory.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::optim::Adam;
using kiln::optim::AdamW;
using kiln::test::follows;
using kiln::test::message_of;
using kiln::test::TwoParams;

// Expected values: PyTorch's torch.optim.Adam and AdamW with the same gradients.

TEST_CASE("Adam: defaults") {
  TwoParams params;
  Adam optimizer(params.list(), {.lr = 0.1});
  CHECK(follows(params, optimizer,
                {{0.90000001, -1.900000005, 0.400000003, 0.349999999, -0.84999999},
                 {0.803481814, -1.803481805, 0.303481803, 0.443217961, -0.943217942},
                 {0.707681696, -1.707681685, 0.207681682, 0.515275716, -1.015275687},
                 {0.611640672, -1.61164066, 0.111640656, 0.545393464, -1.04539343}}));
}

TEST_CASE("Adam: weight decay goes through the gradient; other betas and eps") {
  TwoParams params;
  Adam optimizer(params.list(), {.lr = 0.1, .betas = {0.8, 0.9}, .eps = 1e-6, .weight_decay = 0.1});
  CHECK(follows(params, optimizer,
                {{0.9000005, -1.90000025, 0.400000286, 0.349999871, -0.849996},
                 {0.800564516, -1.800661624, 0.302287304, 0.441892002, -0.822828468},
                 {0.701207336, -1.70143415, 0.204926822, 0.506231186, -0.753339292},
                 {0.601549868, -1.601907046, 0.107113658, 0.516703494, -0.670628667}}));
}

TEST_CASE("Adam: amsgrad") {
  TwoParams params;
  Adam optimizer(params.list(), {.lr = 0.1, .betas = {0.5, 0.6}, .amsgrad = true});
  CHECK(follows(params, optimizer,
                {{0.90000001, -1.900000005, 0.400000003, 0.349999999, -0.84999999},
                 {0.801705378, -1.80170537, 0.301705368, 0.434327402, -0.934327384},
                 {0.702559369, -1.702559359, 0.202559356, 0.474327401, -0.974327378},
                 {0.602203617, -1.602203605, 0.102203601, 0.45465904, -0.954659019}}));
}

TEST_CASE("AdamW: weight decay apart from the gradient, 0.01 by default") {
  TwoParams params;
  AdamW optimizer(params.list(), {.lr = 0.1});
  CHECK(optimizer.type_name() == "AdamW");
  CHECK(follows(params, optimizer,
                {{0.89900001, -1.898000005, 0.399500003, 0.349749999, -0.84924999},
                 {0.801582814, -1.799583805, 0.302582303, 0.442618211, -0.941618692},
                 {0.704981113, -1.701984101, 0.2064796, 0.514233348, -1.012734818},
                 {0.608235108, -1.604241092, 0.110232094, 0.543836862, -1.041839827}}));
}

TEST_CASE("AdamW: amsgrad") {
  TwoParams params;
  AdamW optimizer(params.list(),
                  {.lr = 0.1, .betas = {0.5, 0.6}, .weight_decay = 0.3, .amsgrad = true});
  CHECK(follows(params, optimizer,
                {{0.87000001, -1.840000005, 0.385000003, 0.342499999, -0.82749999},
                 {0.745605378, -1.68650537, 0.275155368, 0.416552402, -0.887002384},
                 {0.624091207, -1.536764198, 0.167754695, 0.444055829, -0.900392307},
                 {0.505012719, -1.390305518, 0.062366299, 0.411065793, -0.853712179}}));
}

TEST_CASE("Adam: options that make no sense") {
  TwoParams params;
  CHECK(message_of<ValueError>([&] { Adam(params.list(), {.eps = -1e-8}); }) ==
        "Adam: eps must be >= 0; got -1e-08");
  CHECK(message_of<ValueError>([&] {
          Adam(params.list(), {.betas = {0.9, 1.0}});
        }) == "Adam: each of betas must be in [0, 1); got {0.9, 1}");
  CHECK(message_of<ValueError>([&] { AdamW(params.list(), {.lr = -1.0}); }) ==
        "AdamW: lr must be >= 0; got -1");
  CHECK(message_of<ValueError>([&] {
          AdamW(params.list(), {.betas = {-0.1, 0.999}});
        }) == "AdamW: each of betas must be in [0, 1); got {-0.1, 0.999}");
}
