#include "cli/predict/trained_model.h"

#include <filesystem>

#include "cli/train/pixel_scale.h"
#include "cli/usage_error.h"
#include "kiln/core/error.h"
#include "kiln/io/model_file.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::cli {

namespace {

namespace fs = std::filesystem;

std::string file_of(const std::string& path) {
  if (!fs::is_directory(path)) return path;
  std::string file = (fs::path(path) / "model.safetensors").string();
  if (fs::exists(file)) return file;
  throw_error<IoError>("'", path, "' holds no model.safetensors; expected the folder of a run of ",
                       "`kiln train` that is finished");
}

// Metadata that is JSON.
Json part_of(const io::Metadata& metadata, const char* name, const std::string& path) {
  const auto found = metadata.find(name);
  if (found == metadata.end()) {
    throw_error<ValueError>("'", path, "' does not say what it was trained for; expected a model ",
                            "that `kiln train` wrote");
  }
  try {
    return decode_json(found->second);
  } catch (const ValueError& error) {
    throw_error<ValueError>("'", path, "': its ", name, " is malformed: ", error.what());
  }
}

Json member(const Json& json, const char* name) {
  const Json* found = json.find(name);
  return found == nullptr ? Json() : *found;
}

double number_in(const Json& json, const char* name) {
  const Json found = member(json, name);
  if (const double* real = found.as<double>()) return *real;
  if (const int64_t* whole = found.as<int64_t>()) return static_cast<double>(*whole);
  throw_error<ValueError>("the model's ", name, " is missing");
}

Tensor numbers_in(const Json& json, const char* name, int64_t count) {
  const Json found = member(json, name);
  std::vector<double> out;
  if (const auto* list = found.as<Json::Array>()) {
    for (const Json& item : *list) {
      const double* real = item.as<double>();
      const int64_t* whole = item.as<int64_t>();
      out.push_back(real != nullptr ? *real : whole != nullptr ? static_cast<double>(*whole) : 0.0);
    }
  }
  if (static_cast<int64_t>(out.size()) != count) {
    throw_error<ValueError>("the features' ", name, " is malformed; expected ", count, " numbers");
  }
  return tensor(out, {f32});
}

// What happens to a batch before the model, and to its output: on the CPU, with the model itself on
// the device.
void wrap(TrainedModel& out, Device device) {
  auto forward = out.model.forward;
  if (!(device == Device())) {
    forward = [inner = forward, device](const Tensor& x) {
      return inner(x.to(device)).to(Device());
    };
    out.model.forward = forward;
  }
  switch (out.shape.task) {
    case Task::image_classes:
    case Task::segmentation: {
      const PixelScale scale = PixelScale::from_facts(out.facts, out.shape.channels);
      out.model.forward = [forward, scale](const Tensor& x) { return forward(scale(x)); };
      break;
    }
    case Task::table_classes:
    case Task::table_numbers: {
      const Tensor mean = numbers_in(out.facts, "mean", out.shape.features);
      const Tensor std = numbers_in(out.facts, "std", out.shape.features);
      const bool numbers = out.shape.task == Task::table_numbers;
      const double middle = numbers ? number_in(out.facts, "target_mean") : 0;
      const double spread = numbers ? number_in(out.facts, "target_std") : 1;
      out.model.forward = [forward, mean, std, numbers, middle, spread](const Tensor& x) {
        const Tensor y = forward((x - mean) / std);
        return numbers ? y.squeeze(1).to(f32) * spread + middle : y;
      };
      break;
    }
    case Task::image_codes:
      throw UsageError(concat("'", out.path, "' codes images; expected a model that answers with ",
                              "classes, numbers, masks or tokens"));
    default:
      break;
  }
}

}  // namespace

Tensor TrainedModel::operator()(const Tensor& input) const {
  const NoGradGuard no_grad;
  return model.forward(input);
}

std::string TrainedModel::text(const char* field) const {
  const Json found = member(data, field);
  const auto* value = found.as<std::string>();
  return value == nullptr ? "" : *value;
}

bool TrainedModel::flag(const char* field, bool preset) const {
  const Json found = member(data, field);
  const bool* value = found.as<bool>();
  return value == nullptr ? preset : *value;
}

TrainedModel load_trained(const std::string& path, Device device) {
  TrainedModel out;
  out.path = file_of(path);
  const auto reader = io::open_model_file(out.path);
  const io::Metadata metadata = reader->metadata();
  const Json config = part_of(metadata, "config", out.path);
  out.facts = part_of(metadata, "facts", out.path);
  out.data = member(config, "data");
  try {
    out.shape = shape_from(member(out.facts, "shape"));
    Json read;
    out.model = build_model(Fields(out.path, member(config, "model"), "model"), out.shape, read);
    const Json classes = member(out.facts, "classes");
    if (const auto* list = classes.as<Json::Array>()) {
      for (const Json& name : *list) {
        const auto* text = name.as<std::string>();
        out.classes.push_back(text == nullptr ? concat(out.classes.size()) : *text);
      }
    }
    wrap(out, device);
  } catch (const ValueError& error) {
    throw_error<ValueError>("'", out.path, "': ", error.what());
  }
  io::load_model(*out.model.module, out.path);
  out.model.module->to(device);
  out.model.module->eval();
  return out;
}

}  // namespace kiln::cli
