// Files that PyTorch 2.13.0 wrote (tests/fixtures/make_fixtures.py says with what values).
#include <doctest/doctest.h>

#include "kiln/core/complex.h"
#include "kiln/io/model_file.h"
#include "kiln/io/torch_file.h"
#include "kiln/nn/nn.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "tests/support/fixtures.h"
#include "tests/support/near.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::io;
using kiln::test::fixture;
using kiln::test::message_of;
using kiln::test::near;

namespace {

const Tensor& tensor_at(const PickleValue& value, const char* key) {
  return *value[key].get<Tensor>();
}

// The network of make_fixtures.py.
struct FixtureNet : nn::Module {
  nn::Conv2d conv{1, 4, 3, {.stride = 2}};
  nn::BatchNorm2d norm{4};
  nn::Linear fc{4 * 3 * 3, 5};
  KILN_MODULE(FixtureNet, conv, norm, fc)

  Tensor forward(const Tensor& x) const { return fc(relu(norm(conv(x))).flatten(1)); }
};

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("torch: every dtype, both forms") {
  for (const char* name : {"torch/dtypes.pt", "torch/dtypes_legacy.pt"}) {
    CAPTURE(name);
    const PickleValue value = load_torch(fixture(name));
    const auto* dict = value.get<PickleDict>();
    REQUIRE(dict != nullptr);
    CHECK(dict->items.size() == 10);
    for (const PickleItem& item : dict->items) {
      const std::string& key = *item.key.get<std::string>();
      CAPTURE(key);
      const Tensor& x = *item.value.get<Tensor>();
      CHECK(to_string(x.dtype()) == key);
      CHECK(x.shape() == Shape{2, 3});
      if (x.is_floating_point()) {
        CHECK(near(x, {-1.5, -0.5, 0.5, 1.5, 2.5, 3.5}, 0, 0));
      } else if (x.dtype() == bool_) {
        CHECK(near(x, {0, 1, 0, 1, 0, 1}, 0, 0));
      } else {
        CHECK(near(x, {0, 1, 2, 3, 4, 5}, 0, 0));
      }
    }
  }
}

TEST_CASE("torch: views keep their strides and share their storage") {
  for (const char* name : {"torch/views.pt", "torch/views_legacy.pt"}) {
    CAPTURE(name);
    const TorchReader reader(fixture(name));
    CHECK(reader.is_legacy() == holds(name, "legacy"));
    const PickleValue value = reader.read_all();
    const Tensor base = tensor_at(value, "base");
    CHECK(base.shape() == Shape{4, 6});
    CHECK(near(tensor_at(value, "row"), {6, 7, 8, 9, 10, 11}));
    const Tensor transposed = tensor_at(value, "transposed");
    CHECK(transposed.shape() == Shape{6, 4});
    CHECK(transposed.stride() == Strides{1, 6});
    CHECK(near(transposed[1], {1, 7, 13, 19}));
    const Tensor strided = tensor_at(value, "strided");
    CHECK(strided.stride() == Strides{12, 2});
    CHECK(near(strided, {1, 3, 5, 13, 15, 17}));
    const Tensor expanded = tensor_at(value, "expanded");
    CHECK(expanded.stride() == Strides{0, 1});
    CHECK(near(expanded[2], {0, 1, 2, 3, 4, 5}));
    CHECK(near(tensor_at(value, "tail"), {20, 21, 22, 23}));
    CHECK(tensor_at(value, "empty").shape() == Shape{0, 3});
    CHECK(tensor_at(value, "scalar").shape() == Shape{});
    CHECK(tensor_at(value, "scalar").item() == 7);
    CHECK(near(tensor_at(value, "alone"), {10, 11, 12}));
    // One storage, read once: a write is seen through every view.
    Tensor written = tensor_at(value, "row");
    written.fill_(-1);
    CHECK(near(transposed[1], {1, -1, 13, 19}));
    // Taken one at a time, each has memory of its own.
    for (const PickleItem& item : reader.value().get<PickleDict>()->items) {
      const std::string& key = *item.key.get<std::string>();
      CAPTURE(key);
      const Tensor alone = reader.read(**item.value.get<StoredTensor>());
      CHECK(alone.is_contiguous());
      CHECK(alone.equal(*load_torch(fixture(name))[key].get<Tensor>()));
    }
  }
}

TEST_CASE("torch: a checkpoint gives everything that is in it") {
  for (const char* name : {"torch/checkpoint.pt", "torch/checkpoint_legacy.pt", "torch/deflated.pt",
                           "torch/checkpoint_protocol3.pt", "torch/checkpoint_protocol4.pt",
                           "torch/checkpoint_protocol5.pt"}) {
    CAPTURE(name);
    const PickleValue c = load_torch(fixture(name));
    CHECK(near(tensor_at(c["model"], "weight"), {0, 1, 2, 3, 4, 5}));
    CHECK(near(tensor_at(c["model"], "bias"), {0.25, -0.25}));
    // What PyTorch sets on its state dicts.
    const auto& attributes = c["model"].get<PickleDict>()->attributes;
    REQUIRE(attributes.size() == 1);
    CHECK(*attributes[0].key.get<std::string>() == "_metadata");
    CHECK(*c["epoch"].get<int64_t>() == 3);
    CHECK(*c["loss"].get<double>() == 0.125);
    CHECK(*c["name"].get<std::string>() == "h\xc3\xa9llo");
    CHECK(*c["done"].get<bool>());
    CHECK(c["nothing"].is_none());
    CHECK(c["big"].get<PickleBigInt>()->decimal == "1208925819614629174706176");
    CHECK(c["negative"].get<PickleBigInt>()->decimal == "-1208925819614629174706176");
    CHECK(*c["int64"].get<int64_t>() == -1099511627776);
    CHECK(to_text(c["sizes"]) == "(2, 3)");
    CHECK(*c["dtype"].get<DType>() == bf16);
    CHECK(to_text(c["device"]) == "torch.device('cpu')");
    CHECK(to_text(c["tags"]) == "{'a'}");
    CHECK(to_text(c["pair"]) == "(1, 'two')");
    CHECK(to_text(c["list"]) == "[1, [2, [3]]]");
    CHECK(c["bytes"].get<PickleBytes>()->bytes == std::string("\0\xff\x7f", 3));
    CHECK(tensor_at(c, "parameter").requires_grad());
    CHECK(to_text(c["counts"]) == "{'x': 2}");
    CHECK(*c["complex"].get<std::complex<double>>() == std::complex<double>(1, -2));
    CHECK(c.get<PickleDict>()->items[20].key.get<int64_t>() != nullptr);
    const auto* shared = c["shared"].get<PickleList>();
    CHECK(near(*(*shared)[1].get<Tensor>(), {0, 1, 2}));
    const PickleValue& group = (*c["optimizer"]["param_groups"].get<PickleList>())[0];
    CHECK(*group["lr"].get<double>() == 0.01);
    CHECK(to_text(group["betas"]) == "(0.9, 0.999)");
    CHECK(to_text(group["params"]) == "[0, 1]");
  }
}

TEST_CASE("torch: files of other machines and options") {
  CHECK(near(tensor_at(load_torch(fixture("torch/big_endian.pt")), "x"), {0, 1, 2, 3, 4}));
  CHECK(near(tensor_at(load_torch(fixture("torch/no_checksum.pt")), "x"), {0, 1, 2, 3, 4}));
  const PickleValue scalars = load_torch(fixture("torch/numpy_scalars.pt"));
  CHECK(*scalars["best"].get<double>() == 0.75);
  CHECK(*scalars["step"].get<int64_t>() == -3);
}

TEST_CASE("torch: a state dict loads into the same-named model, with the same outputs") {
  const PickleValue value = load_torch(fixture("torch/network.pt"));
  FixtureNet net;
  const LoadedModel loaded = load_model(net, fixture("torch/network.pt"));
  CHECK(loaded.keys.empty());
  CHECK(net.norm.num_batches_tracked->item<int64_t>() == 3);
  net.eval();
  const Tensor y = net(tensor_at(value, "x"));
  CHECK(y.allclose(tensor_at(value, "y"), 1e-5, 1e-5));
  // What PyTorch's `_metadata` says of the modules comes along.
  const ModelFile file = load_model_file(fixture("torch/network.pt"));
  CHECK(file.tensors.metadata().at("norm").at("version") == 2);
  CHECK(file.tensors.metadata().at("fc").at("version") == 1);
}

TEST_CASE("torch: what Kiln has no dtype for is named, and the rest can be read") {
  const auto check = [](const char* name, const char* key, const char* reason) {
    CAPTURE(name);
    const std::string message = message_of<IoError>([&] { load_torch(fixture(name)); });
    CAPTURE(message);
    CHECK(holds(message, std::string("'") + key + "'"));
    CHECK(holds(message, reason));
    // The reader opens it all the same, and says so again for this tensor.
    const auto reader = open_model_file(fixture(name));
    CHECK(!reader->find(key)->refusal.empty());
    CHECK(holds(message_of<IoError>([&] { reader->read(key); }), reason));
  };
  check("torch/quantized.pt", "q", "quantized");
  check("torch/sparse.pt", "s", "sparse");
  check("torch/float8.pt", "f", "no such dtype");
  const Tensor z = open_model_file(fixture("torch/complex.pt"))->read("bad");
  CHECK(z.to_vector<std::complex<float>>() == std::vector<std::complex<float>>{1, 1});
  CHECK(near(open_model_file(fixture("torch/float8.pt"))->read("good"), {1, 1}));
  CHECK(open_model_file(fixture("torch/sparse.pt"))->find("s")->shape == Shape{2, 2});
}

TEST_CASE("torch: a whole pickled module is refused, with advice") {
  const std::string message = message_of<IoError>([] { load_torch(fixture("torch/module.pt")); });
  CHECK(holds(message, "'torch.nn.modules.linear.Linear'"));
  CHECK(holds(message, "model.state_dict()"));
}

TEST_CASE("torch: the state dict of a checkpoint is found, or chosen by its key") {
  const std::string path = fixture("torch/checkpoint.pt");
  const auto found = open_model_file(path);
  CHECK(found->format() == FileFormat::torch);
  CHECK(open_model_file(fixture("torch/checkpoint_legacy.pt"))->format() ==
        FileFormat::torch_legacy);
  REQUIRE(found->entries().size() == 2);
  CHECK(found->entries()[0].name == "weight");
  CHECK(found->metadata().at("epoch") == "3");
  CHECK(found->metadata().at("loss") == "0.125");
  CHECK(open_model_file(path, {.key = "model"})->entries().size() == 2);
  const auto state = open_model_file(path, {.key = "optimizer.state.0"});
  REQUIRE(state->entries().size() == 3);
  CHECK(state->entries()[1].name == "exp_avg");
  CHECK(open_model_file(path, {.key = "shared.1"})->entries()[0].name == "tensor");
  const auto all = open_model_file(path, {.key = "."});
  CHECK(all->find("model.weight") != nullptr);
  CHECK(all->find("optimizer.state.1.exp_avg_sq") != nullptr);
  CHECK(all->find("shared.0") != nullptr);
  CHECK(holds(message_of<IoError>([&] { open_model_file(path, {.key = "modell"}); }),
              "nothing at this key; got 'modell'"));
  CHECK(holds(message_of<IoError>([&] { open_model_file(path, {.key = "name"}); }), "no tensors"));
}
