#include "cli/train_config.h"

#include <cmath>
#include <utility>

#include "kiln/core/error.h"
#include "kiln/core/json.h"
#include "kiln/core/utf8.h"

namespace kiln::cli {

namespace {

[[noreturn]] void malformed(const std::string& what, const std::string& got) {
  throw_error<ValueError>("train_config_from_json: ", what, "; got ", got,
                          "; expected the settings of a training");
}

// The setting of that name, of the type that `out` has.
template <class T>
void read(const Json& json, const char* name, T& out) {
  const Json* found = json.find(name);
  if (found == nullptr) malformed(concat("'", name, "' is missing"), json.describe());
  const int64_t* whole = found->as<int64_t>();
  bool good = false;
  if constexpr (std::is_same_v<T, std::string>) {
    const std::string* text = found->as<std::string>();
    good = text != nullptr;
    if (good) out = *text;
  } else if constexpr (std::is_floating_point_v<T>) {
    const double* real = found->as<double>();
    good = real != nullptr || whole != nullptr;
    if (good) out = static_cast<T>(real != nullptr ? *real : static_cast<double>(*whole));
  } else {
    good = whole != nullptr && std::in_range<T>(*whole);
    if (good) out = static_cast<T>(*whole);
  }
  if (!good) malformed(concat("'", name, "' has a wrong type or value"), found->describe());
}

}  // namespace

std::string to_json(const TrainConfig& config) {
  Json json;
  json.add("data", config.data);
  json.add("samples", config.samples);
  json.add("epochs", config.epochs);
  json.add("batch_size", config.batch_size);
  json.add("learning_rate", static_cast<double>(config.learning_rate));
  // Seeds have 64 bits without a sign, JSON's integers here one of them for it.
  json.add("seed", static_cast<int64_t>(config.seed));
  return encode_json(json, JsonFormat::text);
}

TrainConfig train_config_from_json(const std::string& text) {
  Json json;
  try {
    json = decode_json(text);
  } catch (const ValueError& error) {
    malformed("malformed", printable(error.what(), 200));
  }
  TrainConfig config;
  read(json, "data", config.data);
  read(json, "samples", config.samples);
  read(json, "epochs", config.epochs);
  read(json, "batch_size", config.batch_size);
  read(json, "learning_rate", config.learning_rate);
  int64_t seed = 0;
  read(json, "seed", seed);
  config.seed = static_cast<decltype(config.seed)>(seed);
  if (config.samples < 0 || config.epochs < 1 || config.batch_size < 1 ||
      !(config.learning_rate > 0) || !std::isfinite(config.learning_rate)) {
    malformed("a setting is out of range", "it");
  }
  return config;
}

}  // namespace kiln::cli
