#include "kiln/io/gguf_file.h"

#include <cmath>

#include <doctest/doctest.h>

#include "kiln/core/half.h"
#include "kiln/kiln.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/hostile.h"

using namespace kiln;
using test::GgufBytes;

namespace {

std::string half(float value) { return GgufBytes::raw(float16(value).bits); }

io::GgufFile read(const std::string& bytes) {
  const test::TempDir dir;
  return io::load_gguf(test::write_bytes(dir.path("f.gguf"), bytes));
}

}  // namespace

TEST_CASE("gguf: values of every type, and plain tensors with their last dim side by side") {
  const std::string list = GgufBytes::raw(uint32_t{5}) + GgufBytes::raw(uint64_t{2}) +
                           GgufBytes::raw(int32_t{-4}) + GgufBytes::raw(int32_t{9});
  std::string floats;
  for (int i = 0; i < 6; ++i) floats += GgufBytes::raw(float(i) + 0.5f);
  GgufBytes file;
  file.value("u8", 0, "\x07").value("i8", 1, "\xff").value("u64", 10, GgufBytes::raw(uint64_t{5}));
  file.value("f32", 6, GgufBytes::raw(0.25f)).value("flag", 7, "\x01").value("list", 9, list);
  file.value("text", 8, GgufBytes::text("caf\xc3\xa9")).value("raw", 8, GgufBytes::text("\xff"));
  file.tensor("a", {3, 2}, 0, floats).tensor("b", {2}, 1, half(1.5f) + half(-2));
  for (const uint32_t version : {2u, 3u}) {
    const io::GgufFile read_back = read(file.bytes(version));
    CHECK(*read_back.metadata.find("u8")->as<int64_t>() == 7);
    CHECK(*read_back.metadata.find("i8")->as<int64_t>() == -1);
    CHECK(*read_back.metadata.find("u64")->as<int64_t>() == 5);
    CHECK(*read_back.metadata.find("f32")->as<double>() == 0.25);
    CHECK(*read_back.metadata.find("flag")->as<bool>());
    CHECK(*read_back.metadata.find("text")->as<std::string>() == "caf\xc3\xa9");
    CHECK(read_back.metadata.find("raw")->as<Json::Bytes>()->size() == 1);
    CHECK(*read_back.metadata.find("list")->as<Json::Array>()->at(1).as<int64_t>() == 9);
    CHECK(read_back.tensors.keys() == std::vector<std::string>{"a", "b"});
    CHECK(read_back.tensors.at("a").equal(tensor({{0.5, 1.5, 2.5}, {3.5, 4.5, 5.5}})));
    CHECK(read_back.tensors.at("b").dtype() == f16);
    CHECK(read_back.tensors.at("b").to(f32).equal(tensor({1.5, -2.0})));
  }
}

TEST_CASE("gguf: blocks of 8 and 4 bits are quantized tensors with the file's values") {
  std::string eight = half(0.5f), four = half(-0.25f);
  for (int i = 0; i < 32; ++i) eight += char(i - 16);
  for (int i = 0; i < 16; ++i) four += char((15 - i) << 4 | i);
  const io::GgufFile file =
      read(GgufBytes().tensor("eight", {32, 1}, 8, eight).tensor("four", {32, 1}, 2, four).bytes());
  const Tensor q8 = file.tensors.at("eight"), q4 = file.tensors.at("four");
  CHECK(q8.dtype() == DType::q8);
  CHECK(quantized_scales(q8).item<double>() == 0.5);
  CHECK(dequantize(q8).equal(((arange(0, 32) - 16).to(f32) * 0.5).reshape({1, 32})));
  // The first 16 values lie in the low halves, 0, 1, .., the others in the high ones, 15, 14, ...
  const Tensor low = (arange(0, 16) - 8).to(f32) * -0.25,
               high = (arange(0, 16) * -1 + 7).to(f32) * -0.25;
  CHECK(dequantize(q4).equal(cat({low, high}).reshape({1, 32})));

  eight[2 + 3] = char(-128);  // beyond Kiln's 8 bits
  const Tensor wide = read(GgufBytes().tensor("w", {32, 1}, 8, eight).bytes()).tensors.at("w");
  CHECK(wide.dtype() == f32);
  CHECK(wide.select(0, 0).select(0, 3).item<double>() == -64);
}

TEST_CASE("gguf: Q4_K has scales and minima of 6 bits") {
  // d = 2, dmin = 1. Scale 0 is 63, scale 5 is 0b110010, minimum 5 is 0b010011.
  std::string block = half(2) + half(1);
  std::string packed(12, '\0');
  packed[0] = 63;
  packed[1] = char(0b11000000);  // the high bits of scale 5
  packed[5] = char(0b01000000);  // the high bits of minimum 5
  packed[9] = char(0b00110010);  // the low bits of minimum 5 and scale 5
  std::string values(128, '\0');
  values[0] = char(0x0a);           // value 0: 10
  values[2 * 32 + 7] = char(0x30);  // value 5 * 32 + 7: 3
  const io::GgufFile file =
      read(GgufBytes().tensor("k", {256}, 12, block + packed + values).bytes());
  const std::vector<float> x = file.tensors.at("k").to_vector<float>();
  CHECK(x[0] == 2 * 63 * 10);
  CHECK(x[1] == 0);
  CHECK(x[5 * 32 + 7] == 2 * 0b110010 * 3 - 0b010011);
  CHECK(x[5 * 32 + 8] == -0b010011);
}

TEST_CASE("gguf: files that lie are refused, and take no memory") {
  const test::TempDir dir;
  const auto refused = [&](const std::string& bytes, const std::string& words) {
    test::check_refused(dir, words, bytes, words, [](const std::string& p) { io::load_gguf(p); });
  };
  const GgufBytes one = GgufBytes().tensor("x", {4}, 0, std::string(16, '\0'));
  const std::string good = one.bytes();
  refused("", "ends within its header");
  refused("GGML" + good.substr(4), "no GGUF file");
  refused(one.bytes(1), "version is not read; got 1");
  refused(good.substr(0, 50), "ends within its header");
  refused(good.substr(0, good.size() - 32), "does not lie within the file");
  std::string many = good;
  many.replace(8, 8, GgufBytes::raw(~uint64_t{0}));
  refused(many, "more than it has room for");
  many = good;
  many.replace(16, 8, GgufBytes::raw(uint64_t{1} << 40));
  refused(many, "more than it has room for");
  refused(GgufBytes().tensor("x", {uint64_t{1} << 40, uint64_t{1} << 40}, 0, "").bytes(),
          "impossible size");
  refused(GgufBytes().tensor("x", {0}, 0, "").bytes(), "impossible size");
  refused(GgufBytes().tensor("x", {uint64_t{1} << 40}, 0, "").bytes(), "lie within the file");
  refused(GgufBytes().tensor("x", std::vector<uint64_t>(9, 1), 0, "").bytes(), "too many dims");
  refused(GgufBytes().tensor("x", {33}, 8, "").bytes(), "no whole number of blocks of Q8_0");
  refused(GgufBytes().tensor("x", {32}, 13, "").bytes(), "a type that is not read; got number 13");
  refused(GgufBytes().tensor("x", {1}, 0, "abcd").tensor("x", {1}, 0, "abcd").bytes(), "twice");
  refused(GgufBytes().tensor("", {1}, 0, "abcd").bytes(), "empty or no UTF-8");
  refused(GgufBytes().value("k", 99, "").bytes(), "unknown type 99");
  refused(GgufBytes().value("k", 7, "\x02").bytes(), "neither 0 nor 1");
  refused(GgufBytes().value("k", 0, "a").value("k", 0, "b").bytes(), "occurs twice");
  refused(GgufBytes().value("k", 8, GgufBytes::raw(uint64_t{1} << 60)).bytes(), "room for");
  refused(GgufBytes().value("general.alignment", 4, GgufBytes::raw(uint32_t{3})).bytes(),
          "power of two");
  std::string nested;
  for (int i = 0; i < 6; ++i) nested += GgufBytes::raw(uint32_t{9}) + GgufBytes::raw(uint64_t{1});
  refused(GgufBytes().value("k", 9, nested + std::string(64, '\0')).bytes(), "nested");
}

TEST_CASE("gguf: damaged files give an IoError or a model") {
  const test::TempDir dir;
  const std::string list =
      GgufBytes::raw(uint32_t{8}) + GgufBytes::raw(uint64_t{1}) + GgufBytes::text("a");
  const std::string good = GgufBytes()
                               .value("words", 9, list)
                               .tensor("f", {3, 2}, 0, std::string(24, '\1'))
                               .tensor("q", {32, 2}, 8, std::string(68, '\1'))
                               .tensor("k", {256}, 12, std::string(144, '\1'))
                               .bytes();
  std::mt19937 random(1);
  for (int i = 0; i < 1500; ++i) {
    const std::string path = test::rewrite(dir.path("f"), test::mutated(good, random));
    try {
      io::load_gguf(path);
    } catch (const IoError&) {
    }
  }
}
