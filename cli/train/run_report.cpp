#include "cli/train/run_report.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "cli/machine.h"
#include "cli/train/metric_list.h"
#include "kiln/core/error.h"
#include "kiln/core/parallel.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/ops.h"
#include "kiln/train/chart.h"
#include "kiln/train/text.h"

namespace kiln::cli {

namespace {

constexpr int64_t kMostClasses = 40;  // of a matrix that can be read
constexpr size_t kMostMistakes = 40;

double find_in(const train::NamedNumbers& values, const std::string& name) {
  for (const auto& [known, value] : values) {
    if (known == name) return value;
  }
  return train::kNotMeasured;
}

bool has_classes(Task task) {
  return task == Task::image_classes || task == Task::table_classes || task == Task::text_classes;
}

// A fixed number of digits that suits the size.
std::string number_text(double value) {
  if (!std::isfinite(value)) return "-";
  const double size = std::abs(value);
  if (size >= 1e5 || (size < 1e-3 && size > 0)) return train::format_number("%.3e", value);
  return train::format_number(size >= 100 ? "%.1f" : size >= 10 ? "%.3f" : "%.4f", value);
}

std::string short_json(const Json& json) {
  if (const auto* text = json.as<std::string>()) return *text;
  const std::string all = encode_json(json, JsonFormat::text);
  return all.size() > 200 ? all.substr(0, 197) + "..." : all;
}

// "optimizer.lr" and the like, as the report lists them.
void add_facts(const Json& json, const std::string& path, train::TrainingReport::Facts& facts) {
  const auto* members = json.as<Json::Object>();
  if (members == nullptr) {
    facts.emplace_back(path, short_json(json));
    return;
  }
  for (const auto& [name, value] : *members) {
    add_facts(value, path.empty() ? name : concat(path, ".", name), facts);
  }
}

}  // namespace

std::string value_text(const std::string& metric, double value) {
  return is_share(metric) ? train::percent(value) : number_text(value);
}

std::string split_text(const train::NamedNumbers& values, const std::string& split) {
  std::string out;
  for (const auto& [name, value] : values) {
    if (!name.starts_with(split + "/")) continue;
    const std::string metric = name.substr(split.size() + 1);
    out += concat(out.empty() ? "" : "  ", metric, " ", value_text(metric, value));
  }
  return out;
}

std::pair<int64_t, double> best_epoch(const std::vector<train::NamedNumbers>& history,
                                      const std::string& metric, bool larger_is_better) {
  int64_t best = 0;
  double value = train::kNotMeasured;
  for (size_t i = 0; i < history.size(); ++i) {
    const double here = find_in(history[i], metric);
    if (!std::isfinite(here)) continue;
    if (best == 0 || (larger_is_better ? here > value : here < value)) {
      best = static_cast<int64_t>(i) + 1;
      value = here;
    }
  }
  return {best, value};
}

train::TrainingReport make_report(const TrainPlan& plan, const RunState& state,
                                  const std::vector<train::NamedNumbers>& history,
                                  const std::vector<double>& step_loss) {
  train::TrainingReport report;
  report.title = concat(plan.model.name, " on ", plan.data.kind);
  report.subtitle = concat(plan.data.text, "; ", train::grouped((*plan.data.training)->size()),
                           " training samples; ", plan.out, ", ", date_and_time());
  for (const auto& [name, value] : state.test) {
    const std::string metric = name.substr(name.find('/') + 1);
    if (name != "test/accuracy") {
      report.headline.emplace_back("test " + metric, value_text(metric, value));
    }
  }
  report.final_accuracy = find_in(state.test, "test/accuracy");
  const auto [epoch, value] = best_epoch(history, plan.best_metric, plan.keep.larger_is_better);
  if (epoch > 0 && plan.best_metric != "valid/accuracy") {
    report.headline.emplace_back(concat("best ", plan.best_metric, ", epoch ", epoch),
                                 value_text(plan.best_metric, value));
  }
  // Without a test set these are what there is to know.
  for (const std::string& metric : plan.metrics) {
    const std::string name = "valid/" + metric;
    const double there =
        epoch > 0 ? find_in(history[static_cast<size_t>(epoch) - 1], name) : train::kNotMeasured;
    if (state.test.empty() && std::isfinite(there) && name != plan.best_metric &&
        metric != "accuracy") {
      report.headline.emplace_back(concat(name, ", epoch ", epoch), value_text(metric, there));
    }
  }
  for (size_t i = 0; i < history.size(); ++i) {
    train::EpochRecord record;
    record.epoch = static_cast<int64_t>(i) + 1;
    record.train_loss = find_in(history[i], "train/loss");
    record.valid_loss = find_in(history[i], "valid/loss");
    record.train_accuracy = find_in(history[i], "train/accuracy");
    record.valid_accuracy = find_in(history[i], "valid/accuracy");
    record.learning_rate = find_in(history[i], "lr");
    if (i < state.seconds.size()) record.seconds = state.seconds[i];
    report.epochs.push_back(record);
  }
  for (const std::string& metric : plan.metrics) {
    if (metric == "accuracy") continue;
    train::MetricCurve curve{metric, {}};
    for (const char* split : {"train", "valid"}) {
      train::MetricCurve::Line line{split, {}};
      for (size_t i = 0; i < history.size(); ++i) {
        line.points.emplace_back(static_cast<double>(i) + 1,
                                 find_in(history[i], concat(split, "/", metric)));
      }
      curve.lines.push_back(std::move(line));
    }
    report.metrics.push_back(std::move(curve));
  }
  report.step_loss = step_loss;
  report.config.emplace_back("parameters", train::grouped(state.parameters));
  add_facts(plan.config, "", report.config);
  report.machine = machine_facts();
  return report;
}

void add_mistakes(train::TrainingReport& report, const TrainPlan& plan, data::DataLoader& loader,
                  const train::Step& step, const std::function<bool()>& should_stop) {
  const ModelShape& shape = plan.data.shape;
  if (!has_classes(shape.task) || shape.classes > kMostClasses) return;
  const NoGradGuard no_grad;
  std::vector<int64_t> confusion(static_cast<size_t>(shape.classes * shape.classes));
  std::vector<train::Mistake> mistakes;
  for (const data::Batch& batch : loader) {
    if (should_stop()) return;
    const Tensor logits = step(batch).outputs;
    const auto [best, index] = logits.to(f32).softmax(1).max(1);
    const auto labels = batch.target().to_vector<int64_t>();
    const auto predicted = index.to_vector<int64_t>();
    for (size_t i = 0; i < labels.size(); ++i) {
      ++confusion[static_cast<size_t>(labels[i] * shape.classes + predicted[i])];
      if (labels[i] == predicted[i] || shape.task != Task::image_classes) continue;
      const auto at = static_cast<int64_t>(i);
      const Tensor image = batch.input()[at];  // [C, H, W]
      mistakes.push_back(
          {(image.size(0) == 3 ? image.permute({1, 2, 0}).contiguous() : image[0]).to_data(),
           labels[i], predicted[i], best[at].item()});
      if (mistakes.size() > 4 * kMostMistakes) {  // the surest ones are kept
        std::stable_sort(mistakes.begin(), mistakes.end(), [](const auto& a, const auto& b) {
          return a.probability > b.probability;
        });
        mistakes.resize(kMostMistakes);
      }
    }
  }
  std::stable_sort(mistakes.begin(), mistakes.end(),
                   [](const auto& a, const auto& b) { return a.probability > b.probability; });
  mistakes.resize(std::min(mistakes.size(), kMostMistakes));
  report.confusion = std::move(confusion);
  report.mistakes = std::move(mistakes);
  report.class_names = plan.data.class_names;
}

}  // namespace kiln::cli
