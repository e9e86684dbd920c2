#include "kiln/train/training_state.h"

#include <cmath>

#include "kiln/core/error.h"
#include "kiln/core/json.h"
#include "kiln/core/utf8.h"

namespace kiln::train {

namespace {

// JSON has no NaN: it is null there.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json to_json(const RunningMean& mean) {
  return Json(Json::Array{number(mean.sum()), number(mean.weight())});
}

constexpr std::pair<const char*, double EpochRecord::*> kRecordFields[] = {
    {"train_loss", &EpochRecord::train_loss}, {"train_accuracy", &EpochRecord::train_accuracy},
    {"valid_loss", &EpochRecord::valid_loss}, {"valid_accuracy", &EpochRecord::valid_accuracy},
    {"seconds", &EpochRecord::seconds},       {"learning_rate", &EpochRecord::learning_rate},
};

[[noreturn]] void malformed(const std::string& what, const Json& got, const char* expected) {
  throw_error<ValueError>("training_state_from_json: malformed: ", what, "; got ", got.describe(),
                          "; expected ", expected);
}

const Json& member(const Json& object, const char* name) {
  const Json* found = object.find(name);
  if (found == nullptr) malformed(concat("'", name, "' is missing"), object, "an object with it");
  return *found;
}

double number_of(const Json& json, const char* name) {
  if (json.is_null()) return kNotMeasured;
  if (const double* value = json.as<double>()) return *value;
  if (const int64_t* value = json.as<int64_t>()) return static_cast<double>(*value);
  malformed(concat("'", name, "' is no number"), json, "a number or null");
}

int64_t count_of(const Json& json, const char* name) {
  const int64_t* value = json.as<int64_t>();
  if (value == nullptr || *value < 0) {
    malformed(concat("'", name, "' is no count"), json, "a whole number from 0 on");
  }
  return *value;
}

const Json::Array& list_of(const Json& json, const char* name) {
  const auto* list = json.as<Json::Array>();
  if (list == nullptr) malformed(concat("'", name, "' is no list"), json, "a list");
  return *list;
}

RunningMean mean_of(const Json& json, const char* name) {
  const Json::Array& parts = list_of(json, name);
  if (parts.size() != 2) malformed(concat("'", name, "' is no mean"), json, "two numbers");
  return {number_of(parts[0], name), number_of(parts[1], name)};
}

}  // namespace

std::string to_json(const TrainingState& state) {
  Json json = Json::Object();
  json.add("epoch", state.epoch);
  json.add("batch", state.batch);
  json.add("loss", to_json(state.loss));
  json.add("accuracy", to_json(state.accuracy));
  json.add("seconds", number(state.seconds));
  Json history = Json::Array();
  for (const EpochRecord& record : state.history) {
    Json entry = Json::Object();
    entry.add("epoch", record.epoch);
    for (const auto& [name, field] : kRecordFields) entry.add(name, number(record.*field));
    history.add(std::move(entry));
  }
  json.add("history", std::move(history));
  Json losses = Json::Array();
  for (const double loss : state.step_loss) losses.add(number(loss));
  json.add("step_loss", std::move(losses));
  return encode_json(json, JsonFormat::text);
}

TrainingState training_state_from_json(const std::string& text) {
  Json json;
  try {
    json = decode_json(text);
  } catch (const ValueError& error) {
    throw_error<ValueError>("training_state_from_json: malformed; got ",
                            printable(error.what(), 200), "; expected a JSON object");
  }
  TrainingState state;
  state.epoch = count_of(member(json, "epoch"), "epoch");
  state.batch = count_of(member(json, "batch"), "batch");
  state.loss = mean_of(member(json, "loss"), "loss");
  state.accuracy = mean_of(member(json, "accuracy"), "accuracy");
  state.seconds = number_of(member(json, "seconds"), "seconds");
  for (const Json& entry : list_of(member(json, "history"), "history")) {
    EpochRecord record;
    record.epoch = count_of(member(entry, "epoch"), "epoch");
    for (const auto& [name, field] : kRecordFields) {
      record.*field = number_of(member(entry, name), name);
    }
    state.history.push_back(record);
  }
  for (const Json& loss : list_of(member(json, "step_loss"), "step_loss")) {
    state.step_loss.push_back(number_of(loss, "step_loss"));
  }
  return state;
}

}  // namespace kiln::train
