#include "cli/train/task_step.h"

#include "kiln/core/error.h"
#include "kiln/models/vae.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/nn/losses.h"
#include "kiln/tensor/ops.h"

namespace kiln::cli {

namespace {

using train::StepResult;
using Call = std::function<Tensor(const Tensor&)>;

Call prepared(const TaskData& data, const ZooModel& model) {
  if (!data.prepare) return model.forward;
  return [prepare = data.prepare, forward = model.forward](const Tensor& x) {
    return forward(prepare(x));
  };
}

StepResult counted(StepResult out, bool accuracy) {
  if (accuracy) {
    const NoGradGuard no_grad;
    const double right = out.outputs.detach().argmax(1).eq(out.targets).sum().item();
    out.numbers = {{"accuracy", right / static_cast<double>(out.targets.numel())}};
  }
  return out;
}

StepResult class_step(const Tensor& logits, const Tensor& target,
                      const functional::CrossEntropyLossOptions& options, bool accuracy) {
  return counted({functional::cross_entropy(logits, target, options), logits, target}, accuracy);
}

StepResult mixed_step(const Call& call, const data::Batch& batch, const MixOptions& mix,
                      const functional::CrossEntropyLossOptions& options, bool accuracy) {
  const MixedBatch mixed = mix_batch(mix, batch.input());
  const Tensor logits = call(mixed.images);
  const Tensor target = batch.target(), other = target.index_select(0, mixed.order);
  const Tensor loss = functional::cross_entropy(logits, target, options) * mixed.share +
                      functional::cross_entropy(logits, other, options) * (1 - mixed.share);
  return counted({loss, logits, mixed.share >= 0.5 ? target : other}, accuracy);
}

// Of tokens; padding (0) is no target.
StepResult token_step(const Tensor& logits, const Tensor& target) {
  functional::CrossEntropyLossOptions options;
  options.ignore_index = 0;
  const Tensor rows = logits.reshape({-1, logits.size(-1)});
  return {functional::cross_entropy(rows, target.reshape({-1}), options), logits, target};
}

// The model's numbers have mean 0 and deviation 1; metrics see those of the target.
StepResult number_step(const Tensor& out, const Tensor& target, double mean, double std) {
  const Tensor found = out.squeeze(1).to(f32);
  return {functional::mse_loss(found, (target - mean) / std), found * std + mean, target};
}

StepResult code_step(const Tensor& out, const Tensor& image, int64_t pixels) {
  const Tensor x = image.flatten(1);
  const int64_t code = (out.size(1) - pixels) / 2;
  const models::VAEOutput parts{out.narrow(1, 0, pixels), out.narrow(1, pixels, code),
                                out.narrow(1, pixels + code, code)};
  const auto count = static_cast<double>(x.size(0));
  return {models::vae_loss(parts, x) / count, parts.reconstruction, x};
}

}  // namespace

namespace {

// On the device that the batch is on.
train::Step step_of(const TaskData& data, const ZooModel& model, const LossOptions& loss,
                    const MixOptions& mix, Device device) {
  const Call call = prepared(data, model);
  switch (data.shape.task) {
    case Task::language:
      return [call](const data::Batch& b) { return token_step(call(b.input()), b.target()); };
    case Task::table_numbers:
      return [call, mean = data.target_mean, std = data.target_std](const data::Batch& b) {
        return number_step(call(b.input()), b.target(), mean, std);
      };
    case Task::image_codes: {
      const int64_t pixels = data.shape.channels * data.shape.height * data.shape.width;
      return [call, pixels, prepare = data.prepare](const data::Batch& b) {
        return code_step(call(b.input()), prepare(b.input()), pixels);
      };
    }
    default: {
      functional::CrossEntropyLossOptions options;
      options.label_smoothing = loss.label_smoothing;
      if (!loss.weights.empty()) {
        options.weight = tensor(loss.weights, {.dtype = f32, .device = device});
      }
      return [call, options, mix, accuracy = loss.accuracy](const data::Batch& b) {
        if (mix.any()) return mixed_step(call, b, mix, options, accuracy);
        return class_step(call(b.input()), b.target(), options, accuracy);
      };
    }
  }
}

}  // namespace

train::Step make_step(const TaskData& data, const ZooModel& model, const LossOptions& loss,
                      const MixOptions& mix, Device device) {
  const train::Step step = step_of(data, model, loss, mix, device);
  if (device == Device()) return step;
  return [step, device](const data::Batch& batch) {
    std::vector<Tensor> placed;
    for (const Tensor& x : batch) placed.push_back(x.to(device));
    return step(data::Batch(std::move(placed)));
  };
}

}  // namespace kiln::cli
