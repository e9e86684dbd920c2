#include "kiln/nn/state_dict.h"

#include <doctest/doctest.h>

#include "kiln/core/allocator.h"
#include "kiln/core/error.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "tests/nn/models.h"
#include "tests/support/near.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::nn::IncompatibleKeys;
using kiln::nn::Linear;
using kiln::nn::StateDict;
using kiln::test::kNetKeys;
using kiln::test::message_of;
using kiln::test::near;
using kiln::test::Net;

TEST_CASE("StateDict: an ordered map") {
  StateDict dict = {{"b", ones({1})}, {"a", zeros({2})}};
  CHECK(dict.keys() == std::vector<std::string>{"b", "a"});
  CHECK(dict.size() == 2);
  CHECK(dict.contains("a"));
  CHECK(!dict.contains("c"));
  CHECK(dict.find("c") == nullptr);
  CHECK_THROWS_AS(dict.at("c"), KeyError);
  dict["c"] = full({1}, 4.0);
  dict.set("b", full({1}, 5.0));
  CHECK(dict.keys() == std::vector<std::string>{"b", "a", "c"});
  CHECK(near(dict.at("b"), {5.0}));
  CHECK(dict.erase("b"));
  CHECK(!dict.erase("b"));
  CHECK(dict.keys() == std::vector<std::string>{"a", "c"});
  CHECK(near(dict.at("c"), {4.0}));
  CHECK(dict.at("a").shape() == Shape{2});
}

TEST_CASE("state_dict: PyTorch's keys and order; tensors share memory and are detached") {
  Net net;
  const StateDict dict = net.state_dict();
  CHECK(dict.keys() == kNetKeys);
  const Tensor& weight = dict.at("conv.weight");
  CHECK(!weight.requires_grad());
  CHECK(weight.data_ptr<float>() == net.conv.weight->data_ptr<float>());
  CHECK(net.state_dict("net.").keys().front() == "net.scale");
}

TEST_CASE("load_state_dict: copies into the module's own tensors") {
  manual_seed(1);
  Net source;
  Net target;
  const Tensor handle = *target.conv.weight;
  source.steps->fill_(5);
  const IncompatibleKeys keys = target.load_state_dict(source.state_dict());
  CHECK(keys.empty());
  CHECK(to_string(keys) == "<All keys matched successfully>");
  CHECK(target.conv.weight->is_same(handle));
  CHECK(handle.requires_grad());
  for (const auto& [name, value] : target.state_dict()) {
    CHECK(value.equal(source.state_dict().at(name)));
  }
  // Lazy parameters did not take the source's memory.
  NoGradGuard no_grad;
  source.scale->fill_(9.0);
  CHECK(near(*target.scale, {0, 0, 0}));
  CHECK(target.scale->requires_grad());
}

TEST_CASE("load_state_dict: converts dtypes, keeps the module's") {
  Linear layer(2, 1);
  layer.load_state_dict({{"weight", tensor({{1.0, 2.0}}, {f64})}, {"bias", tensor({3})}});
  CHECK(layer.weight->dtype() == f32);
  CHECK(near(*layer.bias, {3.0}));
  CHECK(layer.bias->dtype() == f32);
  layer.load_state_dict({{"weight", tensor({{4.0, 5.0}}, {f16})}, {"bias", tensor({6.0}, {f64})}});
  CHECK(near(*layer.weight, {4.0, 5.0}));
  CHECK(layer.weight->dtype() == f32);
}

TEST_CASE("load_state_dict: all errors in one message, and nothing changes") {
  Net net;
  StateDict dict = {{"conv.weight", zeros({1})},
                    {"x", zeros({2})},
                    {"block.fc.weight", ones({2, 2})},
                    {"head.0.weight", zeros({2, 2})}};
  const Tensor before = net.block.fc.weight->detach().clone();
  // PyTorch's text, but for its "torch.Size([1])".
  CHECK(message_of<RuntimeError>([&] { net.load_state_dict(dict); }) ==
        "Error(s) in loading state_dict for Net:\n"
        "\tMissing key(s) in state_dict: \"scale\", \"steps\", \"conv.bias\", "
        "\"layers.0.weight\", \"layers.0.bias\", \"layers.1.weight\", \"layers.1.bias\", "
        "\"layers.2.weight\", \"layers.2.bias\", \"block.fc.bias\", \"head.0.bias\". \n"
        "\tUnexpected key(s) in state_dict: \"x\". \n"
        "\tsize mismatch for conv.weight: copying a param with shape [1] from checkpoint, the "
        "shape in current model is [2, 1, 3, 3].\n"
        "\tsize mismatch for head.0.weight: copying a param with shape [2, 2] from checkpoint, "
        "the shape in current model is [2, 3].");
  CHECK(net.block.fc.weight->equal(before));
  // Sizes must match even when keys need not.
  CHECK(message_of<RuntimeError>([&] { net.load_state_dict(dict, false); }).find("Missing") ==
        std::string::npos);
  CHECK(net.block.fc.weight->equal(before));
  CHECK_THROWS_AS(net.load_state_dict({{"scale", Tensor()}}, false), RuntimeError);
}

TEST_CASE("load_state_dict: not strict") {
  Linear layer(2, 1);
  const IncompatibleKeys keys =
      layer.load_state_dict({{"weight", tensor({{1.0, 2.0}})}, {"other", ones({1})}}, false);
  CHECK(keys.missing_keys == std::vector<std::string>{"bias"});
  CHECK(keys.unexpected_keys == std::vector<std::string>{"other"});
  CHECK(to_string(keys) == "_IncompatibleKeys(missing_keys=['bias'], unexpected_keys=['other'])");
  CHECK(near(*layer.weight, {1.0, 2.0}));
  CHECK(!layer.bias.is_initialized());
}

TEST_CASE("load_state_dict: parts that are None and buffers that do not persist have no key") {
  Linear layer(2, 1, false);
  CHECK(message_of<RuntimeError>([&] {
          layer.load_state_dict({{"weight", ones({1, 2})}, {"bias", ones({1})}});
        }).find("Unexpected key(s) in state_dict: \"bias\"") != std::string::npos);
  Net net;
  StateDict dict = net.state_dict();
  CHECK(!dict.contains("scratch"));
  dict.set("scratch", zeros({1}));
  CHECK_THROWS_AS(net.load_state_dict(dict), RuntimeError);
}

TEST_CASE("load_state_dict: one number with one dim fits a 0-d buffer") {
  nn::BatchNorm2d layer(1);
  StateDict dict = layer.state_dict();
  dict.set("num_batches_tracked", tensor(std::vector<int64_t>{4}));
  layer.load_state_dict(dict);
  CHECK(layer.num_batches_tracked->shape() == Shape{});
  CHECK(layer.num_batches_tracked->item<int64_t>() == 4);
}

TEST_CASE("load_state_dict: a lazy model draws no random weights") {
  manual_seed(1);
  StateDict dict;
  dict.set("weight", randn({512, 512}));
  dict.set("bias", randn({512}));
  const RandomStream before = default_generator().state();
  Linear layer(512, 512);
  reset_memory_stats();
  const size_t in_use = memory_stats().bytes_in_use;
  layer.load_state_dict(dict);
  CHECK(default_generator().state().offset == before.offset);
  // One copy of the weights (1 MiB), not a second one that was drawn first.
  CHECK(memory_stats().peak_bytes_in_use - in_use < size_t{3} * 512 * 1024);
  CHECK(layer.weight->equal(dict.at("weight")));
  CHECK(layer.weight->requires_grad());
}

TEST_CASE("state_dict: mappers apply on the way out and in") {
  Linear layer(3, 2, false);
  const auto transposed = [](const Tensor& x) { return x.detach().t().contiguous(); };
  layer.weight.save_mapper(transposed).load_mapper(transposed);
  layer.load_state_dict({{"weight", tensor({{1.0, 4.0}, {2.0, 5.0}, {3.0, 6.0}})}});
  CHECK(layer.weight->shape() == Shape{2, 3});
  CHECK(near(*layer.weight, {1, 2, 3, 4, 5, 6}));
  CHECK(near(layer.state_dict().at("weight"), {1, 4, 2, 5, 3, 6}));
  CHECK(message_of<RuntimeError>([&] {
          layer.load_state_dict({{"weight", ones({2, 3})}});
        }).find("size mismatch for weight") != std::string::npos);
}
