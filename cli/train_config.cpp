#include "cli/train_config.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "kiln/core/error.h"

namespace kiln::cli {

std::string to_json(const TrainConfig& config) {
  return nlohmann::json{{"data", config.data},
                        {"samples", config.samples},
                        {"epochs", config.epochs},
                        {"batch_size", config.batch_size},
                        {"learning_rate", config.learning_rate},
                        {"seed", config.seed}}
      .dump();
}

TrainConfig train_config_from_json(const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    TrainConfig config;
    json.at("data").get_to(config.data);
    json.at("samples").get_to(config.samples);
    json.at("epochs").get_to(config.epochs);
    json.at("batch_size").get_to(config.batch_size);
    json.at("learning_rate").get_to(config.learning_rate);
    json.at("seed").get_to(config.seed);
    if (config.samples < 0 || config.epochs < 1 || config.batch_size < 1 ||
        !(config.learning_rate > 0) || !std::isfinite(config.learning_rate)) {
      throw ValueError("train_config_from_json: a setting is out of range");
    }
    return config;
  } catch (const nlohmann::json::exception& e) {
    throw_error<ValueError>("train_config_from_json: malformed; got ", e.what());
  }
}

}  // namespace kiln::cli
