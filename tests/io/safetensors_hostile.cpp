// Safetensors files that lie. Each must give an IoError, and none may take memory on its word.
#include <random>

#include <doctest/doctest.h>

#include "kiln/core/allocator.h"
#include "kiln/io/safetensors.h"
#include "tests/support/temp_dir.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::io;
using kiln::test::message_of;
using kiln::test::TempDir;
using kiln::test::write_bytes;

namespace {

std::string length_bytes(uint64_t n) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(n >> (8 * i) & 255);
  return bytes;
}

// A file with this header and `data` bytes of zeros.
std::string file_of(const std::string& header, size_t data = 0) {
  return length_bytes(header.size()) + header + std::string(data, '\0');
}

// {"name": {"dtype": ..., "shape": ..., "data_offsets": ...}} without the outer braces.
std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

struct Hostile {
  std::string what;
  std::string bytes;
  std::string message;  // a part of the error's
};

std::vector<Hostile> hostile_files() {
  const std::string f4 = "\"F32\"";
  const auto one = [](const std::string& t, size_t data = 4) {
    return file_of("{" + t + "}", data);
  };
  const auto two = [](const std::string& a, const std::string& b, size_t data) {
    return file_of("{" + a + "," + b + "}", data);
  };
  const auto with_shape = [&](const std::string& shape) {
    return one(tensor("a", "F32", shape, "[0,4]"));
  };
  const auto with_offsets = [&](const std::string& o) { return one(tensor("a", "F32", "[1]", o)); };
  return {
      // the frame
      {"empty file", "", "too short"},
      {"seven bytes", std::string(7, '\0'), "too short"},
      {"no header", length_bytes(0), "no JSON object"},
      {"header longer than the file", length_bytes(100) + "{}", "longer than the file"},
      {"header one byte longer", length_bytes(3) + "{}", "longer than the file"},
      {"header of 2^64 - 1 bytes", length_bytes(UINT64_MAX) + "{}", "too long"},
      {"header of 2^63 bytes", length_bytes(uint64_t{1} << 63) + "{}", "too long"},
      {"header above the limit", length_bytes(100'000'001) + "{}", "too long"},
      // the JSON
      {"array", file_of("[]"), "no JSON object"},
      {"null", file_of("null"), "no JSON object"},
      {"number", file_of("1"), "no JSON object"},
      {"leading blank", file_of(" {}"), "no JSON object"},
      {"byte order mark", file_of("\xef\xbb\xbf{}"), "no JSON object"},
      {"zero bytes", file_of(std::string("{}\0\0", 4)), "zero byte"},
      {"hidden behind a zero byte", file_of(std::string("{}\0garbage", 10)), "zero byte"},
      {"two values", file_of("{}{}"), "no valid JSON"},
      {"cut", file_of("{\"a\":{\"dtype\":"), "no valid JSON"},
      {"comment", file_of("{/* */}"), "no valid JSON"},
      {"trailing comma", file_of("{" + tensor("a", "F32", "[1]", "[0,4]") + ",}", 4),
       "no valid JSON"},
      {"single quotes", file_of("{'a':1}"), "no valid JSON"},
      {"invalid UTF-8", file_of("{\"\xff\":1}"), "no valid JSON"},
      {"lone surrogate", file_of("{\"\\ud800\":1}"), "no valid JSON"},
      {"NaN", with_shape("[NaN]"), "no valid JSON"},
      {"infinity", with_shape("[Infinity]"), "no valid JSON"},
      {"number out of range", with_shape("[1e999]"), "no valid JSON"},
      {"leading zero", with_shape("[01]"), "no valid JSON"},
      {"nested objects", file_of(repeated("{\"a\":", 100'000)), "unknown field"},
      {"nested arrays", file_of("{\"a\":" + repeated("[", 1'000'000)), "wrong value"},
      {"nested shape", with_shape(repeated("[", 1'000'000)), "wrong value"},
      // the fields
      {"tensor is a number", file_of("{\"a\":1}"), "wrong value"},
      {"tensor is null", file_of("{\"a\":null}"), "wrong value"},
      {"tensor is empty", file_of("{\"a\":{}}"), "no dtype"},
      {"no shape", file_of("{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,0]}}"), "no shape"},
      {"no offsets", file_of("{\"a\":{\"dtype\":\"F32\",\"shape\":[0]}}"), "no data_offsets"},
      {"unknown field",
       one("\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}"),
       "unknown field"},
      {"field twice",
       one("\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}"),
       "a field twice"},
      {"shape twice",
       one("\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"shape\":[1],\"data_offsets\":[0,4]}"),
       "a field twice"},
      {"unknown dtype", one(tensor("a", "F31", "[1]", "[0,4]")), "unknown dtype"},
      {"small dtype", one(tensor("a", "f32", "[1]", "[0,4]")), "unknown dtype"},
      {"empty dtype", one(tensor("a", "", "[1]", "[0,4]")), "unknown dtype"},
      {"dtype is a number", one("\"a\":{\"dtype\":32,\"shape\":[1],\"data_offsets\":[0,4]}"),
       "wrong value"},
      {"dtype is a list",
       one("\"a\":{\"dtype\":[" + f4 + "],\"shape\":[1],\"data_offsets\":[0,4]}"), "wrong value"},
      {"shape is a number", with_shape("1"), "wrong value"},
      {"shape is text", with_shape("\"1\""), "wrong value"},
      {"shape is an object", with_shape("{}"), "wrong value"},
      {"dim is negative", with_shape("[-1]"), "wrong value"},
      {"dim is minus zero", with_shape("[-0]"), "wrong value"},
      {"dim is a fraction", with_shape("[1.0]"), "wrong value"},
      {"dim is text", with_shape("[\"1\"]"), "wrong value"},
      {"dim is null", with_shape("[null]"), "wrong value"},
      {"dim is true", with_shape("[true]"), "wrong value"},
      {"dim of 2^63", with_shape("[9223372036854775808]"), "too large"},
      {"dim of 2^64", with_shape("[18446744073709551616]"), "wrong value"},
      {"13 dims", with_shape("[1,1,1,1,1,1,1,1,1,1,1,1,1]"), "too many dims"},
      {"a million dims", with_shape("[" + repeated("1,", 1'000'000) + "1]"), "too many dims"},
      // sizes
      {"shape too large", with_shape("[2]"), "another size"},
      {"shape too small", one(tensor("a", "F32", "[1]", "[0,8]"), 8), "another size"},
      {"no dims, no data", one(tensor("a", "F32", "[]", "[0,0]"), 0), "another size"},
      {"empty with data", with_shape("[0]"), "another size"},
      {"product wraps to 4", with_shape("[4611686018427387905]"), "overflows"},
      {"product wraps to 0", one(tensor("a", "F32", "[4294967296,4294967296]", "[0,0]"), 0),
       "overflows"},
      {"bytes wrap", one(tensor("a", "F64", "[2305843009213693952]", "[0,0]"), 0), "overflows"},
      {"empty but strides overflow",
       one(tensor("a", "F32", "[0,4294967296,4294967296]", "[0,0]"), 0), "overflows"},
      // offsets
      {"offsets missing", with_offsets("[]"), "incomplete"},
      {"one offset", with_offsets("[0]"), "incomplete"},
      {"three offsets", with_offsets("[0,4,4]"), "wrong value"},
      {"offsets are text", with_offsets("[\"0\",\"4\"]"), "wrong value"},
      {"negative offset", with_offsets("[-4,0]"), "wrong value"},
      {"offset is a fraction", with_offsets("[0,4.0]"), "wrong value"},
      {"backwards", with_offsets("[4,0]"), "outside"},
      {"beyond the end", with_offsets("[4,8]"), "outside"},
      {"end of 2^64 - 1", with_offsets("[0,18446744073709551615]"), "outside"},
      {"wrapping", with_offsets("[18446744073709551612,0]"), "outside"},
      {"missing data", one(tensor("a", "F32", "[1]", "[0,4]"), 3), "outside"},
      {"a huge claim", one(tensor("a", "F32", "[250000000000]", "[0,1000000000000]")), "outside"},
      {"bytes at the end", one(tensor("a", "F32", "[1]", "[0,4]"), 5), "belongs to no tensor"},
      {"data without tensors", file_of("{}", 1), "belongs to no tensor"},
      {"gap at the start", one(tensor("a", "F32", "[1]", "[4,8]"), 8), "gap"},
      {"gap between",
       two(tensor("a", "F32", "[1]", "[0,4]"), tensor("b", "F32", "[1]", "[8,12]"), 12), "gap"},
      {"overlap", two(tensor("a", "F32", "[2]", "[0,8]"), tensor("b", "F32", "[1]", "[4,8]"), 8),
       "overlaps"},
      {"the same data twice",
       two(tensor("a", "F32", "[1]", "[0,4]"), tensor("b", "F32", "[1]", "[0,4]"), 4), "overlaps"},
      {"overlap in reverse",
       two(tensor("b", "F32", "[2]", "[4,12]"), tensor("a", "F32", "[2]", "[0,8]"), 12),
       "overlaps"},
      // names
      {"name twice", two(tensor("a", "F32", "[1]", "[0,4]"), tensor("a", "F32", "[1]", "[4,8]"), 8),
       "appears twice"},
      {"empty tensor's name twice",
       two(tensor("a", "F32", "[0]", "[0,0]"), tensor("a", "F32", "[0]", "[0,0]"), 0),
       "appears twice"},
      {"name twice by escape",
       two(tensor("a", "F32", "[1]", "[0,4]"), tensor("\\u0061", "F32", "[1]", "[4,8]"), 8),
       "appears twice"},
      // metadata
      {"metadata is null", file_of("{\"__metadata__\":null}"), "wrong value"},
      {"metadata is a list", file_of("{\"__metadata__\":[]}"), "wrong value"},
      {"metadata is text", file_of("{\"__metadata__\":\"x\"}"), "wrong value"},
      {"metadata holds a number", file_of("{\"__metadata__\":{\"a\":1}}"), "wrong value"},
      {"metadata holds an object", file_of("{\"__metadata__\":{\"a\":{}}}"), "wrong value"},
      {"metadata twice", file_of("{\"__metadata__\":{},\"__metadata__\":{}}"), "appears twice"},
      {"metadata key twice", file_of("{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}"),
       "appears twice"},
      // values
      {"boolean 2", one(tensor("a", "BOOL", "[3]", "[0,3]"), 0) + std::string("\0\2\1", 3),
       "bad boolean"},
      {"boolean 255", one(tensor("a", "BOOL", "[1]", "[0,1]"), 0) + "\xff", "bad boolean"},
  };
}

}  // namespace

TEST_CASE("safetensors: every malformed file is an IoError that says what is wrong") {
  TempDir dir;
  for (const Hostile& h : hostile_files()) {
    CAPTURE(h.what);
    const std::string path = write_bytes(dir.path("f"), h.bytes);
    reset_memory_stats();
    const size_t before = memory_stats().peak_bytes_in_use;
    const std::string message = message_of<IoError>([&] { load_safetensors(path); });
    CAPTURE(message);
    CHECK(message.find(h.message) != std::string::npos);
    CHECK(message.find(path) != std::string::npos);
    CHECK(message.size() < 600);
    CHECK(memory_stats().peak_bytes_in_use - before < 65536);
  }
}

TEST_CASE("safetensors: a header of a name as long as it gets is read, and cut in messages") {
  TempDir dir;
  const std::string name(5'000'000, 'n');
  const std::string good = file_of("{" + tensor(name, "U8", "[0]", "[0,0]") + "}");
  CHECK(load_safetensors(write_bytes(dir.path("f"), good)).tensors.size() == 1);
  const std::string bad = file_of("{" + tensor(name, "U8", "[1]", "[0,0]") + "}");
  const std::string path = write_bytes(dir.path("f"), bad);
  CHECK(message_of<IoError>([&] { load_safetensors(path); }).size() < 600);
}

TEST_CASE("safetensors: many tensors are read in reasonable time") {
  TempDir dir;
  std::string header = "{";
  const int n = 20'000;
  for (int i = n - 1; i >= 0; --i) {
    header += tensor("t" + std::to_string(i), "U8", "[1]",
                     "[" + std::to_string(i) + "," + std::to_string(i + 1) + "]") +
              (i > 0 ? "," : "}");
  }
  const SafetensorsReader reader(write_bytes(dir.path("f"), file_of(header, n)));
  CHECK(reader.keys().size() == n);
  CHECK(reader.keys().front() == "t0");
  CHECK(reader.read("t19999").bytes() == 1);
}

TEST_CASE("safetensors: a file that shrinks after it was opened is an IoError") {
  TempDir dir;
  const std::string bytes = file_of("{" + tensor("a", "F32", "[1]", "[0,4]") + "}", 4);
  const std::string path = write_bytes(dir.path("f"), bytes);
  const SafetensorsReader reader(path);
  std::filesystem::resize_file(path, bytes.size() - 2);
  CHECK_THROWS_AS(reader.read("a"), IoError);
}

TEST_CASE("safetensors: opening a huge file takes no memory") {
  TempDir dir;
  const std::string bytes =
      file_of("{" + tensor("a", "U8", "[4398046511104]", "[0,4398046511104]") + "}");
  const std::string path = write_bytes(dir.path("f"), bytes);
  std::error_code error;
  std::filesystem::resize_file(path, bytes.size() + (uint64_t{1} << 42), error);  // sparse
  if (error) {
    MESSAGE("skipped: the file system has no files of 4 TiB");
    return;
  }
  reset_memory_stats();
  const size_t before = memory_stats().peak_bytes_in_use;
  const SafetensorsReader reader(path);
  CHECK(reader.shape("a") == Shape{int64_t{1} << 42});
  CHECK(memory_stats().peak_bytes_in_use == before);
}

TEST_CASE("safetensors: mutations of a good file give a result or an IoError, nothing else") {
  TempDir dir;
  const std::string good =
      file_of("{\"__metadata__\":{\"k\":\"v\"}," + tensor("w", "F32", "[2,3]", "[0,24]") + "," +
                  tensor("b", "BOOL", "[2]", "[24,26]") + "," +
                  tensor("e", "I64", "[0,7]", "[26,26]") + "}",
              26);
  std::mt19937 random(20240607);
  const auto below = [&](size_t n) { return static_cast<size_t>(random()) % n; };
  const std::string alphabet = "0123456789{}[]\",:-+.eEnultrafsFBIUO \\";
  int results = 0;
  int errors = 0;
  const std::string path = dir.path("f");
  for (int i = 0; i < 6000; ++i) {
    std::string bytes = good;
    for (size_t edits = 1 + below(3); edits > 0 && !bytes.empty(); --edits) {
      const size_t at = below(bytes.size());
      switch (below(6)) {
        case 0:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
          break;
        case 1:
          bytes[at] = alphabet[below(alphabet.size())];
          break;
        case 2:
          bytes.insert(at, 1, alphabet[below(alphabet.size())]);
          break;
        case 3:
          bytes.erase(at, 1 + below(4));
          break;
        case 4:
          bytes.insert(at, bytes.substr(below(bytes.size()), below(20)));
          break;
        default:
          bytes.resize(at + 1);
      }
      // Half of the time the length fits again, so that the JSON behind it is reached.
      const size_t brace = bytes.rfind('}');
      if (below(2) == 0 && bytes.size() > 8 && brace != std::string::npos && brace >= 8) {
        bytes.replace(0, 8, length_bytes(brace - 7));
      }
    }
    write_bytes(path, bytes);
    try {
      const auto file = load_safetensors(path);
      for (const auto& [name, data] : file.tensors) CHECK(data.bytes() <= bytes.size());
      ++results;
    } catch (const IoError&) {
      ++errors;
    }
  }
  CHECK(results > 100);
  CHECK(errors > 1000);
}
