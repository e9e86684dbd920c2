#include "kiln/train/evaluate.h"

#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/ops.h"

namespace kiln::train {

namespace {

class EvalMode {
 public:
  explicit EvalMode(nn::Module& model) : model_(model), before_(model.is_training()) {
    model_.eval();
  }
  ~EvalMode() { model_.train(before_); }
  EvalMode(const EvalMode&) = delete;
  EvalMode& operator=(const EvalMode&) = delete;

 private:
  nn::Module& model_;
  bool before_;
};

}  // namespace

Evaluation evaluate(nn::Module& model, const Forward& forward, data::DataLoader& loader,
                    int64_t classes, const EvaluateOptions& options) {
  const NoGradGuard no_grad;
  const EvalMode mode(model);
  Evaluation out{ConfusionMatrix(classes)};
  RunningMean loss;
  for (const data::Batch& batch : loader) {
    if (options.should_stop && options.should_stop()) {
      out.loss = loss.value();
      return out;
    }
    const Tensor& labels = batch.target();
    const Tensor logits = forward(batch.input());
    if (labels.numel() > 0) {
      loss.add(functional::cross_entropy(logits, labels).item(),
               static_cast<double>(labels.numel()));
      out.confusion.add(labels, logits.argmax(1));
    }
    if (options.on_batch) options.on_batch(batch, logits);
  }
  out.loss = loss.value();
  out.complete = true;
  return out;
}

}  // namespace kiln::train
