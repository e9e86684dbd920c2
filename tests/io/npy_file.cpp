// NumPy's files: those that NumPy 2 wrote (tests/fixtures/make_fixtures.py), Kiln's own, and
// hostile ones.
#include "kiln/io/npy_file.h"

#include <string>

#include <doctest/doctest.h>

#include "kiln/io/model_file.h"
#include "kiln/io/zip_reader.h"
#include "kiln/tensor/complex/complex.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "tests/support/fixtures.h"
#include "tests/support/hostile.h"
#include "tests/support/near.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zip_bytes.h"

using namespace kiln;
using namespace kiln::io;
using kiln::test::check_refused;
using kiln::test::fixture;
using kiln::test::fuzz;
using kiln::test::message_of;
using kiln::test::near;
using kiln::test::TempDir;

using namespace std::string_literals;

namespace {

Tensor load_fixture(const std::string& name) { return load_npy(fixture("numpy/" + name + ".npy")); }

// A version 1 file with this header text.
std::string npy(const std::string& text, const std::string& data = "") {
  return std::string("\x93NUMPY\1\0", 8) + test::little_endian(text.size(), 2) + text + data;
}
std::string header(const std::string& descr, const std::string& order, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

void load(const std::string& path) { load_npy(path); }

}  // namespace

TEST_CASE("npy: every dtype that NumPy and Kiln have") {
  const std::pair<const char*, DType> types[] = {{"f8", f64}, {"f4", f32}, {"f2", f16},
                                                 {"i8", i64}, {"i4", i32}, {"i2", i16},
                                                 {"i1", i8},  {"u1", u8},  {"bool", bool_}};
  for (const auto& [name, dtype] : types) {
    CAPTURE(name);
    const Tensor x = load_fixture(name);
    CHECK(x.dtype() == dtype);
    CHECK(x.shape() == Shape{2, 3});
    CHECK(near(x,
               is_floating_point(dtype) ? std::vector<double>{-1.5, -0.5, 0.5, 1.5, 2.5, 3.5}
               : dtype == bool_         ? std::vector<double>{0, 1, 0, 1, 0, 1}
                                        : std::vector<double>{0, 1, 2, 3, 4, 5},
               0, 0));
  }
}

TEST_CASE("npy: byte order, Fortran order, shapes and versions") {
  CHECK(near(load_fixture("big_f4"), {-1.5, -0.5, 0.5, 1.5, 2.5, 3.5}, 0, 0));
  CHECK(near(load_fixture("big_i8"), {0, 1, 2, 3, 4, 5}, 0, 0));
  const Tensor fortran = load_fixture("fortran");
  CHECK(fortran.shape() == Shape{2, 3, 4});
  CHECK(fortran.is_contiguous());
  CHECK(fortran.equal(arange(24, {f64}).reshape({2, 3, 4})));
  CHECK(load_fixture("scalar").shape() == Shape{});
  CHECK(load_fixture("scalar").item() == 2.5);
  CHECK(load_fixture("empty").shape() == Shape{0, 3});
  CHECK(near(load_fixture("version2"), {0, 1, 2, 3, 4, 5}));
  CHECK(near(load_fixture("version3"), {0, 1, 2, 3, 4, 5}));
}

TEST_CASE("npy: complex arrays both ways") {
  using Complex = std::complex<double>;
  CHECK(load_fixture("complex").to_vector<Complex>() == std::vector<Complex>{1, 1});
  const TempDir dir;
  for (const DType dtype : {DType::c64, DType::c128}) {
    const Tensor z = full({2, 3}, Complex(1, -2), {dtype}).select(1, 1);
    save_npy(dir.path("z.npy"), z);
    const Tensor back = load_npy(dir.path("z.npy"));
    CHECK(back.dtype() == dtype);
    CHECK(back.to_vector<Complex>() == std::vector<Complex>{{1, -2}, {1, -2}});
  }
}

TEST_CASE("npy: what Kiln has no dtype for is refused by name") {
  const auto refused = [](const char* name, const char* words) {
    CAPTURE(name);
    const std::string message = message_of<IoError>([&] { load_fixture(name); });
    CAPTURE(message);
    CHECK(message.find(words) != std::string::npos);
    // Its shape can be looked at all the same.
    CHECK(!open_model_file(fixture(std::string("numpy/") + name + ".npy"))
               ->entries()[0]
               .refusal.empty());
  };
  refused("unsigned", "<u4");
  refused("text", "<U2");
  refused("structured", "structures");
  refused("objects", "Python objects, which are never read");
  CHECK(message_of<IoError>([] { load_fixture("stream"); }).find("another size") !=
        std::string::npos);
}

TEST_CASE("npz: NumPy's archives, stored and compressed") {
  for (const char* name : {"numpy/arrays.npz", "numpy/compressed.npz"}) {
    CAPTURE(name);
    const nn::StateDict arrays = load_npz(fixture(name));
    CHECK(arrays.keys() == std::vector<std::string>{"weight", "layer/bias", "flag", "repeated"});
    CHECK(arrays.at("weight").equal(arange(12, {f32}).reshape({3, 4})));
    CHECK(arrays.at("weight").dtype() == f32);
    CHECK(near(arrays.at("layer/bias"), {0, 1, 2}));
    CHECK(arrays.at("flag").item<bool>());
    CHECK(arrays.at("repeated").equal(zeros({50, 20}, {f64})));
    CHECK(open_model_file(fixture(name))->format() == FileFormat::npz);
  }
}

TEST_CASE("npy and npz: what Kiln writes comes back") {
  TempDir dir;
  nn::StateDict all;
  for (const DType t : {f64, f32, f16, i64, i32, i16, i8, u8}) {
    all.set("layer." + to_string(t), tensor({{0, 1, 2}, {3, 4, 5}}).to(t));
  }
  all.set("flag", tensor({true, false}));
  all.set("scalar", tensor(1.5));
  all.set("empty", zeros({0, 2}));
  all.set("turned", arange(6, {f32}).reshape({2, 3}).t());
  for (const bool compressed : {false, true}) {
    save_npz(dir.path("a.npz"), all, compressed);
    const nn::StateDict back = load_npz(dir.path("a.npz"));
    CHECK(back.keys() == all.keys());
    for (const auto& [name, value] : all) {
      CAPTURE(name);
      CHECK(back.at(name).dtype() == value.dtype());
      CHECK(back.at(name).equal(value));
      save_npy(dir.path("x.npy"), value);
      CHECK(load_npy(dir.path("x.npy")).equal(value));
    }
  }
  // The layout that NumPy writes: magic, version 1.0, a header that ends in a newline at 64 bytes.
  save_npy(dir.path("x.npy"), ones({3}));
  const std::string bytes = test::read_bytes(dir.path("x.npy"));
  CHECK(bytes.substr(0, 10) == std::string("\x93NUMPY\1\0\x76\0", 10));
  CHECK(bytes.substr(10, 58) == "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), } "s);
  CHECK(bytes.size() == 128 + 12);
  CHECK(bytes[127] == '\n');
}

TEST_CASE("npy: bfloat16 is written as float32, exactly") {
  TempDir dir;
  const Tensor x = tensor({1.0, -0.0078125, 3.140625}).to(bf16);
  save_npy(dir.path("x.npy"), x);
  const Tensor back = load_npy(dir.path("x.npy"));
  CHECK(back.dtype() == f32);
  CHECK(back.equal(x.to(f32)));
  CHECK_THROWS_AS(save_npy(dir.path("q.npy"), quantize(ones({2}), {})), DTypeError);
  CHECK_THROWS_AS(save_npz(dir.path("q.npz"), {{"../x", ones({1})}}), ValueError);
  CHECK(dir.names().size() == 1);
}

TEST_CASE("npy: headers that lie") {
  TempDir dir;
  const auto refused = [&](const char* what, const std::string& bytes, const char* message) {
    check_refused(dir, what, bytes, message, load);
  };
  const std::string eight(8, '\0');
  load(test::write_bytes(dir.path("good"), npy(header("<f4", "False", "(2,)"), eight)));
  load(test::write_bytes(dir.path("long"), npy(header("<f4", "False", "(2L,)"), eight)));
  load(test::write_bytes(dir.path("quotes"),
                         npy("{\"shape\":(2,),\"fortran_order\":True,\"descr\":\"<f4\"}", eight)));
  refused("empty", "", "too short");
  refused("another start", std::string(100, 'x'), "does not begin");
  refused("version 0", "\x93NUMPY" + std::string(100, '\0'), "format is unknown");
  refused("version 4", "\x93NUMPY\4" + std::string(100, '\0'), "format is unknown");
  refused("header beyond the end", std::string("\x93NUMPY\1\0\xff\xff", 10) + "{}", "too long");
  refused("a header of 4 GiB", std::string("\x93NUMPY\2\0\xff\xff\xff\xff", 12) + "{}", "too long");
  refused("no dict", npy("(1, 2)"), "not as NumPy writes it");
  refused("code", npy("__import__('os').system('id')"), "not as NumPy writes it");
  refused("empty dict", npy("{}"), "no descr");
  refused("no shape", npy("{'descr': '<f4', 'fortran_order': False}"), "no descr");
  refused("a key twice", npy("{'descr': '<f4', 'descr': '<f4'}"), "repeated key");
  refused("an unknown key", npy("{'x': '<f4'}"), "unknown");
  refused("a text without end", npy("{'descr"), "without end");
  refused("something behind", npy(header("<f4", "False", "(2,)") + "x", eight), "after its end");
  refused("order", npy(header("<f4", "Maybe", "(2,)"), eight), "neither True nor False");
  refused("negative size", npy(header("<f4", "False", "(-2,)"), eight), "no number");
  refused("huge size", npy(header("<f4", "False", "(99999999999999999999,)"), eight), "no number");
  refused("float size", npy(header("<f4", "False", "(2.0,)"), eight), "no ')'");
  refused("no tuple", npy(header("<f4", "False", "2"), eight), "no '('");
  refused("13 dims", npy(header("<f4", "False", "(1,1,1,1,1,1,1,1,1,1,1,1,1)"), "1234"), "dims");
  refused("overflow", npy(header("<f8", "False", "(4611686018427387904, 4)"), eight), "overflows");
  refused("empty, but overflows",
          npy(header("<f8", "False", "(0, 4611686018427387904, 4611686018427387904)")),
          "overflows");
  refused("a petabyte", npy(header("<f4", "False", "(281474976710656,)"), eight), "another size");
  refused("too few values", npy(header("<f4", "False", "(3,)"), eight), "another size");
  refused("too many values", npy(header("<f4", "False", "(1,)"), eight), "another size");
  refused("a bool of 2", npy(header("|b1", "False", "(2,)"), "\1\2"), "neither 0 nor 1");
  refused("objects", npy(header("|O", "False", "(1,)"), "cos\nsystem\n"), "never read");
  refused("a structure", npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}"),
          "structures");
  refused("a list without end", npy("{'descr': [[[[" + std::string(1000, '[')), "without end");
}

TEST_CASE("npz: archives that lie") {
  TempDir dir;
  const auto open = [](const std::string& path) { load_npz(path); };
  const std::string array = npy(header("<f4", "False", "(2,)"), std::string(8, '\0'));
  load_npz(test::write_bytes(dir.path("good"), test::zip_of({{"a.npy", array, true}})));
  check_refused(dir, "no array", test::zip_of({{"a.npy", array}, {"b.txt", "x"}}), "is no array",
                open);
  check_refused(dir, "no name", test::zip_of({{".npy", array}}), "is no array", open);
  check_refused(dir, "upwards", test::zip_of({{"../a.npy", array}}), "leads out", open);
  check_refused(dir, "twice", test::zip_of({{"a.npy", array}, {"a.npy", array}}), "occurs twice",
                open);
  check_refused(dir, "short",
                test::zip_of({{"a.npy", npy(header("<f4", "False", "(9,)"), "12345678"), true}}),
                "another size", open);
  check_refused(
      dir, "bomb",
      test::zip_of(
          {{"a.npy", npy(header("|u1", "False", "(4000000000,)"), std::string(90, 'x')), true}}),
      "another size", open);
  check_refused(dir, "damaged", test::zip_of({{.name = "a.npy", .content = array, .crc = 1}}),
                "is damaged", open);
}

TEST_CASE("npy and npz: cut anywhere, and mutated") {
  TempDir dir;
  const std::string array = test::read_bytes(fixture("numpy/fortran.npy"));
  for (size_t n = 0; n < array.size(); ++n) {
    CHECK_THROWS_AS(load_npy(test::rewrite(dir.path("f"), array.substr(0, n))), IoError);
  }
  const std::string archive = test::read_bytes(fixture("numpy/compressed.npz"));
  for (size_t n = 0; n < archive.size(); ++n) {
    CHECK_THROWS_AS(load_npz(test::rewrite(dir.path("f"), archive.substr(0, n))), IoError);
  }
  const auto first = fuzz(dir, array, 3000, 3, load);
  CHECK(first.results > 100);
  CHECK(first.errors > 500);
  const auto second = fuzz(dir, archive, 3000, 4, [](const std::string& path) { load_npz(path); });
  CHECK(second.errors > 1000);
}
