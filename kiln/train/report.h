// The report of a training run: one HTML file with everything in it, to keep beside the model.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "kiln/core/tensor_data.h"

namespace kiln::train {

// Stands for a number that was not measured; the report leaves it out.
inline constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

struct EpochRecord {
  int64_t epoch = 0;  // counted from 1
  double train_loss = kNotMeasured;
  double train_accuracy = kNotMeasured;  // 0 to 1
  double valid_loss = kNotMeasured;
  double valid_accuracy = kNotMeasured;  // 0 to 1
  double seconds = kNotMeasured;
  double learning_rate = kNotMeasured;
};

// A sample that the model got wrong.
struct Mistake {
  TensorData image;  // u8 [H, W], or [H, W, 3] in colours
  int64_t label = 0;
  int64_t predicted = 0;
  double probability = kNotMeasured;  // that the model gave to `predicted`
};

// A metric over the epochs, on several sets.
struct MetricCurve {
  std::string name;  // "f1"
  struct Line {
    std::string name;                               // "train", "valid"
    std::vector<std::pair<double, double>> points;  // epoch, value
  };
  std::vector<Line> lines;  // the first four are drawn
};

// Every part may be empty; the report leaves it out then.
struct TrainingReport {
  using Facts = std::vector<std::pair<std::string, std::string>>;

  std::string title = "Training report";
  std::string subtitle;  // a line below the title: model, data, date
  Facts headline;        // further numbers that a reader wants first: name, value
  Facts config;          // hyperparameters: name, value
  Facts machine;         // processor, threads, versions: name, value
  std::vector<EpochRecord> epochs;
  std::vector<MetricCurve> metrics;      // beside loss and accuracy
  std::vector<double> step_loss;         // of every step, in order
  double final_accuracy = kNotMeasured;  // 0 to 1, on the test set
  std::vector<std::string> class_names;  // "0", "1", ... where empty
  std::vector<int64_t> confusion;        // row-major [true class, predicted class]
  std::vector<Mistake> mistakes;         // a few, to look at
};

// The report as one HTML page without scripts and without anything loaded from elsewhere: learning
// curves, loss by step, confusion matrix, mistakes, configuration; light or dark as the reader's
// system is. Throws ValueError when `confusion` is not square or does not fit `class_names`,
// ShapeError or DTypeError for a mistake that is no image.
std::string to_html(const TrainingReport& report);

// Writes to_html(report) to `path`, atomically. Throws IoError too.
void write_html_report(const std::string& path, const TrainingReport& report);

}  // namespace kiln::train
