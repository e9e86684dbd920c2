#include <algorithm>

#include "kiln/core/error.h"
#include "kiln/core/json.h"
#include "kiln/core/utf8.h"
#include "kiln/data/table_builder.h"
#include "kiln/io/input_file.h"

namespace kiln::data {

namespace {

Cell cell_of(const Json& json, const std::string& name) {
  if (json.is_null()) return {};
  if (const auto* truth = json.as<bool>()) return *truth;
  if (const auto* whole = json.as<int64_t>()) return *whole;
  if (const auto* real = json.as<double>()) return *real;
  if (const auto* text = json.as<std::string>()) return *text;
  throw BadRow{concat("expected a bool, a number or a text; got ", json.describe()), name};
}

Json object_of(std::string_view line) {
  if (!is_utf8(line)) throw BadRow{"the text is no UTF-8"};
  try {
    Json out = decode_json(line);
    if (out.as<Json::Object>() == nullptr) {
      throw BadRow{concat("expected an object; got ", out.describe())};
    }
    return out;
  } catch (const Error& error) {
    throw BadRow{concat("it is not JSON: ", error.what())};
  }
}

}  // namespace

Table read_json_lines(const std::string& path, const TableOptions& options) {
  const char* const op = "read_json_lines";
  const io::InputFile file(op, path);
  const std::string text = file.read_whole(options.max_bytes);
  TableBuilder build(op, path, options, file.budget());
  int64_t row = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    ++row;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    try {
      const Json json = object_of(line);
      if (!build.has_names()) {
        std::vector<std::string> names;
        for (const auto& [name, value] : *json.as<Json::Object>()) names.push_back(name);
        build.begin(std::move(names), row);
      }
      std::vector<Cell> cells;
      for (const std::string& name : build.names()) {
        const Json* value = json.find(name);
        if (value == nullptr) throw BadRow{"it is missing", name};
        cells.push_back(cell_of(*value, name));
      }
      build.add(row, cells);
    } catch (const BadRow& bad) {
      build.reject(row, bad);
    }
  }
  return build.finish();
}

}  // namespace kiln::data
