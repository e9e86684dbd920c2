// The step of a task: what a batch's loss is, and what the metrics see.
#pragma once

#include "cli/train/task_data.h"
#include "cli/train/zoo.h"
#include "kiln/train/learner.h"

namespace kiln::cli {

struct LossOptions {
  double label_smoothing = 0.0;      // of classes
  std::vector<double> weights = {};  // of classes; empty: all alike
  bool accuracy = false;             // whether the share of right classes is a number of the step
};

// Data and model are copied; the module is shared. Mixed batches have the loss of both labels, by
// their shares; metrics see that of the larger. Batches are moved to the device that the module is
// on.
train::Step make_step(const TaskData& data, const ZooModel& model, const LossOptions& loss,
                      const MixOptions& mix = {}, Device device = {});

}  // namespace kiln::cli
