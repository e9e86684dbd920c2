// WordPiece from C++: the files of tests/fixtures/tokenizers, whose ids the package tokenizers
// wrote down; and hostile files.
#include "kiln/text/word_piece.h"

#include <doctest/doctest.h>

#include "kiln/core/json.h"
#include "kiln/kiln.h"
#include "tests/support/fixtures.h"
#include "tests/support/hostile.h"

using namespace kiln;
using text::WordPiece;

namespace {

std::string word_piece_file(const std::string& name) { return test::fixture("tokenizers/" + name); }

std::vector<int64_t> ids_of(const Json& list) {
  std::vector<int64_t> out;
  for (const Json& item : *list.as<Json::Array>()) out.push_back(*item.as<int64_t>());
  return out;
}

const std::string kSmall =
    R"({"model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {"[UNK]": 0, "a": 1, "##b": 2,)"
    R"( "ab": 3, "!": 4}}, "normalizer": {"type": "BertNormalizer"},)"
    R"( "pre_tokenizer": {"type": "BertPreTokenizer"}, "decoder": {"type": "WordPiece"}})";

std::string small_with(const std::string& from, const std::string& to) {
  std::string json = kSmall;
  const size_t at = json.find(from);
  REQUIRE(at != std::string::npos);
  return json.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("WordPiece: ids and texts equal those of the package") {
  const Json expected = decode_json(test::read_bytes(word_piece_file("expected.json")));
  for (const char* name : {"bert", "letters", "letters_cased"}) {
    CAPTURE(name);
    const auto tokenizer = WordPiece::from_file(word_piece_file(std::string(name) + ".json"));
    for (const Json& row : *expected.find(name)->as<Json::Array>()) {
      const auto& parts = *row.as<Json::Array>();
      const std::string& given = *parts[0].as<std::string>();
      CAPTURE(given);
      const std::vector<int64_t> ids = ids_of(parts[1]);
      CHECK(tokenizer.encode(given) == ids);
      CHECK(tokenizer.encode(given, false) == ids_of(parts[2]));
      CHECK(tokenizer.decode(ids) == *parts[3].as<std::string>());
    }
  }
}

TEST_CASE("WordPiece: the longest token first, and a word that has none") {
  const auto tokenizer = WordPiece::from_json(kSmall);
  CHECK(tokenizer.encode("AB abb!a ac") == std::vector<int64_t>{3, 3, 2, 4, 1, 0});
  CHECK(tokenizer.decode(std::vector<int64_t>{1, 2, 2, 4, 0}) == "abb! [UNK]");
  CHECK(tokenizer.encode("a" + std::string(99, 'b')).size() == 99);
  CHECK(tokenizer.encode("a" + std::string(100, 'b')) == std::vector<int64_t>{0});
  CHECK(tokenizer.encode("").empty());
  CHECK(tokenizer.size() == 5);
  CHECK(tokenizer.find("##b") == 2);
  CHECK(tokenizer.token(3) == "ab");
  CHECK(!tokenizer.find("c"));
  CHECK_THROWS_AS(tokenizer.token(5), IndexError);
  CHECK_THROWS_AS(tokenizer.decode(std::vector<int64_t>{-1}), IndexError);
  CHECK_THROWS_AS(tokenizer.encode("\xff"), ValueError);
  // Without a decoder tokens stand as they are; without a pre-tokenizer the text is one word.
  const auto plain = WordPiece::from_json(small_with(R"(, "decoder": {"type": "WordPiece"})", ""));
  CHECK(plain.decode(std::vector<int64_t>{1, 2, 4}) == "a ##b !");
  const auto whole =
      WordPiece::from_json(small_with(R"("pre_tokenizer": {"type": "BertPreTokenizer"}, )", ""));
  CHECK(whole.encode("ab!") == std::vector<int64_t>{0});
  const auto cased = WordPiece::from_json(small_with("BertNormalizer", "Lowercase"));
  CHECK(cased.encode("AB") == std::vector<int64_t>{3});
}

TEST_CASE("WordPiece: what is refused") {
  const auto has = [](const std::string& from, const std::string& to, const std::string& words) {
    const std::string found = test::message_of<Error>(
        [&] { WordPiece::from_json(from.empty() ? to : small_with(from, to)); });
    CAPTURE(found);
    CHECK(found.find(words) != std::string::npos);
  };
  has("", "{", "WordPiece");
  has("", "{}", "'model' must be an object; got nothing");
  has(R"("type": "WordPiece", "unk)", R"("type": "BPE", "unk)",
      "model.type must be WordPiece; got 'BPE'");
  has(R"("a": 1)", R"("a": 1.5)", "an id must be");
  has(R"("[UNK]": 0, )", "", "lacks the unknown token '[UNK]'");
  has("BertNormalizer", "NFKC", "normalizer must be BertNormalizer; got 'NFKC'");
  has("BertPreTokenizer", "Metaspace", "pre_tokenizer must be BertPreTokenizer; got 'Metaspace'");
  has(R"("decoder": {"type": "WordPiece"})", R"("decoder": {"type": "BPE"})",
      "decoder must be WordPiece; got 'BPE'");
  has(R"("decoder")",
      R"("post_processor": {"type": "BertProcessing", "cls": [], "sep": []}, "decoder")",
      "an id must be");
  const test::TempDir dir;
  CHECK_THROWS_AS(WordPiece::from_file(dir.path("none.json")), IoError);
}

TEST_CASE("WordPiece: damaged files are refused or read") {
  const std::string good = test::read_bytes(word_piece_file("letters.json"));
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    try {
      const auto tokenizer = WordPiece::from_json(test::mutated(good, random));
      tokenizer.decode(tokenizer.encode("t\xc3\xa9nsors of 12345, don't"));
    } catch (const Error& error) {
      CHECK(std::string(error.what()).size() < 400);
      ++refused;
    }
  }
  CHECK(refused > 0);
}
