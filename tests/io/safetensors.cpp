#include "kiln/io/safetensors.h"

#include <cmath>
#include <limits>
#include <string_view>

#include <doctest/doctest.h>

#include "tests/support/temp_dir.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::io;
using kiln::test::message_of;
using kiln::test::read_bytes;
using kiln::test::TempDir;
using kiln::test::write_bytes;

namespace {

// Made by the Python package safetensors 0.8.0:
// save({"weight": float32 [[1, -2.5], [3, 4]], "step": int64 7, "mask": bool [1, 0, 1]}, {"format":
// "pt"}).
constexpr std::string_view kKnown(
    "\xd0\0\0\0\0\0\0\0"
    R"({"__metadata__":{"format":"pt"},"step":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
    R"("weight":{"dtype":"F32","shape":[2,2],"data_offsets":[8,24]},)"
    R"("mask":{"dtype":"BOOL","shape":[3],"data_offsets":[24,27]}} )"
    "\x07\0\0\0\0\0\0\0"
    "\0\0\x80\x3f\0\0\x20\xc0\0\0\x40\x40\0\0\x80\x40"
    "\1\0\1",
    243);

bool same(const TensorData& a, const TensorData& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         std::equal(a.data(), a.data() + a.bytes(), b.data());
}

TensorData filled(const Shape& shape, DType dtype) {
  TensorData data(shape, dtype);
  std::byte* at = data.mutable_data();
  for (size_t i = 0; i < data.bytes(); ++i) {
    at[i] = static_cast<std::byte>(dtype == DType::boolean ? i % 2 : i * 37 + 11);
  }
  return data;
}

}  // namespace

TEST_CASE("safetensors: a file of the Python package is read") {
  TempDir dir;
  const auto file = load_safetensors(write_bytes(dir.path("f"), std::string(kKnown)));
  CHECK(file.metadata == Metadata{{"format", "pt"}});
  REQUIRE(file.tensors.size() == 3);
  CHECK(file.tensors[0].first == "step");
  CHECK(file.tensors[0].second.shape() == Shape{});
  CHECK(file.tensors[0].second.as<int64_t>()[0] == 7);
  CHECK(file.tensors[1].first == "weight");
  CHECK(file.tensors[1].second.shape() == Shape{2, 2});
  CHECK(file.tensors[1].second.to_doubles() == std::vector<double>{1, -2.5, 3, 4});
  CHECK(file.tensors[2].first == "mask");
  CHECK(file.tensors[2].second.to_doubles() == std::vector<double>{1, 0, 1});
}

TEST_CASE("safetensors: the same file is written, byte for byte") {
  TempDir dir;
  const auto file = load_safetensors(write_bytes(dir.path("f"), std::string(kKnown)));
  save_safetensors(dir.path("g"), file.tensors, file.metadata);
  CHECK(read_bytes(dir.path("g")) == kKnown);
}

TEST_CASE("safetensors: every dtype, rank and odd name comes back") {
  TempDir dir;
  NamedTensors tensors;
  for (DType t : {u8, bool_, i8, i16, f16, bf16, i32, f32, i64, f64}) {
    tensors.emplace_back(to_string(t), filled({3, 5}, t));
    tensors.emplace_back(to_string(t) + ".empty", filled({2, 0, 3}, t));
    tensors.emplace_back(to_string(t) + ".scalar", filled({}, t));
  }
  tensors.emplace_back("deep", filled(Shape::filled(kMaxRank, 1), f32));
  tensors.emplace_back("quote\" back\\slash \n \xc3\xa4 \xf0\x9f\x94\xa5", filled({1}, f32));
  const Metadata metadata{{"", ""}, {"a \"b\"", "line\nbreak"}, {"\xe2\x82\xac", "\t"}};
  const std::string path = dir.path("all.safetensors");
  save_safetensors(path, tensors, metadata);

  CHECK(read_bytes(path)[0] % 8 == 0);
  const SafetensorsReader reader(path);
  CHECK(reader.metadata() == metadata);
  CHECK(reader.keys().size() == tensors.size());
  for (const auto& [name, data] : tensors) {
    CAPTURE(name);
    REQUIRE(reader.contains(name));
    CHECK(reader.shape(name) == data.shape());
    CHECK(reader.dtype(name) == data.dtype());
    CHECK(same(reader.read(name), data));
  }
  // The whole file in its own order: wide dtypes first, so that all are aligned; otherwise as
  // given.
  const auto file = load_safetensors(path);
  size_t last = 8;
  for (size_t i = 0; i < file.tensors.size(); ++i) {
    CHECK(file.tensors[i].first == reader.keys()[i]);
    CHECK(size_of(file.tensors[i].second.dtype()) <= last);
    last = size_of(file.tensors[i].second.dtype());
  }
  CHECK(file.tensors[0].first == "int64");
}

TEST_CASE("safetensors: no tensors at all") {
  TempDir dir;
  save_safetensors(dir.path("f"), {});
  CHECK(read_bytes(dir.path("f")) == std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
  CHECK(load_safetensors(dir.path("f")).tensors.empty());
  save_safetensors(dir.path("f"), {}, {{"only", "metadata"}});
  CHECK(load_safetensors(dir.path("f")).metadata.at("only") == "metadata");
}

TEST_CASE("safetensors: special values keep their bits") {
  TempDir dir;
  const std::vector<float> values{std::nanf("1"), -0.0f, std::numeric_limits<float>::infinity(),
                                  std::numeric_limits<float>::denorm_min()};
  const TensorData data(values, Shape{4});
  save_safetensors(dir.path("f"), {{"x", data}});
  CHECK(same(load_safetensors(dir.path("f")).tensors[0].second, data));
}

TEST_CASE("safetensors: names that cannot be stored are refused before anything is written") {
  TempDir dir;
  const TensorData x = filled({2}, f32);
  const std::string path = dir.path("f");
  CHECK_THROWS_AS(save_safetensors(path, {{"", x}}), ValueError);
  CHECK_THROWS_AS(save_safetensors(path, {{"__metadata__", x}}), ValueError);
  CHECK_THROWS_AS(save_safetensors(path, {{"a", x}, {"b", x}, {"a", x}}), ValueError);
  CHECK_THROWS_AS(save_safetensors(path, {{"not UTF-8 \xff", x}}), ValueError);
  CHECK_THROWS_AS(save_safetensors(path, {{"a", x}}, {{"k", "\xc3"}}), ValueError);
  CHECK_THROWS_AS(save_safetensors(path, {{"a", filled({2}, DType::q8)}}), DTypeError);
  CHECK(dir.names().empty());
}

TEST_CASE("safetensors: an unknown name is an error that says so") {
  TempDir dir;
  const SafetensorsReader reader(write_bytes(dir.path("f"), std::string(kKnown)));
  CHECK(!reader.contains("bias"));
  CHECK_THROWS_AS(reader.shape("bias"), ValueError);
  CHECK_THROWS_AS(reader.dtype(""), ValueError);
  const std::string message = message_of<ValueError>([&] { reader.read("bias"); });
  CHECK(message.find("'bias'") != std::string::npos);
}

TEST_CASE("safetensors: a reader survives its move") {
  TempDir dir;
  SafetensorsReader first(write_bytes(dir.path("f"), std::string(kKnown)));
  SafetensorsReader second(std::move(first));
  CHECK(second.read("step").as<int64_t>()[0] == 7);
}

TEST_CASE("safetensors: a missing file, a folder and a device are no files") {
  TempDir dir;
  const std::string missing = dir.path("none.safetensors");
  const std::string message = message_of<IoError>([&] { load_safetensors(missing); });
  CHECK(message.find(missing) != std::string::npos);
  CHECK_THROWS_AS(load_safetensors(dir.path()), IoError);
  CHECK_THROWS_AS(load_safetensors("/dev/null"), IoError);
  CHECK_THROWS_AS(load_safetensors(""), IoError);
}
