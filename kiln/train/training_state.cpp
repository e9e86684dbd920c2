#include "kiln/train/training_state.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "kiln/core/error.h"

namespace kiln::train {

namespace {

using Json = nlohmann::json;

// JSON has no NaN: it is null there.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
double number(const Json& json) { return json.is_null() ? kNotMeasured : json.get<double>(); }

int64_t count(const Json& json) {
  const auto value = json.get<int64_t>();
  if (value < 0) throw_error<ValueError>("a count is negative; got ", value);
  return value;
}

Json to_json(const RunningMean& mean) { return {number(mean.sum()), number(mean.weight())}; }
RunningMean mean_of(const Json& json) { return {number(json.at(0)), number(json.at(1))}; }

constexpr std::pair<const char*, double EpochRecord::*> kRecordFields[] = {
    {"train_loss", &EpochRecord::train_loss}, {"train_accuracy", &EpochRecord::train_accuracy},
    {"valid_loss", &EpochRecord::valid_loss}, {"valid_accuracy", &EpochRecord::valid_accuracy},
    {"seconds", &EpochRecord::seconds},       {"learning_rate", &EpochRecord::learning_rate},
};

}  // namespace

std::string to_json(const TrainingState& state) {
  Json json{{"epoch", state.epoch},
            {"batch", state.batch},
            {"loss", to_json(state.loss)},
            {"accuracy", to_json(state.accuracy)},
            {"seconds", number(state.seconds)}};
  Json history = Json::array();
  for (const EpochRecord& record : state.history) {
    Json entry{{"epoch", record.epoch}};
    for (const auto& [name, field] : kRecordFields) entry[name] = number(record.*field);
    history.push_back(std::move(entry));
  }
  json["history"] = std::move(history);
  Json losses = Json::array();
  for (const double loss : state.step_loss) losses.push_back(number(loss));
  json["step_loss"] = std::move(losses);
  return json.dump();
}

TrainingState training_state_from_json(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    TrainingState state;
    state.epoch = count(json.at("epoch"));
    state.batch = count(json.at("batch"));
    state.loss = mean_of(json.at("loss"));
    state.accuracy = mean_of(json.at("accuracy"));
    state.seconds = number(json.at("seconds"));
    for (const Json& entry : json.at("history")) {
      EpochRecord record;
      record.epoch = count(entry.at("epoch"));
      for (const auto& [name, field] : kRecordFields) record.*field = number(entry.at(name));
      state.history.push_back(record);
    }
    for (const Json& loss : json.at("step_loss")) state.step_loss.push_back(number(loss));
    return state;
  } catch (const Json::exception& e) {
    throw_error<ValueError>("training_state_from_json: malformed; got ", e.what());
  }
}

}  // namespace kiln::train
