// TaskData: the data of a configuration, opened: samples, what they look like, what a model must
// take and give.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/train/augment.h"
#include "cli/train/fields.h"
#include "cli/train/zoo.h"
#include "kiln/data/data_loader.h"
#include "kiln/data/dataset.h"

namespace kiln::cli {

struct TaskData {
  std::string kind;
  std::string text;  // "5 classes of images, 3x32x32"
  ModelShape shape;
  std::optional<data::DatasetHandle> training, validation, test;
  // Of training samples, and of every batch.
  std::function<data::Example(data::Example, data::SampleRandom&)> transform = {};
  MixOptions mix = {};  // of training batches
  // A batch's input as the model takes it; as it is where empty.
  std::function<Tensor(const Tensor&)> prepare = {};
  std::vector<std::string> class_names = {};
  // Of a target of numbers: what 0 and 1 of the model mean.
  double target_mean = 0.0, target_std = 1.0;
  // What a prediction needs to know beside the configuration: classes, vocabulary, means.
  Json facts = Json::Object();
  // Samples that could not be read and were left out, so far.
  std::function<int64_t()> skipped = {};
};

std::vector<std::string> data_kinds();
// Reads {"kind", ..} and opens the files; relative ones are below `folder`. `seed` decides which
// samples are kept for validation. Throws UsageError, IoError, ValueError.
TaskData open_data(Fields fields, const std::string& folder, uint64_t seed, Json& read);

// What the kinds have in common.
struct HeldOut {
  std::vector<int64_t> training, validation;
};
// Which of `count` samples are kept for validation: the same share of each label, where there are
// labels. A function of the seed.
HeldOut hold_out(int64_t count, const std::vector<int64_t>& labels, double share, uint64_t seed);
// The field "valid_share".
double read_valid_share(Fields& fields);
// Splits data.training where there is no validation set.
void split_training(TaskData& data, const std::vector<int64_t>& labels, double share,
                    uint64_t seed);

// The kinds, each in a file of its own.
TaskData open_images(const std::string& kind, Fields& fields, const std::string& folder,
                     uint64_t seed);
TaskData open_sounds(Fields& fields, const std::string& folder, uint64_t seed);
TaskData open_segmentation(Fields& fields, const std::string& folder, uint64_t seed);
TaskData open_table(const std::string& kind, Fields& fields, const std::string& folder,
                    uint64_t seed);
TaskData open_texts(const std::string& kind, Fields& fields, const std::string& folder,
                    uint64_t seed);
TaskData open_corpus(Fields& fields, const std::string& folder);

}  // namespace kiln::cli
