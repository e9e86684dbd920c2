#include "cli/train/table_features.h"

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::cli {

int64_t width_of(const std::vector<TableFeature>& features) {
  int64_t out = 0;
  for (const TableFeature& f : features) {
    out += f.words.empty() ? 1 : static_cast<int64_t>(f.words.size());
  }
  return out;
}

Tensor features_of(const data::Table& table, const std::vector<TableFeature>& features) {
  std::vector<Tensor> columns;
  for (const TableFeature& f : features) {
    if (f.words.empty()) {
      columns.push_back(table.numbers(f.name).to(f32).unsqueeze(1));
      continue;
    }
    const std::vector<std::string>& texts = table.texts(f.name);
    for (const std::string& word : f.words) {
      std::vector<float> flags;
      for (const std::string& text : texts) flags.push_back(text == word ? 1.0F : 0.0F);
      columns.push_back(tensor(flags, {f32}).unsqueeze(1));
    }
  }
  return cat(columns, 1);
}

Json json_of(const std::vector<TableFeature>& features) {
  Json out = Json::Array();
  for (const TableFeature& f : features) {
    Json column = Json::Object();
    column.add("name", f.name);
    if (!f.words.empty()) {
      Json words = Json::Array();
      for (const std::string& word : f.words) words.add(Json(word));
      column.add("words", std::move(words));
    }
    out.add(std::move(column));
  }
  return out;
}

std::vector<TableFeature> table_features(const Json& json) {
  const auto wrong = [] { throw ValueError("the features of the rows are malformed"); };
  const auto* columns = json.as<Json::Array>();
  if (columns == nullptr || columns->empty()) wrong();
  std::vector<TableFeature> out;
  for (const Json& column : *columns) {
    const Json* name = column.find("name");
    if (name == nullptr || name->as<std::string>() == nullptr) wrong();
    TableFeature feature{*name->as<std::string>(), {}};
    if (const Json* words = column.find("words")) {
      if (words->as<Json::Array>() == nullptr) wrong();
      for (const Json& word : *words->as<Json::Array>()) {
        if (word.as<std::string>() == nullptr) wrong();
        feature.words.push_back(*word.as<std::string>());
      }
    }
    out.push_back(std::move(feature));
  }
  return out;
}

}  // namespace kiln::cli
