#include "kiln/io/model_file.h"

#include <doctest/doctest.h>

#include "kiln/core/allocator.h"
#include "kiln/core/error.h"
#include "kiln/io/safetensors.h"
#include "kiln/optim/optim.h"
#include "tests/nn/models.h"
#include "tests/support/near.h"
#include "tests/support/temp_dir.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::nn::Linear;
using kiln::test::message_of;
using kiln::test::near;
using kiln::test::Net;
using kiln::test::TempDir;

namespace {

bool same_state(const nn::Module& a, const nn::Module& b) {
  const nn::StateDict first = a.state_dict();
  const nn::StateDict second = b.state_dict();
  if (first.keys() != second.keys()) return false;
  for (const auto& [name, value] : first) {
    if (value.dtype() != second.at(name).dtype() || !value.equal(second.at(name))) return false;
  }
  return true;
}

// As a Linear(3, 1), but for the names.
struct Named : nn::Module {
  nn::Param<Tensor> w = nn::parameter({1, 3}, nn::init::ones_);
  nn::Param<Tensor> b = nn::parameter({1}, nn::init::ones_);
  KILN_MODULE(Named, w, b)
};

void train(Linear& model, optim::Optimizer& optimizer, int steps) {
  for (int i = 0; i < steps; ++i) {
    const Tensor x = randn({8, 3});
    optimizer.zero_grad();
    functional::mse_loss(model(x), x.sum({1}, true)).backward_accumulate();
    optimizer.step();
  }
}

}  // namespace

TEST_CASE("model file: saved and loaded") {
  const TempDir dir;
  manual_seed(1);
  Net net;
  net.steps->fill_(12);
  io::save_model(net, dir.path("net.safetensors"), {{"epoch", "3"}});
  CHECK(dir.names().size() == 1);
  Net loaded;
  loaded.conv.materialize();  // one part initialized, the others lazy
  const io::LoadedModel result = io::load_model(loaded, dir.path("net.safetensors"));
  CHECK(same_state(net, loaded));
  CHECK(result.keys.empty());
  CHECK(result.metadata == io::Metadata{{"epoch", "3"}});
  CHECK(loaded.block.fc.weight->requires_grad());
  const Tensor x = ones({2, 1, 3, 3});
  CHECK(loaded(x).equal(net(x)));
}

TEST_CASE("model file: a lazy model takes the tensors as they come") {
  const TempDir dir;
  const std::string path = dir.path("big.safetensors");
  io::save_model(Linear(1024, 1024), path);  // 4 MiB
  const RandomStream before = default_generator().state();
  Linear layer(1024, 1024);
  reset_memory_stats();
  const size_t in_use = memory_stats().bytes_in_use;
  io::load_model(layer, path);
  CHECK(default_generator().state().offset == before.offset);
  CHECK(memory_stats().bytes_in_use - in_use >= size_t{4} << 20);
  CHECK(memory_stats().peak_bytes_in_use - in_use < size_t{9} << 20);
}

TEST_CASE("model file: a lazy model loads from every format without a second copy") {
  const TempDir dir;
  const Linear source(1024, 1024, false);
  for (const char* name : {"m.safetensors", "m.pt", "m.npz", "m.safetensors.index.json"}) {
    CAPTURE(name);
    if (std::string(name).ends_with("json")) {
      io::save_model_file(dir.path("m.safetensors"),
                          {{"weight", *source.weight}, {"bias", zeros({1})}},
                          {.max_shard_size = size_t{1} << 20});
    } else {
      io::save_model(source, dir.path(name));
    }
    Linear layer(1024, 1024, false);
    reset_memory_stats();
    const size_t in_use = memory_stats().bytes_in_use;
    io::load_model(layer, dir.path(name), false);
    CHECK(memory_stats().peak_bytes_in_use - in_use < (size_t{4} << 20) + 300'000);
    CHECK(layer.weight->equal(*source.weight));
    CHECK(layer.weight->requires_grad());
  }
}

TEST_CASE("model file: saving copies nothing") {
  const TempDir dir;
  Linear layer(1024, 1024);
  layer.materialize();
  for (const char* name : {"m.safetensors", "m.pt", "m.npz"}) {
    reset_memory_stats();
    const size_t in_use = memory_stats().bytes_in_use;
    io::save_model(layer, dir.path(name));
    CHECK(memory_stats().peak_bytes_in_use - in_use < 300'000);
  }
}

TEST_CASE("model file: the content says what it is, not the name") {
  const TempDir dir;
  const Linear source(3, 2);
  for (const char* name : {"m.safetensors", "m.pt", "m.npz"}) {
    io::save_model(source, dir.path(name));
    const std::string other = dir.path("renamed.bin");
    test::write_bytes(other, test::read_bytes(dir.path(name)));
    Linear layer(3, 2);
    CHECK(io::load_model(layer, other).keys.empty());
    CHECK(same_state(source, layer));
  }
  CHECK(message_of<ValueError>([&] {
          io::load_model_file(dir.path("m.npz"), {.key = "model"});
        }).find("expected no key") != std::string::npos);
  const auto reader = io::open_model_file(dir.path("m.pt"));
  CHECK_THROWS_AS(reader->read("weigth"), ValueError);
  CHECK(reader->find("weigth") == nullptr);
}

TEST_CASE("model file: converts to the model's dtype") {
  const TempDir dir;
  Linear half(3, 2, true, {.dtype = f16});
  io::save_model(half, dir.path("half.safetensors"));
  Linear full(3, 2);
  io::load_model(full, dir.path("half.safetensors"));
  CHECK(full.weight->dtype() == f32);
  CHECK(full.weight->equal(half.weight->to(f32)));
}

TEST_CASE("model file: what does not fit changes nothing") {
  const TempDir dir;
  const std::string path = dir.path("m.safetensors");
  io::save_model(Linear(3, 2), path);
  Linear other(3, 3);
  CHECK(message_of<RuntimeError>([&] {
          io::load_model(other, path);
        }).find("size mismatch for weight: copying a param with shape [2, 3]") !=
        std::string::npos);
  CHECK(!other.weight.is_initialized());
  Linear no_bias(3, 2, false);
  CHECK_THROWS_AS(io::load_model(no_bias, path), RuntimeError);
  const io::LoadedModel result = io::load_model(no_bias, path, false);
  CHECK(result.keys.unexpected_keys == std::vector<std::string>{"bias"});
  CHECK_THROWS_AS(io::load_model(other, dir.path("missing")), IoError);
  // A file that is cut short.
  const std::string bytes = test::read_bytes(path);
  test::write_bytes(dir.path("cut"), bytes.substr(0, bytes.size() - 4));
  Linear third(3, 2);
  CHECK_THROWS_AS(io::load_model(third, dir.path("cut")), IoError);
  CHECK(!third.weight.is_initialized());
  // A save that fails leaves the old file.
  CHECK_THROWS_AS(io::save_model(third, dir.path("no/such/folder")), IoError);
  CHECK(test::read_bytes(path) == bytes);
}

TEST_CASE("optimizer file") {
  const TempDir dir;
  const std::string path = dir.path("o.safetensors");
  manual_seed(2);
  Linear model(3, 1);
  optim::Adam optimizer(model.parameters(), {.lr = 0.01});
  train(model, optimizer, 2);
  io::save_optimizer(optimizer, path, {{"note", "x"}});
  optim::Adam other(model.parameters(), {.lr = 0.5});
  CHECK(io::load_optimizer(other, path) == io::Metadata{{"note", "x"}});
  CHECK(other.param_groups()[0].lr == 0.01);
  CHECK(other.state_dict().scalars == optimizer.state_dict().scalars);
  optim::SGD sgd(model.parameters(), {.lr = 0.1});
  CHECK_THROWS_AS(io::load_optimizer(sgd, path), ValueError);
  CHECK_THROWS_AS(io::save_optimizer(optimizer, path, {{"optimizer.x", ""}}), ValueError);
}

TEST_CASE("checkpoint: training goes on exactly as if it had not stopped") {
  const TempDir dir;
  std::string path;
  io::FileFormat format = io::FileFormat::safetensors;
  SUBCASE("safetensors") { path = dir.path("c.safetensors"); }
  SUBCASE("PyTorch's") {
    path = dir.path("c.pt");
    format = io::FileFormat::torch;
  }
  SUBCASE("under another name") {
    path = dir.path("c.ckpt");
    format = io::FileFormat::torch;
  }
  manual_seed(3);
  Linear whole(3, 1);
  optim::AdamW whole_optimizer(whole.parameters(), {.lr = 0.05});
  train(whole, whole_optimizer, 3);
  io::save_checkpoint(path, whole, whole_optimizer, {{"epoch", "7"}});
  CHECK(io::load_model_file(path).format == format);
  train(whole, whole_optimizer, 3);

  manual_seed(99);
  Linear resumed(3, 1);
  optim::AdamW resumed_optimizer(resumed.parameters(), {.lr = 0.9});
  CHECK(io::load_checkpoint(path, resumed, resumed_optimizer) == io::Metadata{{"epoch", "7"}});
  train(resumed, resumed_optimizer, 3);
  CHECK(same_state(whole, resumed));
}

TEST_CASE("checkpoint and optimizer: a format that holds tensors alone is refused") {
  const TempDir dir;
  Linear model(3, 1);
  optim::SGD optimizer(model.parameters(), {.lr = 0.1});
  CHECK(message_of<ValueError>([&] {
          io::save_checkpoint(dir.path("c.npz"), model, optimizer);
        }).starts_with("save_checkpoint: "));
  CHECK(message_of<ValueError>([&] {
          io::save_optimizer(optimizer, dir.path("o.npz"));
        }).starts_with("save_optimizer: "));
  CHECK(dir.names().empty());
}

TEST_CASE("load_model: an error names the file") {
  const TempDir dir;
  io::save_model(Linear(3, 1), dir.path("m.safetensors"));
  Linear other(4, 2);
  CHECK(message_of<RuntimeError>([&] {
          io::load_model(other, dir.path("m.safetensors"));
        }).find("m.safetensors") != std::string::npos);
}

TEST_CASE("checkpoint: what does not fit changes nothing") {
  const TempDir dir;
  const std::string path = dir.path("c.safetensors");
  manual_seed(4);
  Linear model(3, 1);
  optim::SGD optimizer(model.parameters(), {.lr = 0.1, .momentum = 0.9});
  train(model, optimizer, 2);
  io::save_checkpoint(path, model, optimizer);

  // The optimizer fits (one parameter of that shape each), the module's names do not.
  Named named;
  optim::SGD named_optimizer(named.parameters(), {.lr = 0.7, .momentum = 0.5});
  const RandomStream random = default_generator().state();
  CHECK_THROWS_AS(io::load_checkpoint(path, named, named_optimizer), RuntimeError);
  CHECK(named_optimizer.param_groups()[0].lr == 0.7);
  CHECK(named_optimizer.options().momentum == 0.5);
  CHECK(named_optimizer.state_dict().tensors.empty());
  CHECK(near(*named.w, {1, 1, 1}));
  CHECK(default_generator().state().offset == random.offset);
  io::save_model(model, path);
  CHECK(message_of<IoError>([&] {
          io::load_checkpoint(path, model, optimizer);
        }).find("is no checkpoint") != std::string::npos);
}
