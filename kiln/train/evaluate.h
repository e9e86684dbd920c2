// Measuring a classifier on a dataset.
#pragma once

#include <cstdint>
#include <functional>

#include "kiln/data/data_loader.h"
#include "kiln/nn/module.h"
#include "kiln/train/metrics.h"

namespace kiln::train {

// A classifier's forward pass: a batch's input -> logits [N, C].
using Forward = std::function<Tensor(const Tensor& input)>;

struct EvaluateOptions {
  // Asked before each batch; when true, what was measured so far is returned.
  std::function<bool()> should_stop = {};
  // Sees every batch with its logits.
  std::function<void(const data::Batch& batch, const Tensor& logits)> on_batch = {};
};

struct Evaluation {
  ConfusionMatrix confusion;
  double loss = 0.0;      // mean cross-entropy of a sample; NaN without samples
  bool complete = false;  // false when it was stopped

  double accuracy() const { return confusion.accuracy(); }
};

// Runs the model in eval mode and without recording over one epoch of the loader, whose batches are
// an input and class numbers [N], and sets the model's mode back.
Evaluation evaluate(nn::Module& model, const Forward& forward, data::DataLoader& loader,
                    int64_t classes, const EvaluateOptions& options = {});

}  // namespace kiln::train
