// State dicts: keep_vars, destination, metadata, extra state, hooks, assign.
#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "tests/nn/models.h"
#include "tests/support/near.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::nn::IncompatibleKeys;
using kiln::nn::Linear;
using kiln::nn::Module;
using kiln::nn::StateDict;
using kiln::nn::StateMetadata;
using kiln::test::Block;
using kiln::test::message_of;
using kiln::test::near;

namespace {

using Names = std::vector<std::string>;

// Extra state that is a tensor.
struct Counter : Module {
  int64_t count = 0;
  KILN_MODULE(Counter)
  std::any get_extra_state() const override { return full({}, count, {i64}); }
  void set_extra_state(const std::any& state) override {
    count = std::any_cast<const Tensor&>(state).item<int64_t>();
  }
  int64_t state_version() const override { return 3; }
};

// Extra state that is anything.
struct Labels : Module {
  Names labels;
  Counter counter;
  KILN_MODULE(Labels, counter)
  std::any get_extra_state() const override { return labels; }
  void set_extra_state(const std::any& state) override { labels = std::any_cast<Names>(state); }
};

}  // namespace

TEST_CASE("state_dict: keep_vars gives the module's own tensors") {
  Block block;
  const StateDict dict = block.state_dict("", true);
  CHECK(dict.at("fc.weight").is_same(*block.fc.weight));
  CHECK(dict.at("fc.weight").requires_grad());
  CHECK(!block.state_dict().at("fc.weight").requires_grad());
}

TEST_CASE("state_dict: a destination is added to and returned") {
  Block a;
  Block b;
  StateDict dict = {{"other", ones({1})}};
  StateDict& out = a.state_dict(dict, "a.");
  CHECK(&out == &dict);
  b.state_dict(dict, "b.");
  CHECK(dict.keys() == Names{"other", "a.fc.weight", "a.fc.bias", "b.fc.weight", "b.fc.bias"});
  CHECK(dict.metadata().contains("a.fc"));
}

TEST_CASE("state_dict: metadata holds each module's version") {
  Labels module;
  const StateDict dict = module.state_dict();
  CHECK(dict.metadata() == std::map<std::string, StateMetadata, std::less<>>{
                               {"", {{"version", 1}}}, {"counter", {{"version", 3}}}});
}

TEST_CASE("extra state: tensors and anything else, saved and loaded") {
  Labels source;
  source.labels = {"cat", "dog"};
  source.counter.count = 5;
  const StateDict dict = source.state_dict();
  CHECK(dict.keys() == Names{"counter._extra_state"});
  CHECK(dict.objects().size() == 1);
  CHECK(dict.find_object("_extra_state") != nullptr);
  Labels target;
  CHECK(target.load_state_dict(dict).empty());
  CHECK(target.labels == Names{"cat", "dog"});
  CHECK(target.counter.count == 5);
  // Missing where a class takes extra state, unexpected where it does not.
  CHECK(target.load_state_dict(StateDict(), false).missing_keys ==
        Names{"_extra_state", "counter._extra_state"});
  CHECK_THROWS_AS(target.load_state_dict(StateDict()), RuntimeError);
  Block block;
  CHECK(block.load_state_dict(dict, false).unexpected_keys ==
        Names{"counter._extra_state", "_extra_state"});
  CHECK(message_of<RuntimeError>([&] {
          block.get_extra_state();
        }).find("Block has no extra state") != std::string::npos);
  CHECK_THROWS_AS(block.set_extra_state({}), RuntimeError);
}

TEST_CASE("state_dict hooks: before and after each module's part") {
  Block block;
  Names order;
  block.register_state_dict_pre_hook([&](Module& m, const std::string& prefix, bool keep_vars) {
    order.push_back("pre " + m.type_name() + " '" + prefix + "'" + (keep_vars ? " keep" : ""));
  });
  block.fc.register_state_dict_post_hook(
      [&](Module& m, StateDict& dict, const std::string& prefix, StateMetadata& metadata) {
        order.push_back("post " + m.type_name() + " '" + prefix + "'");
        CHECK(dict.contains(prefix + "weight"));
        CHECK(metadata.at("version") == 1);
        metadata["version"] = 9;
        dict.erase(prefix + "bias");
      });
  HookHandle hook = block.register_state_dict_post_hook(
      [&](Module&, StateDict& dict, const std::string&, StateMetadata&) {
        order.push_back("post all");
        dict.set("added", ones({1}));
      });
  const StateDict dict = block.state_dict("m.");
  CHECK(order == Names{"pre Block 'm.'", "post Linear 'm.fc.'", "post all"});
  CHECK(dict.keys() == Names{"m.fc.weight", "added"});
  CHECK(dict.metadata().at("m.fc").at("version") == 9);
  hook.remove();
  CHECK(block.state_dict("", true).keys() == Names{"fc.weight"});
  CHECK(order.back() == "post Linear 'fc.'");
  CHECK(order[3] == "pre Block '' keep");
}

TEST_CASE("load hooks: a pre-hook may change a copy of the state dict") {
  Block block;
  StateDict dict = {{"fc.old_weight", ones({2, 2})}, {"fc.bias", ones({2})}};
  dict.metadata()["fc"] = {{"version", 1}};
  block.fc.register_load_state_dict_pre_hook(
      [](Module&, StateDict& state, const std::string& prefix, const StateMetadata& metadata,
         nn::LoadProgress& progress) {
        CHECK(prefix == "fc.");
        CHECK(metadata.at("version") == 1);
        CHECK(progress.strict);
        state.set(prefix + "weight", state.at(prefix + "old_weight"));
        state.erase(prefix + "old_weight");
      });
  CHECK(block.load_state_dict(dict).empty());
  CHECK(near(*block.fc.weight, {1, 1, 1, 1}));
  CHECK(dict.contains("fc.old_weight"));
  block.register_load_state_dict_pre_hook(
      [](Module&, StateDict&, const std::string&, const StateMetadata&,
         nn::LoadProgress& progress) { progress.error_msgs.push_back("not today"); });
  CHECK(message_of<RuntimeError>([&] { block.load_state_dict(dict); }) ==
        "Error(s) in loading state_dict for Block:\n\tnot today");
}

TEST_CASE("load hooks: a post-hook may forgive, and may complain") {
  Block block;
  Names order;
  block.fc.register_load_state_dict_post_hook([&](Module& m, IncompatibleKeys& keys) {
    order.push_back(m.type_name());
    CHECK(keys.missing_keys == Names{"fc.bias"});
  });
  HookHandle hook =
      block.register_load_state_dict_post_hook([&](Module& m, IncompatibleKeys& keys) {
        order.push_back(m.type_name());
        CHECK(keys.unexpected_keys == Names{"x"});
        keys.missing_keys.clear();
        keys.unexpected_keys.clear();
      });
  const StateDict dict = {{"fc.weight", ones({2, 2})}, {"x", ones({1})}};
  CHECK(block.load_state_dict(dict).empty());
  CHECK(order == Names{"Linear", "Block"});
  CHECK(near(*block.fc.weight, {1, 1, 1, 1}));
  hook.remove();
  CHECK_THROWS_AS(block.load_state_dict(dict), RuntimeError);
  Linear layer(1, 1);
  layer.register_load_state_dict_post_hook(
      [](Module&, IncompatibleKeys& keys) { keys.missing_keys.push_back("wish"); });
  CHECK(message_of<RuntimeError>([&] {
          layer.load_state_dict(layer.state_dict());
        }).find("Missing key(s) in state_dict: \"wish\"") != std::string::npos);
  CHECK(layer.load_state_dict(layer.state_dict(), false).missing_keys == Names{"wish"});
}

TEST_CASE("load_state_dict: assign takes the tensors, keeps gradient requirements") {
  Linear layer(2, 1);
  layer.weight.set_require_grad(false);
  const nn::ParamId id = layer.weight.id();
  const StateDict dict = {{"weight", tensor({{1.0, 2.0}}, {f64})}, {"bias", tensor({3.0}, {f64})}};
  CHECK(layer.load_state_dict(dict, true, true).empty());
  CHECK(layer.weight->dtype() == f64);
  CHECK(layer.weight->data_ptr<double>() == dict.at("weight").data_ptr<double>());
  CHECK(!layer.weight->requires_grad());
  CHECK(layer.bias->requires_grad());
  CHECK(layer.bias->is_leaf());
  CHECK(!dict.at("bias").requires_grad());
  CHECK(layer.weight.id() == id);
  CHECK_THROWS_AS(layer.load_state_dict({{"weight", ones({2, 2})}}, false, true), RuntimeError);
  nn::BatchNorm2d norm(2);
  StateDict state = norm.state_dict();
  state.set("running_mean", full({2}, 4.0));
  norm.load_state_dict(state, true, true);
  CHECK(norm.running_mean->data_ptr<float>() == state.at("running_mean").data_ptr<float>());
}

TEST_CASE("load_state_dict: a model from before num_batches_tracked") {
  nn::BatchNorm2d norm(2);
  StateDict dict = norm.state_dict();
  dict.erase("num_batches_tracked");
  CHECK_THROWS_AS(norm.load_state_dict(dict), RuntimeError);  // its metadata says version 2
  dict.metadata()[""]["version"] = 1;
  CHECK(norm.load_state_dict(dict).empty());
  dict.metadata().clear();
  CHECK(norm.load_state_dict(dict).empty());
}

TEST_CASE("load_state_dict: what fails changes nothing, mapped values too") {
  Linear layer(2, 2);
  layer.materialize();
  const Tensor before = layer.weight->detach().clone();
  layer.bias.load_mapper([](const Tensor& x) { return x.reshape({1, -1}); });
  CHECK(message_of<RuntimeError>([&] {
          layer.load_state_dict({{"weight", ones({2, 2})}, {"bias", ones({2})}});
        }).find("size mismatch for bias: copying a param with shape [1, 2]") != std::string::npos);
  CHECK(layer.weight->equal(before));
}
