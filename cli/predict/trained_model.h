// TrainedModel: a model of `kiln train` from its file, with what it needs to read new data.
#pragma once

#include <string>
#include <vector>

#include "cli/train/zoo.h"
#include "kiln/core/json.h"

namespace kiln::cli {

struct TrainedModel {
  std::string path;
  ModelShape shape;
  ZooModel model;
  Json facts;  // what training found in its data: classes, means, words
  Json data;   // the object "data" of the configuration
  std::vector<std::string> classes;

  // What the model gives for a batch as the data has it (images u8, features f32, ids i64): logits,
  // or of numbers those of the target, f32 [N].
  Tensor operator()(const Tensor& input) const;
  // A field of "data"; empty, or `preset`, where it is not there.
  std::string text(const char* field) const;
  bool flag(const char* field, bool preset) const;
};

// The model of a run's folder, or of a file that `kiln train` wrote. Throws IoError for a file that
// is none, and ValueError, which names it, for one that says too little of itself.
TrainedModel load_trained(const std::string& path, Device device = {});

}  // namespace kiln::cli
