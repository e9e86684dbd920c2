#include "cli/train/table_files.h"

#include <algorithm>
#include <map>
#include <set>

#include "kiln/core/error.h"
#include "kiln/core/utf8.h"
#include "kiln/tensor/creation.h"

namespace kiln::cli {

namespace {

// A column's values as texts.
std::vector<std::string> texts_of(const data::Table& table, const std::string& column) {
  if (table.type(column) == data::ColumnType::text) return table.texts(column);
  std::vector<std::string> out;
  if (table.type(column) == data::ColumnType::real) {
    throw_error<ValueError>("the column '", column,
                            "' holds numbers with a fraction; expected texts or whole numbers "
                            "for classes");
  }
  const bool flags = table.type(column) == data::ColumnType::boolean;
  for (const int64_t value : table.numbers(column).to(i64).to_vector<int64_t>()) {
    out.push_back(flags ? value != 0 ? "true" : "false" : concat(value));
  }
  return out;
}

}  // namespace

int64_t TableFiles::skipped() const {
  return training.skipped() + (validation ? validation->skipped() : 0) +
         (test ? test->skipped() : 0);
}

TableFiles read_tables(bool csv, Fields& fields, const std::string& folder) {
  const std::string train = fields.path("train", folder);
  const std::string valid = fields.path("valid", folder, false);
  const std::string test = fields.path("test", folder, false);
  data::TableOptions options;
  if (fields.word("bad_rows", "raise", {"raise", "skip"}) == "skip") {
    options.bad_rows = data::BadRows::skip;
  }
  if (csv) {
    const std::string delimiter = fields.text("delimiter", ",");
    if (delimiter.size() != 1 || delimiter == "\"" || delimiter == "\n") {
      fields.fail("delimiter", "expected one character, such as ; or \\t");
    }
    options.delimiter = delimiter[0];
    options.header = fields.flag("header", true);
  }
  const auto read = [&](const std::string& path) {
    return csv ? data::read_csv(path, options) : data::read_json_lines(path, options);
  };
  TableFiles out{read(train), {}, {}};
  if (out.training.size() == 0) fields.fail("train", concat("'", train, "' holds no rows"));
  // The others hold what the first does: a whole number may be one of reals.
  for (const std::string& name : out.training.names()) {
    options.types[name] = out.training.type(name);
  }
  if (!valid.empty()) out.validation = read(valid);
  if (!test.empty()) out.test = read(test);
  return out;
}

std::vector<std::string> classes_of(const data::Table& table, const std::string& column) {
  const std::vector<std::string> texts = texts_of(table, column);
  const std::set<std::string> different(texts.begin(), texts.end());
  std::vector<std::string> out(different.begin(), different.end());
  if (table.type(column) == data::ColumnType::integer) {
    std::sort(out.begin(), out.end(), [](const std::string& a, const std::string& b) {
      return std::stoll(a) < std::stoll(b);
    });
  }
  return out;
}

Tensor labels_of(const data::Table& table, const std::string& column,
                 const std::vector<std::string>& classes) {
  std::map<std::string, int64_t> places;
  for (size_t i = 0; i < classes.size(); ++i) places[classes[i]] = static_cast<int64_t>(i);
  std::vector<int64_t> out;
  for (const std::string& text : texts_of(table, column)) {
    const auto found = places.find(text);
    if (found == places.end()) {
      throw_error<ValueError>("the column '", column, "' has the class '", printable(text, 60),
                              "', which the training rows do not have");
    }
    out.push_back(found->second);
  }
  return tensor(out, {i64});
}

}  // namespace kiln::cli
