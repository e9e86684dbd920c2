// The models of the library, by the names that a configuration gives them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/train/fields.h"
#include "kiln/nn/module.h"

namespace kiln::cli {

// What a model is to do, which decides what it takes and gives.
enum class Task {
  image_classes,  // u8 images -> logits [N, classes]
  segmentation,   // u8 images -> logits [N, classes, H, W]
  image_codes,    // u8 images -> themselves, by way of a code
  table_classes,  // features [N, K] -> logits [N, classes]
  table_numbers,  // features [N, K] -> numbers [N]
  text_classes,   // token ids [N, T], 0 at padding -> logits [N, classes]
  language        // token ids [N, T] -> logits [N, T, vocabulary]
};
std::string to_string(Task task);

// What the data decides.
struct ModelShape {
  Task task = Task::image_classes;
  int64_t channels = 3, height = 0, width = 0;  // of images
  int64_t features = 0;                         // of rows
  int64_t classes = 0;                          // or values of a target
  int64_t vocabulary = 0;                       // tokens, padding with them
  int64_t length = 0;                           // most tokens of a sample
};

// What a file of weights says of them: {"task", "channels", ..}. Throws ValueError for what is no
// shape.
Json to_json(const ModelShape& shape);
ModelShape shape_from(const Json& json);

struct ZooModel {
  std::string name;
  std::shared_ptr<nn::Module> module;
  // The task's input, images as f32, to its output.
  std::function<Tensor(const Tensor&)> forward;
};

// Those that fit the task, and all.
std::vector<std::string> zoo_names(Task task);
std::vector<std::string> zoo_names();
// Reads {"name", ..} and builds the model; weights are drawn later. Throws UsageError for a model
// of another task and for options that make no model.
ZooModel build_model(Fields fields, const ModelShape& shape, Json& read);

}  // namespace kiln::cli
