#include "kiln/core/config.h"

#include <sstream>

#include <doctest/doctest.h>

#include "kiln/nn/layer_configs.h"
#include "kiln/optim/optim.h"
#include "tests/support/temp_dir.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::test::message_of;
using kiln::test::TempDir;
using kiln::test::write_bytes;

namespace {

enum class Act { relu, gelu };
KILN_CONFIG_ENUM(Act, relu, gelu)

struct Inner {
  double lr = 1e-3;
  std::vector<int64_t> sizes = {1, 2};
  KILN_CONFIG(Inner, lr, sizes)
};

struct Outer {
  Required<int64_t> in_features;
  std::string name = "net";
  std::optional<double> dropout = {};
  bool bias = true;
  uint8_t small = 7;
  float scale = 0.5f;
  Act act = Act::gelu;
  DType dtype = f32;
  Device device = {};
  Inner inner = {};
  std::array<int, 2> pair = {3, 4};
  std::map<std::string, Inner> groups = {};
  std::vector<Inner> stages = {};
  KILN_CONFIG(Outer, doc(in_features, "numbers in one sample, (all) of them"), name, dropout, bias,
              small, scale, act, dtype, device, inner, pair, groups, stages)
};

struct Empty {
  KILN_CONFIG(Empty)
};

std::string refused(const std::string& text) {
  return message_of<ValueError>([&] { Outer::from_json_string(text); });
}

}  // namespace

TEST_CASE("Config: what is left out keeps its default") {
  const Outer config = Outer::from_json_string("{\"in_features\": 3}");
  CHECK(config.in_features == 3);
  CHECK(config.name == "net");
  CHECK(!config.dropout.has_value());
  CHECK(config.inner.sizes == std::vector<int64_t>{1, 2});
  CHECK(config.act == Act::gelu);
}

TEST_CASE("Config: JSON there and back, every type of field") {
  Outer config{.in_features = 5};
  config.name = "a \"b\"";
  config.dropout = 0.25;
  config.small = 255;
  config.scale = 0.1f;
  config.act = Act::relu;
  config.dtype = bf16;
  config.inner = {.lr = INFINITY, .sizes = {}};
  config.groups["head"] = {.lr = 2.0};
  config.stages = {{.lr = 3.0}, {}};
  const std::string text = config.to_json_string();
  const Outer back = Outer::from_json_string(text);
  CHECK(back.to_json_string() == text);
  CHECK(back.scale == 0.1f);
  CHECK(back.inner.lr == INFINITY);
  CHECK(back.groups.at("head").lr == 2.0);
  CHECK(back.stages.size() == 2);
  CHECK(back.dtype == bf16);
  CHECK(text.find("\"act\": \"relu\"") != std::string::npos);
  CHECK(text.find("\"device\": \"cpu\"") != std::string::npos);
  std::ostringstream out;
  out << config;
  CHECK(out.str() == text);
  const auto bytes = std::as_bytes(std::span(text));
  CHECK(Outer::load_binary(bytes).to_json_string() == text);
  CHECK(Empty().to_json_string() == "{}");
  CHECK_NOTHROW(Empty::from_json_string("{}"));
}

TEST_CASE("Config: errors name the field, what it got and what it expected") {
  CHECK(refused("{}") ==
        "Outer: field 'in_features' is required and missing; got nothing; expected a value of "
        "type integer");
  CHECK(refused("{\"in_features\": 1, \"inner\": {\"lr\": \"fast\"}}") ==
        "Outer: field 'inner.lr' has a wrong type or value; got the string 'fast'; expected a "
        "number");
  CHECK(refused("{\"in_features\": 1, \"inner\": {\"rate\": 1}}") ==
        "Outer: field 'inner' has an unknown field; got 'rate'; expected one of lr, sizes");
  CHECK(refused("{\"in_features\": 1, \"stages\": [{}, {\"sizes\": [1, 2.5]}]}")
            .find("'stages.1.sizes.1'") != std::string::npos);
  CHECK(refused("{\"in_features\": 1, \"groups\": {\"a\": 1}}").find("'groups.a'") !=
        std::string::npos);
  CHECK(refused("{\"in_features\": 1, \"act\": \"tanh\"}").find("one of relu, gelu") !=
        std::string::npos);
  CHECK(refused("{\"in_features\": 1, \"small\": 256}").find("from 0 to 255") != std::string::npos);
  CHECK(refused("{\"in_features\": 1.0}").find("the number 1; expected an integer") !=
        std::string::npos);
  CHECK(refused("{\"in_features\": 1, \"scale\": 1e300}").find("fits") != std::string::npos);
  CHECK(refused("{\"in_features\": 1, \"pair\": [1]}").find("list of 2 integer") !=
        std::string::npos);
  CHECK(refused("{\"in_features\": 1, \"dtype\": \"float9\"}").find("dtype") != std::string::npos);
  CHECK(refused("{\"in_features\": 1, \"device\": \"moon\"}").find("device") != std::string::npos);
  CHECK(refused("{\"in_features\": 1, \"in_features\": 2}").find("twice") != std::string::npos);
  CHECK(refused("[1]").find("an object with the fields of Outer") != std::string::npos);
  CHECK(refused("{\"in_features\": ").find("no JSON") != std::string::npos);
  CHECK(refused(std::string(100000, '[')).find("64 levels") != std::string::npos);
}

TEST_CASE("Config: a required field that was never set is an error where it is read") {
  const Outer config;
  CHECK_THROWS_AS(static_cast<int64_t>(config.in_features), ValueError);
  CHECK(message_of<ValueError>([&] { config.to_json_string(); }).find("'in_features'") !=
        std::string::npos);
}

TEST_CASE("Config: files") {
  const TempDir dir;
  const Outer config{.in_features = 9};
  config.save(dir.path("c.json"));
  CHECK(Outer::load(dir.path("c.json")).in_features == 9);
  write_bytes(dir.path("bad.json"), "{\"in_features\": true}");
  const std::string message = message_of<IoError>([&] { Outer::load(dir.path("bad.json")); });
  CHECK(message.find("bad.json': field 'in_features'") != std::string::npos);
  CHECK(message.find("got true") != std::string::npos);
  CHECK_THROWS_AS(Outer::load(dir.path("none.json")), IoError);
  CHECK_THROWS_AS(config.save(dir.path("no/c.json")), IoError);
}

TEST_CASE("Config: help lists fields, types, defaults and descriptions") {
  const std::string help = Outer::help();
  INFO(help);
  CHECK(help.starts_with("Outer\n  in_features "));
  CHECK(help.find("required   numbers in one sample, (all) of them\n") != std::string::npos);
  CHECK(help.find("inner.lr") != std::string::npos);
  CHECK(help.find("0.001") != std::string::npos);
  CHECK(help.find("number or null") != std::string::npos);
  CHECK(help.find("one of relu, gelu") != std::string::npos);
}

TEST_CASE("Config: layers and optimizers") {
  const auto conv = nn::Conv2dConfig::from_json_string(
                        "{\"in_channels\": 4, \"out_channels\": 6, \"kernel_size\": [3, 5],"
                        " \"options\": {\"padding\": 1, \"groups\": 2, \"bias\": false}}")
                        .init();
  CHECK(conv.weight.lazy_shape() == Shape{6, 2, 3, 5});
  CHECK(!conv.bias.defined());
  CHECK(conv.options().padding == nn::Size2d(1));
  const nn::LinearConfig linear{.in_features = 3, .out_features = 2};
  CHECK(linear.init().weight.lazy_shape() == Shape{2, 3});
  CHECK(nn::LayerNormConfig{.normalized_shape = std::vector<int64_t>{2, 3}}
            .init()
            .weight.lazy_shape() == Shape{2, 3});
  CHECK(nn::EmbeddingConfig{.num_embeddings = 5, .embedding_dim = 2}.init().num_embeddings() == 5);
  CHECK(nn::BatchNorm2dConfig::from_json_string(
            "{\"num_features\": 3, \"options\": {\"momentum\": null}}")
            .options.momentum == std::nullopt);
  CHECK(nn::MaxPool2dConfig{.kernel_size = 2}.to_json_string().find("\"stride\": null") !=
        std::string::npos);
  CHECK(nn::DropoutConfig::from_json_string("{\"p\": 1}").p == 1.0);
  CHECK(optim::AdamWOptions::from_json_string("{\"lr\": 0.5}").weight_decay == 1e-2);
  CHECK(optim::SGDOptions::help().find("nesterov") != std::string::npos);
}
