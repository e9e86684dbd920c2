// Tables from files: what they hold, and what is said of rows that do not fit.
#include "kiln/data/table.h"

#include <doctest/doctest.h>

#include "kiln/kiln.h"
#include "tests/support/temp_dir.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::data;
using kiln::test::message_of;
using kiln::test::TempDir;
using kiln::test::write_bytes;

TEST_CASE("table: a CSV file") {
  TempDir dir;
  const std::string path =
      write_bytes(dir.path("a.csv"),
                  "\xef\xbb\xbf"
                  "age,name,score,ok\r\n3,\"Ann, \"\"B\"\"\",1,true\r\n\r\n+4,\"x\ny\",2.5,0");
  const Table table = read_csv(path, {.types = {{"ok", ColumnType::boolean}}});
  CHECK(table.size() == 2);
  CHECK(table.skipped() == 0);
  CHECK(table.names() == std::vector<std::string>{"age", "name", "score", "ok"});
  CHECK(table.numbers("age").equal(tensor({3, 4})));
  CHECK(table.numbers("score").equal(tensor({1.0, 2.5}).to(f64)));
  CHECK(table.numbers("ok").equal(tensor({true, false})));
  CHECK(table.texts("name") == std::vector<std::string>{"Ann, \"B\"", "x\ny"});
  DataLoader loader(table.dataset({"score", "age"}, "ok"), {.batch_size = 2});
  for (const auto& [x, y] : loader) {
    CHECK(x.equal(tensor({{1.0, 3.0}, {2.5, 4.0}})));
    CHECK(y.equal(tensor({true, false})));
  }
  CHECK_THROWS_AS(table.numbers("name"), TypeError);
  CHECK_THROWS_AS(table.texts("age"), TypeError);
  CHECK(message_of<KeyError>([&] { table.numbers("x"); }) ==
        "Table: no column 'x'; there are age, name, score, ok");
  CHECK_THROWS_AS(table.dataset({}, "ok"), ValueError);

  const std::string bare = write_bytes(dir.path("b.csv"), "1;a;\n2;b;\n");
  const Table plain =
      read_csv(bare, {.types = {{"2", ColumnType::text}}, .delimiter = ';', .header = false});
  CHECK(plain.numbers("0").equal(tensor({1, 2})));
  CHECK(plain.texts("2") == std::vector<std::string>{"", ""});
  CHECK(read_csv(write_bytes(dir.path("c.csv"), "")).size() == 0);
  CHECK_THROWS_AS(read_csv(dir.path("none.csv")), IoError);
  CHECK_THROWS_AS(read_csv(bare, {.types = {{"z", ColumnType::text}}}), KeyError);
  CHECK_THROWS_AS(read_csv(write_bytes(dir.path("d.csv"), "a,a\n")), ValueError);
}

TEST_CASE("table: rows of CSV that do not fit") {
  TempDir dir;
  const std::vector<std::pair<std::string, std::string>> cases{
      {"3\n", "row 3: expected 2 values; got 1"},
      {"3,4,5\n", "row 3: expected 2 values; got 3"},
      {"3,x\n", "row 3, column 'b': expected a number; got 'x'"},
      {"3,\n", "row 3, column 'b': it is empty"},
      {"3.5,1\n", "row 3, column 'a': expected an integer; got 3.5"},
      {"99999999999999999999,1\n", "row 3, column 'a': expected an integer of 64 bits"},
      {"3,\xff\n", "row 3, column 'b': the text is no UTF-8"},
      {"\"3\"x,4\n", "row 3: a field goes on behind its quotes"}};
  for (const auto& [row, message] : cases) {
    const std::string path = write_bytes(dir.path("bad.csv"), "a,b\n1,2.5\n" + row + "7,8\n");
    TableOptions options{.types = {{"a", ColumnType::integer}}};
    const std::string said = message_of<ValueError>([&] { read_csv(path, options); });
    CHECK_MESSAGE(said.starts_with("read_csv: '" + path + "', " + message), said);
    options.bad_rows = BadRows::skip;
    const Table table = read_csv(path, options);
    CHECK(table.skipped() == 1);
    CHECK(table.numbers("a").equal(tensor({1, 7})));
    CHECK(table.numbers("b").equal(tensor({2.5, 8.0}).to(f64)));
  }
  const std::string open = write_bytes(dir.path("open.csv"), "a\n1\n\"2\n3");
  CHECK(message_of<ValueError>([&] { read_csv(open); }).find("row 4: a quote has no end") !=
        std::string::npos);
}

TEST_CASE("table: JSON Lines") {
  TempDir dir;
  const std::string good =
      "{\"y\": 1, \"s\": \"\xc3\xa9\", \"ok\": true}\n\n{\"ok\": false, \"s\": \"b\", \"y\": 2.5, "
      "\"more\": null}\n";
  const Table table = read_json_lines(write_bytes(dir.path("a.jsonl"), good));
  CHECK(table.numbers("y").equal(tensor({1.0, 2.5}).to(f64)));
  CHECK(table.numbers("ok").equal(tensor({true, false})));
  CHECK(table.texts("s") == std::vector<std::string>{"\xc3\xa9", "b"});
  const std::vector<std::pair<std::string, std::string>> cases{
      {"{\"y\": 1, \"ok\": true}", "row 4, column 's': it is missing"},
      {"{\"y\": \"2\", \"s\": \"b\", \"ok\": true}",
       "row 4, column 'y': expected a number; got '2'"},
      {"{\"y\": null, \"s\": \"b\", \"ok\": true}", "row 4, column 'y': it is missing"},
      {"{\"y\": [1], \"s\": \"b\", \"ok\": true}", "row 4, column 'y': expected a bool, a number"},
      {"{\"y\": 1", "row 4: it is not JSON"},
      {"[1, 2]", "row 4: expected an object"},
      {"{\"s\": \"\xff\"}", "row 4: the text is no UTF-8"}};
  for (const auto& [line, message] : cases) {
    const std::string path = write_bytes(dir.path("b.jsonl"), good + line);
    const std::string said = message_of<ValueError>([&] { read_json_lines(path); });
    CHECK_MESSAGE(said.starts_with("read_json_lines: '" + path + "', " + message), said);
    const Table some = read_json_lines(path, {.bad_rows = BadRows::skip});
    CHECK(some.size() == 2);
    CHECK(some.skipped() == 1);
  }
}

TEST_CASE("table: mutations give a table or a typed error, nothing else") {
  TempDir dir;
  const std::string csv = "a,b,\"c d\"\n1,2.5,\"x\"\"y\"\r\n3,-4e2,z\n";
  const std::string json = "{\"a\": 1, \"b\": [2.5, \"x\"]}\n{\"a\": true, \"b\": null}\n";
  uint32_t state = 1;
  const auto draw = [&state](size_t below) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
  };
  for (int i = 0; i < 400; ++i) {
    std::string text = i % 2 == 0 ? csv : json;
    for (size_t edits = draw(4) + 1; edits > 0; --edits) {
      const size_t at = draw(text.size());
      if (draw(3) == 0) {
        text.erase(at, draw(5));
      } else {
        text[at] = "\",\n\r{}[]0e\xff\0"[draw(13)];
      }
      if (text.empty()) text = ",";
    }
    const std::string path = write_bytes(dir.path("m"), text);
    for (const BadRows policy : {BadRows::raise, BadRows::skip}) {
      try {
        const TableOptions options{.bad_rows = policy};
        const Table table = i % 2 == 0 ? read_csv(path, options) : read_json_lines(path, options);
        for (const std::string& name : table.names()) {
          if (table.type(name) == ColumnType::text) {
            CHECK(static_cast<int64_t>(table.texts(name).size()) ==
                  (table.size() > 0 ? table.size() : 0));
          } else {
            CHECK(table.numbers(name).numel() == table.size());
          }
        }
      } catch (const ValueError&) {
      }
    }
  }
}
