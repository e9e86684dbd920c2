#include "cli/train/task_data.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>

#include "kiln/core/error.h"
#include "kiln/data/sampler.h"

namespace kiln::cli {

std::vector<std::string> data_kinds() {
  return {"image_folder", "mnist", "cifar10",    "cifar100", "digits",          "segmentation",
          "audio_folder", "csv",   "json_lines", "text_csv", "text_json_lines", "text_corpus"};
}

TaskData open_data(Fields fields, const std::string& folder, uint64_t seed, Json& read) {
  const std::string kind = fields.word("kind", {}, data_kinds());
  TaskData data;
  if (kind == "segmentation") {
    data = open_segmentation(fields, folder, seed);
  } else if (kind == "audio_folder") {
    data = open_sounds(fields, folder, seed);
  } else if (kind == "csv" || kind == "json_lines") {
    data = open_table(kind, fields, folder, seed);
  } else if (kind == "text_csv" || kind == "text_json_lines") {
    data = open_texts(kind, fields, folder, seed);
  } else if (kind == "text_corpus") {
    data = open_corpus(fields, folder);
  } else {
    data = open_images(kind, fields, folder, seed);
  }
  data.kind = kind;
  read = fields.finish();
  if ((*data.training)->size() == 0) fields.fail("kind", "there are no samples to train on");
  return data;
}

double read_valid_share(Fields& fields) { return fields.real("valid_share", 0.1, 0, 0.9); }

HeldOut hold_out(int64_t count, const std::vector<int64_t>& labels, double share, uint64_t seed) {
  // In a random order the first ones of each label are held out.
  const std::vector<int64_t> order = data::RandomSampler(count, seed).order(0);
  std::map<int64_t, std::vector<int64_t>> by_label;
  for (const int64_t i : order) {
    by_label[labels.empty() ? 0 : labels[static_cast<size_t>(i)]].push_back(i);
  }
  HeldOut out;
  for (const auto& [label, members] : by_label) {
    const auto most = static_cast<int64_t>(members.size()) - 1;  // one is left to learn from
    const auto held = std::min(
        static_cast<int64_t>(std::llround(share * static_cast<double>(members.size()))), most);
    out.validation.insert(out.validation.end(), members.begin(), members.begin() + held);
    out.training.insert(out.training.end(), members.begin() + held, members.end());
  }
  std::sort(out.training.begin(), out.training.end());
  std::sort(out.validation.begin(), out.validation.end());
  return out;
}

void split_training(TaskData& data, const std::vector<int64_t>& labels, double share,
                    uint64_t seed) {
  if (data.validation || share == 0) return;
  const HeldOut parts = hold_out((*data.training)->size(), labels, share, seed);
  const data::DatasetHandle all = *data.training;
  data.training = data::Subset(all, parts.training);
  if (!parts.validation.empty()) data.validation = data::Subset(all, parts.validation);
}

}  // namespace kiln::cli
