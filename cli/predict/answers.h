// Answers: what a model says of inputs, as lines, CSV or JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/predict/trained_model.h"

namespace kiln::cli {

struct Answer {
  std::string input;  // a file, or a text that was given
  int64_t row = 0;    // of a file with several, from 1 on; 0: it is all of the input
  // The likeliest classes or tokens with their probabilities, the first one first; of a
  // segmentation the share of pixels of each class.
  std::vector<std::pair<std::string, double>> classes = {};
  std::optional<double> value = {};  // of a regression
  std::string mask = {};             // the file that a segmentation was written to
};

enum class AnswerForm { lines, csv, json };

// Prints answers as they come; JSON is one document, which end() closes.
class AnswerPrinter {
 public:
  // `top`: how many classes an answer has at most.
  AnswerPrinter(const TrainedModel& model, AnswerForm form, int64_t top);
  void print(const Answer& answer);
  void end();

 private:
  void print_line(const Answer& answer) const;
  void print_csv(const Answer& answer) const;
  void print_json(const Answer& answer);

  const TrainedModel& model_;
  AnswerForm form_;
  int64_t top_;
  bool first_ = true;
};

}  // namespace kiln::cli
