#include "cli/train/plan.h"

#include <algorithm>
#include <filesystem>

#include "cli/train/metric_list.h"
#include "kiln/core/error.h"
#include "kiln/core/utf8.h"
#include "kiln/io/input_file.h"

namespace kiln::cli {

namespace {

constexpr uint64_t kMostBytes = uint64_t{16} << 20;

std::string stem_of(const std::string& file) {
  const std::string stem = std::filesystem::path(file).stem().string();
  return stem.empty() ? "run" : stem;
}

// Those of an epoch: "valid/loss", "train/accuracy".
std::vector<std::string> measured(const TrainPlan& plan) {
  std::vector<std::string> out;
  for (const char* split : {"valid", "train"}) {
    if (std::string(split) == "valid" && !plan.data.validation) continue;
    out.push_back(concat(split, "/loss"));
    for (const std::string& name : plan.metrics) out.push_back(concat(split, "/", name));
  }
  return out;
}

void read_checkpoints(TrainPlan& plan, Fields fields, Json& read) {
  const std::vector<std::string> legal = measured(plan);
  plan.keep.keep_last = fields.whole("keep_last", 1, 1, 10000);
  plan.keep.keep_best = fields.whole("keep_best", 1, 0, 10000);
  plan.every_steps = fields.whole("every_steps", 0);
  plan.best_metric = fields.word("best", legal.front(), legal);
  plan.keep.larger_is_better = is_larger_better(plan.best_metric);
  plan.use_best =
      fields.word("use", plan.keep.keep_best > 0 && plan.data.validation ? "best" : "last",
                  {"best", "last"}) == "best";
  if (plan.use_best && plan.keep.keep_best == 0) {
    fields.fail("use", "'best' needs keep_best of 1 or more");
  }
  read = fields.finish();
}

void read_early_stop(TrainPlan& plan, Fields fields, Json& read) {
  const std::vector<std::string> legal = measured(plan);
  train::EarlyStop stop;
  stop.metric = fields.word("metric", legal.front(), legal);
  stop.patience = fields.whole("patience", 3, 0);
  stop.larger_is_better = is_larger_better(stop.metric);
  plan.early_stop = stop;
  read = fields.finish();
}

LossOptions read_loss(const TrainPlan& plan, Fields fields, Json& read) {
  LossOptions out;
  const Task task = plan.data.shape.task;
  out.accuracy = counts_in_step(task) && std::find(plan.metrics.begin(), plan.metrics.end(),
                                                   "accuracy") != plan.metrics.end();
  if (counts_in_step(task)) {
    out.label_smoothing = fields.real("label_smoothing", 0.0, 0, 1);
    out.weights = fields.reals("class_weights", {});
    const auto classes = static_cast<size_t>(plan.data.shape.classes);
    if (!out.weights.empty() && out.weights.size() != classes) {
      fields.fail("class_weights", concat("expected ", classes, " numbers, one for each class; ",
                                          "got ", out.weights.size()));
    }
    if (!out.weights.empty() && *std::min_element(out.weights.begin(), out.weights.end()) < 0) {
      fields.fail("class_weights", "expected numbers of 0 or more");
    }
  }
  read = fields.finish();
  return out;
}

}  // namespace

int64_t TrainPlan::batches() const {
  return ((*data.training)->size() + batch_size - 1) / batch_size;
}
int64_t TrainPlan::steps_per_epoch() const { return (batches() + accumulate - 1) / accumulate; }

Json read_config_file(const std::string& path) {
  const io::InputFile file("train", path);
  const std::string text = file.read_whole(kMostBytes);
  try {
    return decode_json(text);
  } catch (const ValueError& e) {
    throw UsageError(concat(path, ": no JSON: ", printable(e.what(), 200)));
  }
}

void set_field(Json& config, const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw UsageError("--set takes FIELD=VALUE, as in optimizer.lr=0.01; got '" + assignment + "'");
  }
  const std::string name = assignment.substr(0, equals), text = assignment.substr(equals + 1);
  Json value;
  try {
    value = decode_json(text);
  } catch (const ValueError&) {
    value = text;
  }
  Json* at = &config;
  for (size_t begin = 0;;) {
    const size_t dot = name.find('.', begin);
    const std::string part = name.substr(begin, dot - begin);
    // "model": "resnet18" stands for an object.
    if (const auto* word = at->as<std::string>()) {
      Json named = Json::Object();
      named.add("name", *word);
      *at = std::move(named);
    }
    auto* members = at->as<Json::Object>();
    if (members == nullptr || part.empty()) {
      throw UsageError("--set: there is no field '" + name + "'");
    }
    auto found = std::find_if(members->begin(), members->end(),
                              [&](const auto& member) { return member.first == part; });
    if (found == members->end()) {
      members->emplace_back(part, Json::Object());
      found = members->end() - 1;
    }
    at = &found->second;
    if (dot == std::string::npos) break;
    begin = dot + 1;
  }
  *at = std::move(value);
}

TrainPlan read_plan(const std::string& file, const Json& config, const std::string& folder) {
  TrainPlan plan;
  Fields fields(file, config);
  plan.out = fields.text("out", concat("runs/", stem_of(file)));
  if (plan.out.empty()) fields.fail("out", "expected a folder; got none");
  plan.epochs = fields.whole("epochs", 10, 1, 1'000'000);
  plan.batch_size = fields.whole("batch_size", 32, 1, 1'000'000);
  plan.accumulate = fields.whole("accumulate", 1, 1, 1'000'000);
  plan.seed = static_cast<uint64_t>(fields.whole("seed", 1));
  plan.workers = static_cast<int>(fields.whole("workers", 1, 0, 256));
  plan.log_every = fields.whole("log_every", 10, 1);
  plan.clip_norm = fields.maybe_real("clip_norm", 0, 1e9, true);
  plan.ema = fields.maybe_real("ema", 0, 1);
  const std::string precision = fields.word("precision", "f32", {"f32", "bf16", "f16"});
  if (precision != "f32") plan.precision = parse_dtype(precision);
  const std::string device = fields.text("device", "cpu");
  try {
    plan.device = Device(device);
  } catch (const DeviceError& error) {
    fields.fail("device", error.what());
  }
  plan.weights = fields.path("weights", folder, false);
  Json part;
  plan.optimizer = read_optimizer(fields.object("optimizer"), part);
  fields.add("optimizer", part);
  plan.schedule = read_schedule(fields.object("schedule"), part);
  fields.add("schedule", part);
  const Fields data = fields.object("data"), model = fields.object("model");
  for (const char* later : {"metrics", "loss", "checkpoints", "early_stop"}) fields.expect(later);
  fields.check();  // before files are read
  if (!fields.has("data")) fields.fail("data", "is required, and missing");
  if (!fields.has("model")) fields.fail("model", "is required, and missing");

  plan.data = open_data(data, folder, plan.seed, part);
  fields.add("data", part);
  plan.model = build_model(model, plan.data.shape, part);
  fields.add("model", part);
  const Task task = plan.data.shape.task;
  plan.metrics = fields.words("metrics", usual_metrics(task), metric_names(task));
  plan.loss = read_loss(plan, fields.object("loss"), part);
  fields.add("loss", part);
  read_checkpoints(plan, fields.object("checkpoints"), part);
  fields.add("checkpoints", part);
  if (fields.has("early_stop")) {
    read_early_stop(plan, fields.object("early_stop"), part);
    fields.add("early_stop", part);
  }
  plan.config = fields.finish();
  return plan;
}

}  // namespace kiln::cli
