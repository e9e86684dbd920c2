// SentencePiece from C++: the files of tests/fixtures/tokenizers, whose ids the package
// sentencepiece wrote down; and hostile files. tests/python/test_sentence_piece.py has more.
#include "kiln/text/sentence_piece.h"

#include <doctest/doctest.h>

#include "kiln/core/json.h"
#include "kiln/kiln.h"
#include "tests/support/fixtures.h"
#include "tests/support/hostile.h"

using namespace kiln;
using text::SentencePiece;

namespace {

std::string model_fixture(const std::string& name) { return test::fixture("tokenizers/" + name); }

std::vector<int64_t> id_list(const Json& list) {
  std::vector<int64_t> out;
  for (const Json& item : *list.as<Json::Array>()) out.push_back(*item.as<int64_t>());
  return out;
}

}  // namespace

TEST_CASE("sentencepiece: ids and texts equal those of the package") {
  const Json expected = decode_json(test::read_bytes(model_fixture("sentence_pieces.json")));
  int models = 0;
  for (const auto& [name, values] : *expected.as<Json::Object>()) {
    CAPTURE(name);
    const SentencePiece model = SentencePiece::from_file(model_fixture(name + ".model"));
    for (const Json& row : *values.find("rows")->as<Json::Array>()) {
      const auto& parts = *row.as<Json::Array>();
      const std::vector<int64_t> ids = id_list(parts[1]);
      CHECK(model.encode(*parts[0].as<std::string>()) == ids);
      CHECK(model.decode(ids) == *parts[2].as<std::string>());
    }
    ++models;
  }
  CHECK(models == 5);
}

TEST_CASE("sentencepiece: names, control pieces, and what is no UTF-8") {
  const SentencePiece model = SentencePiece::from_file(model_fixture("unigram_bytes.model"));
  CHECK(model.size() == 600);
  CHECK(model.bos_id() == 1);
  CHECK(model.pad_id() == 3);
  CHECK(model.piece(2).text == "</s>");
  CHECK(model.find("<tool>") == 4);
  const auto ids = model.encode("x", true, true);
  CHECK(ids.front() == 1);
  CHECK(ids.back() == 2);
  CHECK(model.decode(model.encode("a\xff z")) == "a\xef\xbf\xbd z");
  CHECK_THROWS_AS(model.piece(600), IndexError);
  CHECK_THROWS_AS(model.decode(std::vector<int64_t>{-1}), IndexError);
}

TEST_CASE("sentencepiece: damaged files are refused or read") {
  const test::TempDir dir;
  CHECK_THROWS_AS(SentencePiece::from_file(dir.path("none.model")), IoError);
  const std::string good = test::read_bytes(model_fixture("bpe_bytes.model"));
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 400; ++i) {
    try {
      const SentencePiece model = SentencePiece::from_bytes(test::mutated(good, random));
      model.decode(model.encode("tensors of \xef\xbc\xa1 <tool>"));
    } catch (const Error& error) {
      CHECK(std::string(error.what()).size() < 300);
      ++refused;
    }
  }
  CHECK(refused > 0);
}
