// Predictor: goes through inputs in batches and hands on what a trained model says of each.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "cli/predict/answers.h"
#include "cli/predict/trained_model.h"

namespace kiln::cli {

struct PredictOptions {
  int64_t top = 1;
  int64_t batch = 32;
  std::string masks;      // the folder that segmentations go to
  std::string tokenizer;  // of bpe, where its file is not where it was
  bool skip = false;      // bad rows of a table are left out
};

class Predictor {
 public:
  using Take = std::function<void(const Answer&)>;
  // An input that cannot be read: `what` names it.
  using Refuse = std::function<void(const std::string& what)>;

  // All must outlive it. Throws UsageError for options that the model cannot be asked with.
  Predictor(const TrainedModel& model, PredictOptions options, Take take, Refuse refuse);

  // Files, and folders of images.
  void predict(const std::vector<std::string>& inputs);
  // Texts, each by itself. Throws UsageError for a model of something else.
  void predict_texts(const std::vector<std::string>& texts);
  // Rows of tables that were left out.
  int64_t skipped() const { return skipped_; }

 private:
  void images(const std::vector<std::string>& inputs);
  void table(const std::string& path);
  void text_file(const std::string& path);
  void texts(const std::string& input, const std::vector<std::string>& lines, bool numbered);
  // One answer for each row of the model's output.
  void answer(const std::vector<Answer>& inputs, const Tensor& batch);
  void write_mask(Answer& answer, const Tensor& classes);

  const TrainedModel& model_;
  PredictOptions options_;
  Take take_;
  Refuse refuse_;
  int64_t skipped_ = 0;
  std::set<std::string> masks_;  // that were written
};

}  // namespace kiln::cli
