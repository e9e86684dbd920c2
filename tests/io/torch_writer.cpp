// What save_torch writes. That PyTorch reads it, tests/peer/files.py shows.
#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/io/model_file.h"
#include "kiln/io/torch_file.h"
#include "kiln/io/zip_reader.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "tests/support/fixtures.h"
#include "tests/support/near.h"
#include "tests/support/temp_dir.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::io;
using kiln::test::message_of;
using kiln::test::near;
using kiln::test::TempDir;

TEST_CASE("save_torch: a state dict comes back in its order, every dtype") {
  const TempDir dir;
  nn::StateDict state;
  for (const DType t : {f64, f32, f16, bf16, i64, i32, i16, i8, u8, DType::c64, DType::c128}) {
    state.set("z." + to_string(t), tensor({{0, 1, 2}, {3, 4, 5}}).to(t));
  }
  state.set("a.flag", tensor({true, false}));
  state.set("scalar", tensor(2.5));
  state.set("empty", zeros({0, 3}));
  save_torch(dir.path("s.pt"), state);
  CHECK(dir.names().size() == 1);
  const ModelFile back = load_model_file(dir.path("s.pt"));
  CHECK(back.format == FileFormat::torch);
  CHECK(back.tensors.keys() == state.keys());
  for (const auto& [name, value] : state) {
    CAPTURE(name);
    CHECK(back.tensors.at(name).dtype() == value.dtype());
    CHECK(back.tensors.at(name).equal(value));
  }
}

TEST_CASE("save_torch: views stay views of one storage, and only what they see is written") {
  const TempDir dir;
  const Tensor base = arange(1000, {f32});
  const Tensor part = base.narrow(0, 100, 24).reshape({4, 6});
  nn::StateDict state{{"part", part},
                      {"turned", part.t()},
                      {"row", part[1]},
                      {"wide", part.narrow(0, 0, 1).expand({3, 6})},
                      {"other", ones({2})}};
  save_torch(dir.path("s.pt"), state);
  const ZipReader zip(InputFile("test", dir.path("s.pt")));
  REQUIRE(zip.find("archive/data/0") != nullptr);
  CHECK(zip.find("archive/data/0")->size == 24 * 4);
  CHECK(zip.find("archive/data/1")->size == 2 * 4);
  CHECK(zip.find("archive/data/2") == nullptr);
  const PickleValue value = load_torch(dir.path("s.pt"));
  const Tensor turned = *value["turned"].get<Tensor>();
  CHECK(turned.stride() == Strides{1, 6});
  CHECK(turned.equal(part.t()));
  CHECK(value["wide"].get<Tensor>()->stride() == Strides{0, 1});
  Tensor row = *value["row"].get<Tensor>();
  row.fill_(0);
  CHECK(near(turned[0], {100, 0, 112, 118}));
}

TEST_CASE("save_torch: storages are stored in place, at multiples of 64 bytes") {
  const TempDir dir;
  save_torch(dir.path("s.pt"),
             nn::StateDict{{"a", ones({3})}, {"b", ones({5})}, {"c", zeros({7, 7})}});
  const ZipReader zip(InputFile("test", dir.path("s.pt")));
  for (const ZipEntry& entry : zip.entries()) {
    CAPTURE(entry.name);
    CHECK(entry.method == 0);
    CHECK(entry.offset % 64 == 0);
  }
}

TEST_CASE("save_torch: a whole checkpoint comes back, and again the same bytes") {
  const TempDir dir;
  const PickleValue value = load_torch(test::fixture("torch/checkpoint.pt"));
  save_torch(dir.path("a.pt"), value);
  const PickleValue again = load_torch(dir.path("a.pt"));
  CHECK(to_text(again, 100'000) == to_text(value, 100'000));
  CHECK(again["parameter"].get<Tensor>()->requires_grad());
  save_torch(dir.path("b.pt"), again);
  CHECK(test::read_bytes(dir.path("a.pt")) == test::read_bytes(dir.path("b.pt")));
}

TEST_CASE("save_torch: parameters are read as such, and dicts as the kind that they were") {
  const TempDir dir;
  PickleDict ordered;
  ordered.ordered = true;
  ordered.set("x", 1);
  PickleDict value;
  value.set("trained", pickled_parameter(ones({2})));
  value.set("frozen", pickled_parameter(ones({2}), false));
  value.set("plain", ones({2}));
  value.set("ordered", ordered);
  save_torch(dir.path("p.pt"), PickleValue(value));
  const TorchReader reader(dir.path("p.pt"));
  const auto stored = [&](const char* key) { return **reader.value()[key].get<StoredTensor>(); };
  CHECK(stored("trained").is_parameter);
  CHECK(stored("trained").requires_grad);
  CHECK(stored("frozen").is_parameter);
  CHECK_FALSE(stored("frozen").requires_grad);
  CHECK_FALSE(stored("plain").is_parameter);
  CHECK_FALSE(reader.value().get<PickleDict>()->ordered);
  CHECK(reader.value()["ordered"].get<PickleDict>()->ordered);
  const PickleValue read = reader.read_all();
  CHECK(read["ordered"].get<PickleDict>()->ordered);
  CHECK(read["trained"].get<Tensor>()->requires_grad());
}

TEST_CASE("save_torch: large numbers of every size") {
  const TempDir dir;
  PickleList numbers;
  for (const char* text : {"9223372036854775808", "-9223372036854775809", "18446744073709551616",
                           "-340282366920938463463374607431768211456"}) {
    numbers.push_back(PickleBigInt{text});
  }
  for (const int64_t n : {int64_t{0}, int64_t{255}, int64_t{256}, int64_t{-1}, INT64_MAX, INT64_MIN,
                          int64_t{1} << 31, -(int64_t{1} << 31) - 1}) {
    numbers.push_back(n);
  }
  save_torch(dir.path("n.pt"), PickleValue(numbers));
  CHECK(to_text(load_torch(dir.path("n.pt")), 10'000) == to_text(PickleValue(numbers), 10'000));
}

TEST_CASE("save_torch: what cannot be written is an error, and no file") {
  const TempDir dir;
  const TorchReader reader(test::fixture("torch/dtypes.pt"));
  CHECK(message_of<ValueError>([&] {
          save_torch(dir.path("x.pt"), reader.value());
        }).find("read_all") != std::string::npos);
  CHECK_THROWS_AS(save_torch(dir.path("x.pt"), PickleValue("\xff")), ValueError);
  CHECK_THROWS_AS(save_torch(dir.path("x.pt"), PickleValue(PickleObject{"os.system", {}})),
                  ValueError);
  PickleValue deep(1);
  for (int i = 0; i < 150; ++i) deep = PickleValue(PickleList{std::move(deep)});
  CHECK_THROWS_AS(save_torch(dir.path("x.pt"), deep), ValueError);
  CHECK_THROWS_AS(save_torch(dir.path("no/x.pt"), PickleValue(1)), IoError);
  CHECK(dir.names().empty());
}

TEST_CASE("model file: metadata travels in a PyTorch file") {
  const TempDir dir;
  save_model_file(dir.path("m.pth"), nn::StateDict{{"w", ones({2})}},
                  {.metadata = {{"epoch", "3"}}});
  const ModelFile back = load_model_file(dir.path("m.pth"));
  CHECK(back.metadata == Metadata{{"epoch", "3"}});
  CHECK(back.tensors.keys() == std::vector<std::string>{"w"});
}
