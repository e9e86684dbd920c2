// Byte-level BPE from C++: the files of tests/fixtures/tokenizers, whose ids the package tokenizers
// wrote down; and hostile files.
#include "kiln/text/byte_level_bpe.h"

#include <doctest/doctest.h>

#include "kiln/core/json.h"
#include "kiln/kiln.h"
#include "tests/support/fixtures.h"
#include "tests/support/hostile.h"

using namespace kiln;
using text::ByteLevelBpe;

namespace {

std::string fixture(const std::string& name) { return test::fixture("tokenizers/" + name); }

std::vector<int64_t> numbers(const Json& list) {
  std::vector<int64_t> out;
  for (const Json& item : *list.as<Json::Array>()) out.push_back(*item.as<int64_t>());
  return out;
}

// A file with one thing changed.
std::string with(const std::string& from, const std::string& to) {
  std::string json =
      R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]},)"
      R"( "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}})";
  const size_t at = json.find(from);
  REQUIRE(at != std::string::npos);
  return json.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("byte-level BPE: ids and texts equal those of the package") {
  const Json expected = decode_json(test::read_bytes(fixture("expected.json")));
  for (const char* name : {"gpt2", "llama3"}) {
    CAPTURE(name);
    const auto tokenizer = ByteLevelBpe::from_file(fixture(std::string(name) + ".json"));
    for (const Json& row : *expected.find(name)->as<Json::Array>()) {
      const auto& parts = *row.as<Json::Array>();
      const std::string& given = *parts[0].as<std::string>();
      CAPTURE(given);
      const std::vector<int64_t> ids = numbers(parts[1]);
      CHECK(tokenizer.encode(given) == ids);
      CHECK(tokenizer.encode(given, false) == numbers(parts[2]));
      CHECK(tokenizer.decode(ids) == *parts[3].as<std::string>());
    }
  }
}

TEST_CASE("byte-level BPE: how texts become words") {
  using Words = std::vector<std::string_view>;
  const auto words = [](std::string_view x, text::WordRule rule) {
    return text::split_words(x, rule);
  };
  CHECK(words("I'll go  on, 1234!", text::WordRule::gpt2) ==
        Words{"I", "'ll", " go", " ", " on", ",", " 1234", "!"});
  CHECK(words("I'LL go  on, 1234!\n\n x", text::WordRule::llama3) ==
        Words{"I", "'LL", " go", " ", " on", ",", " ", "123", "4", "!\n\n", " x"});
  CHECK(words("12 \n  ", text::WordRule::qwen2) == Words{"1", "2", " \n", "  "});
  CHECK(words("\xc3\xa9t\xc3\xa9 \xe2\x85\xa7", text::WordRule::gpt2) ==
        Words{"\xc3\xa9t\xc3\xa9", " \xe2\x85\xa7"});
}

TEST_CASE("byte-level BPE: names, merges in order, and broken text") {
  const auto tokenizer = ByteLevelBpe::from_json(with("", ""));
  CHECK(tokenizer.encode("abba") == std::vector<int64_t>{2, 1, 0});
  CHECK(tokenizer.find("ab") == 2);
  CHECK(tokenizer.token(1) == "b");
  CHECK(!tokenizer.find("c"));
  CHECK_THROWS_AS(tokenizer.token(3), IndexError);
  CHECK_THROWS_AS(tokenizer.decode(std::vector<int64_t>{9}), IndexError);
  CHECK_THROWS_AS(tokenizer.encode("\xff"), ValueError);
  const auto bytes = ByteLevelBpe::from_file(fixture("gpt2.json"));
  const std::string given = "any \xc3\xbcnicode \xf0\x9f\x98\x80 text\n";
  std::vector<int64_t> ids = bytes.encode(given);
  CHECK(bytes.decode(ids) == given);
}

TEST_CASE("byte-level BPE: what is refused") {
  const auto message = [](const std::string& json) {
    return test::message_of<Error>([&] { ByteLevelBpe::from_json(json); });
  };
  const auto has = [&](const std::string& from, const std::string& to, const std::string& words) {
    const std::string found = message(with(from, to));
    CAPTURE(found);
    CHECK(found.find(words) != std::string::npos);
  };
  CHECK(message("{").find("ByteLevelBpe") != std::string::npos);
  CHECK(message("{}").find("'model' must be an object; got nothing") != std::string::npos);
  has("BPE", "Unigram", "model.type must be BPE; got 'Unigram'");
  has("\"ab\": 2", "\"ab\": -2", "an id must be");
  has("\"a b\"", "\"a c\"", "merge 0 is no pair");
  has("\"a b\"", "7", "merge 0 is no pair");
  has("ByteLevel", "Magic", "pre_tokenizer must be");
  has("\"pre_tokenizer\"", "\"normalizer\"", "asks for a normalizer");
  has("{\"type\": \"ByteLevel\", \"add_prefix_space\": false}",
      R"({"type": "Split", "pattern": {"Regex": "x+"}, "behavior": "Isolated"})",
      "splits a text in a way that is not there: x+");
  const test::TempDir dir;
  CHECK_THROWS_AS(ByteLevelBpe::from_file(dir.path("none.json")), IoError);
}

TEST_CASE("byte-level BPE: damaged files are refused or read") {
  const std::string good = test::read_bytes(fixture("llama3.json"));
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    try {
      const auto tokenizer = ByteLevelBpe::from_json(test::mutated(good, random));
      tokenizer.decode(tokenizer.encode("tensors of 12345 <s>x</s>"));
    } catch (const Error& error) {
      CHECK(std::string(error.what()).size() < 400);
      ++refused;
    }
  }
  CHECK(refused > 0);
}
