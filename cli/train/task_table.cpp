// Data of rows: CSV and JSON Lines, for classes or numbers.
#include <algorithm>
#include <cmath>
#include <map>

#include "cli/train/table_features.h"
#include "cli/train/table_files.h"
#include "cli/train/task_data.h"
#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::cli {

namespace {

std::vector<TableFeature> choose_features(Fields& fields, const data::Table& table,
                                          const std::string& target) {
  std::vector<std::string> preset;
  for (const std::string& name : table.names()) {
    if (name != target) preset.push_back(name);
  }
  const std::vector<std::string> names = fields.words("features", preset, table.names());
  std::vector<TableFeature> out;
  for (const std::string& name : names) {
    if (name == target) fields.fail("features", concat("'", name, "' is the target"));
    TableFeature f{name, {}};
    if (table.type(name) == data::ColumnType::text) {
      f.words = classes_of(table, name);
      if (f.words.size() > 1000) {
        fields.fail("features",
                    concat("the column '", name, "' has ", f.words.size(),
                           " different texts; expected numbers, or 1000 words at most"));
      }
    }
    out.push_back(std::move(f));
  }
  if (out.empty()) fields.fail("features", "expected one or more columns; got none");
  return out;
}

// Mean 0 and deviation 1 over the training rows.
struct Spread {
  Tensor mean, std;  // f32 [K]
  Tensor operator()(const Tensor& x) const {
    return (x - mean.to(x.device())) / std.to(x.device());
  }
};

Spread spread_of(const Tensor& x) {
  const Tensor mean = x.to(f64).mean(0);
  const Tensor std = (x.to(f64) - mean).square().mean(0).sqrt();
  return {mean.to(f32), where(std.gt(1e-9), std, ones_like(std)).to(f32)};
}

Json json_of(const Tensor& x) {
  Json out = Json::Array();
  for (const double value : x.to(f64).to_vector<double>()) out.add(Json(value));
  return out;
}

Json json_of(const std::vector<std::string>& words) {
  Json out = Json::Array();
  for (const std::string& word : words) out.add(Json(word));
  return out;
}

}  // namespace

TaskData open_table(const std::string& kind, Fields& fields, const std::string& folder,
                    uint64_t seed) {
  const TableFiles files = read_tables(kind == "csv", fields, folder);
  const std::string target = fields.word("target", {}, files.training.names());
  const bool texts = files.training.type(target) == data::ColumnType::text;
  const bool reals = files.training.type(target) == data::ColumnType::real;
  const std::string task = fields.word("task",
                                       texts   ? "classification"
                                       : reals ? "regression"
                                               : std::optional<std::string>(),
                                       {"classification", "regression"});
  if (texts && task == "regression") {
    fields.fail("task", concat("the target '", target, "' holds texts: it can be classified"));
  }
  const std::vector<TableFeature> features = choose_features(fields, files.training, target);
  const double share = read_valid_share(fields);
  const bool classifies = task == "classification";
  TaskData out;
  if (classifies) out.class_names = classes_of(files.training, target);
  if (classifies && (out.class_names.size() < 2 || out.class_names.size() > 10000)) {
    fields.fail("target", concat("'", target, "' has ", out.class_names.size(),
                                 " classes; expected 2 to 10000"));
  }
  const auto open = [&](const data::Table& table) -> data::DatasetHandle {
    const Tensor y =
        classifies ? labels_of(table, target, out.class_names) : table.numbers(target).to(f32);
    return data::TensorDataset(features_of(table, features), y);
  };
  const Tensor labels = classifies ? labels_of(files.training, target, out.class_names) : Tensor();
  out.training = open(files.training);
  if (files.validation) out.validation = open(*files.validation);
  if (files.test) out.test = open(*files.test);
  split_training(out, classifies ? labels.to_vector<int64_t>() : std::vector<int64_t>(), share,
                 seed);
  out.shape = {.task = classifies ? Task::table_classes : Task::table_numbers,
               .features = width_of(features),
               .classes = classifies ? static_cast<int64_t>(out.class_names.size()) : 1};
  std::vector<int64_t> rows((*out.training)->size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(i);
  const data::Batch all = (*out.training)->get_batch(rows);
  const Spread spread = spread_of(all.input());
  out.prepare = [spread](const Tensor& x) { return spread(x); };
  if (!classifies) {
    const Spread numbers = spread_of(all.target().unsqueeze(1));
    out.target_mean = numbers.mean.item();
    out.target_std = numbers.std.item();
  }
  out.facts.add("features", json_of(features));
  out.facts.add("mean", json_of(spread.mean));
  out.facts.add("std", json_of(spread.std));
  if (classifies) {
    out.facts.add("classes", json_of(out.class_names));
  } else {
    out.facts.add("target_mean", out.target_mean);
    out.facts.add("target_std", out.target_std);
  }
  out.skipped = [count = files.skipped()] { return count; };
  out.text = concat("rows of ", features.size(), features.size() == 1 ? " column" : " columns",
                    " (", out.shape.features, " numbers), ",
                    classifies ? concat(out.class_names.size(), " classes of '", target, "'")
                               : concat("a number, '", target, "'"));
  return out;
}

}  // namespace kiln::cli
