// Parts registered at run time.
#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/optim/optim.h"
#include "tests/nn/models.h"
#include "tests/support/near.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::nn::Linear;
using kiln::nn::Module;
using kiln::test::Block;
using kiln::test::message_of;
using kiln::test::near;

TEST_CASE("register: parts join the same visit, after the members") {
  Block block;
  Linear& head = block.register_module("head", Linear{2, 3});
  nn::Param<Tensor>& gain = block.register_parameter("gain", tensor({2.0, 3.0}));
  nn::Param<Tensor>& lazy = block.register_parameter("lazy", nn::parameter({1}, nn::init::ones_));
  block.register_buffer("mean", zeros({2}));
  block.register_buffer("scratch", zeros({2}), false);
  CHECK(!lazy.is_initialized());
  CHECK(gain->requires_grad());
  CHECK(block.state_dict().keys() == std::vector<std::string>{"gain", "lazy", "mean", "fc.weight",
                                                              "fc.bias", "head.weight",
                                                              "head.bias"});
  CHECK(block.buffers().size() == 2);
  block.eval();
  CHECK(!head.is_training());
  CHECK(to_string(block) ==
        "Block(\n"
        "  (fc): Linear(in_features=2, out_features=2, bias=True)\n"
        "  (act): ReLU()\n"
        "  (head): Linear(in_features=2, out_features=3, bias=True)\n"
        ")");
}

TEST_CASE("register: what is returned leads to the part, and never to a copy of it") {
  Block block;
  const auto fc = block.register_module("head", Linear{2, 3});
  CHECK(fc(ones({1, 2})).shape() == Shape{1, 3});
  CHECK(block.get_parameter("head.weight")->is_same(*fc->weight));
  // libtorch's idioms that hold a part by pointer, or a parameter by its tensor.
  const std::shared_ptr<Linear> shared = block.register_module("s", std::make_shared<Linear>(2, 2));
  CHECK(&block.get_submodule("s") == shared.get());
  Module& erased = block.register_module("e", Linear{1, 1});
  CHECK(erased.type_name() == "Linear");
  const Tensor gain = block.register_parameter("gain", ones({2}));
  CHECK(block.get_parameter("gain")->is_same(gain));
  nn::Buffer& mean = block.register_buffer("mean", zeros({2}));
  CHECK(&block.get_buffer("mean") == &mean);
  // A copy is not to be had: tests/compile/wrong_module.cpp.
  optim::SGD sgd(block.parameters(), {.lr = 1.0});
  sgd.step((gain * tensor({1.0, 2.0}, {f32})).sum().backward());
  CHECK(near(*block.get_parameter("gain"), {0.0, -1.0}));
}

TEST_CASE("register: None is skipped everywhere") {
  Block block;
  CHECK(!block.register_parameter("p", Tensor())->defined());
  block.register_buffer("b", Tensor());
  CHECK(block.state_dict().size() == 2);
  CHECK(block.parameters().size() == 2);
  CHECK(block.buffers().empty());
  block.to(f64);
  block.register_parameter("p", ones({1}));
  CHECK(block.state_dict().contains("p"));
}

TEST_CASE("register: the same kind under the same name is replaced") {
  Block block;
  block.register_buffer("b", zeros({2}));
  block.register_buffer("b", zeros({3}), false);
  CHECK(block.buffers().size() == 1);
  CHECK(!block.state_dict().contains("b"));
  block.register_buffer("b", zeros({3}));
  CHECK(block.state_dict().contains("b"));
  block.register_module("m", Linear{2, 2});
  block.register_module("m", nn::ReLU{});
  CHECK(block.children().size() == 3);
}

TEST_CASE("register: errors") {
  Block block;
  const auto message = [&block](const std::string& name) {
    return message_of<KeyError>([&] { block.register_buffer(name, zeros({1})); });
  };
  CHECK(message("") == "register_buffer: a name must not be empty; got '' in Block");
  CHECK(message("a.b") == "register_buffer: a name must not contain '.'; got 'a.b' in Block");
  CHECK(message("fc") == "register_buffer: a member has that name; got 'fc' in Block");
  block.register_parameter("p", ones({1}));
  CHECK(message("p") == "register_buffer: a part of another kind has that name; got 'p' in Block");
  CHECK_THROWS_AS(block.register_module("p", Linear{1, 1}), KeyError);
  CHECK_THROWS_AS(block.register_module("m", std::shared_ptr<Linear>()), TypeError);
  const Tensor leaf = tensor({1.0}, {.dtype = f32, .requires_grad = true});
  CHECK(message_of<ValueError>([&] { block.register_parameter("q", leaf * 2.0); }) ==
        "register_parameter: 'q' is the result of recorded ops (mul); a parameter must be a leaf, "
        "try detach()");
}
