#include "cli/train/optimizers.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kiln/core/error.h"
#include "kiln/optim/optim.h"
#include "kiln/tensor/creation.h"

namespace kiln::cli {

namespace {

using Maker = OptimizerPlan (*)(Fields& fields);

template <class O, class Options>
OptimizerPlan planned(Fields& fields) {
  Options options;
  fields.options(options);
  OptimizerPlan plan;
  plan.lr = options.lr;
  plan.make = [options](std::vector<Tensor> params) {
    return std::make_unique<O>(std::move(params), options);
  };
  return plan;
}

const std::vector<std::pair<std::string, Maker>>& makers() {
  using namespace optim;
  static const std::vector<std::pair<std::string, Maker>> all{
      {"AdamW", planned<AdamW, AdamWOptions>},
      {"Adam", planned<Adam, AdamOptions>},
      {"SGD", planned<SGD, SGDOptions>},
      {"Lion", planned<Lion, LionOptions>},
      {"RMSprop", planned<RMSprop, RMSpropOptions>},
      {"NAdam", planned<NAdam, NAdamOptions>},
      {"RAdam", planned<RAdam, RAdamOptions>},
      {"Adamax", planned<Adamax, AdamaxOptions>},
      {"Adan", planned<Adan, AdanOptions>},
      {"Adagrad", planned<Adagrad, AdagradOptions>},
      {"Adadelta", planned<Adadelta, AdadeltaOptions>},
      {"Adafactor", planned<Adafactor, AdafactorOptions>},
      {"LAMB", planned<LAMB, LAMBOptions>},
      {"AdamW8bit", planned<AdamW8bit, AdamW8bitOptions>},
  };
  return all;
}

}  // namespace

std::vector<std::string> optimizer_names() {
  std::vector<std::string> out;
  for (const auto& [name, make] : makers()) out.push_back(name);
  return out;
}

OptimizerPlan read_optimizer(Fields fields, Json& read) {
  const std::string name = fields.word("name", "AdamW", optimizer_names());
  OptimizerPlan plan;
  for (const auto& [known, make] : makers()) {
    if (known == name) plan = make(fields);
  }
  read = fields.finish();
  plan.name = name;
  if (!(plan.lr > 0)) fields.fail("lr", concat("expected a number above 0; got ", plan.lr));
  // Options that make no sense are errors before there is a model.
  try {
    plan.make({zeros({1}).requires_grad_()});
  } catch (const ValueError& e) {
    fields.fail("", e.what());
  }
  return plan;
}

std::vector<std::string> schedule_names() {
  return {"constant", "cosine", "linear", "step", "exponential"};
}

double SchedulePlan::at(int64_t step, int64_t total, int64_t per_epoch) const {
  const auto rise = static_cast<int64_t>(std::llround(warmup * static_cast<double>(total)));
  if (step < rise) return static_cast<double>(step + 1) / static_cast<double>(rise + 1);
  const int64_t epochs = step / std::max<int64_t>(per_epoch, 1);
  if (name == "step") return std::pow(factor, static_cast<double>(epochs / every));
  if (name == "exponential") return std::pow(factor, static_cast<double>(epochs));
  const double share = std::clamp(
      static_cast<double>(step - rise) / static_cast<double>(std::max<int64_t>(total - rise, 1)),
      0.0, 1.0);
  if (name == "cosine") return final + (1 - final) * (1 + std::cos(std::numbers::pi * share)) / 2;
  if (name == "linear") return final + (1 - final) * (1 - share);
  return 1.0;
}

std::string SchedulePlan::text() const {
  std::string out = name;
  if (name == "step") out += concat(", times ", factor, " every ", every, " epochs");
  if (name == "exponential") out += concat(", times ", factor, " each epoch");
  if (warmup > 0) out += concat(", rising over the first ", warmup * 100, " %");
  return out;
}

SchedulePlan read_schedule(Fields fields, Json& read) {
  SchedulePlan plan;
  plan.name = fields.word("name", "cosine", schedule_names());
  plan.warmup = fields.real("warmup", plan.name == "cosine" ? 0.05 : 0.0, 0, 0.9);
  if (plan.name == "cosine" || plan.name == "linear") {
    plan.final = fields.real("final", 0.0, 0, 1);
  }
  if (plan.name == "step") plan.every = fields.whole("every", 10, 1);
  if (plan.name == "step") plan.factor = fields.real("factor", 0.1, 0, 1, true);
  if (plan.name == "exponential") plan.factor = fields.real("factor", 0.95, 0, 1, true);
  read = fields.finish();
  return plan;
}

}  // namespace kiln::cli
