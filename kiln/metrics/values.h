// Metrics of values that the training itself gives: losses, rates, rewards, time, the machine's
// load.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "kiln/metrics/metric.h"

namespace kiln::metrics {

// The weighted mean of values. NaN before the first one.
class MeanMetric : public Cloned<MeanMetric> {
 public:
  explicit MeanMetric(std::string name = "MeanMetric") : name_(std::move(name)) {}

  // Each value of the tensor, all with this weight: a batch's mean loss has its number of samples.
  // Throws ValueError for a weight that is negative or not finite.
  void update(const Tensor& values, double weight = 1);
  void update(double value, double weight = 1);
  Tensor compute() const override;
  std::string description() const override { return name_ + "()"; }

 protected:
  void visit_state(StateVisitor& visitor) override;

 private:
  std::string name_;
  double sum_ = 0;
  double weight_ = 0;
};

// Means under names of their own: of a loss; and in reinforcement learning of the total rewards of
// episodes, their lengths, and how often the agent explores.
class Loss final : public Cloned<Loss, MeanMetric> {
 public:
  Loss() : Cloned("Loss") {}
};
class CumulativeReward final : public Cloned<CumulativeReward, MeanMetric> {
 public:
  CumulativeReward() : Cloned("CumulativeReward") {}
};
class EpisodeLength final : public Cloned<EpisodeLength, MeanMetric> {
 public:
  EpisodeLength() : Cloned("EpisodeLength") {}
};
class ExplorationRate final : public Cloned<ExplorationRate, MeanMetric> {
 public:
  ExplorationRate() : Cloned("ExplorationRate") {}
};

// The latest value.
class LearningRate final : public Cloned<LearningRate> {
 public:
  void update(double value) { value_ = value; }
  Tensor compute() const override { return value_tensor(value_); }
  std::string description() const override { return "LearningRate()"; }

 private:
  void visit_state(StateVisitor& visitor) override { visitor("value", value_, Join::latest); }
  double value_ = std::numeric_limits<double>::quiet_NaN();
};

// exp of the mean cross-entropy of a token: logits [.., V], targets [..]. ignore_index: targets
// that count nothing.
class Perplexity final : public Cloned<Perplexity> {
 public:
  explicit Perplexity(std::optional<int64_t> ignore_index = {}) : ignore_index_(ignore_index) {}
  // Throws ShapeError, DTypeError, and IndexError for a target out of range.
  void update(const Tensor& logits, const Tensor& target);
  Tensor compute() const override;
  std::string description() const override;

 private:
  void visit_state(StateVisitor& visitor) override;
  std::optional<int64_t> ignore_index_;
  double sum_ = 0;
  int64_t count_ = 0;
};

// Iterations per second between updates. The first update after a reset() or in a resumed run only
// starts the clock.
class IterationSpeed final : public Cloned<IterationSpeed> {
 public:
  // `count` iterations are over. seconds: how long they took, where the caller knows better than
  // the clock. Throws ValueError for negative numbers.
  void update(int64_t count = 1, std::optional<double> seconds = {});
  Tensor compute() const override;
  void reset() override;
  std::string description() const override { return "IterationSpeed()"; }

 private:
  void visit_state(StateVisitor& visitor) override;
  double iterations_ = 0;
  double seconds_ = 0;
  std::optional<std::chrono::steady_clock::time_point> last_;
};

// The machine's load, read from Linux's files below `root`: /proc and /sys. NaN where it has none.

// The mean share of processor time that was in use between updates, in percent.
class CpuUse final : public Cloned<CpuUse> {
 public:
  explicit CpuUse(std::string root = "/") : root_(std::move(root)) {}
  // The first one only begins.
  void update();
  Tensor compute() const override;
  void reset() override;
  std::string description() const override { return "CpuUse()"; }

 private:
  void visit_state(StateVisitor& visitor) override;
  std::string root_;
  double busy_ = 0;
  double total_ = 0;
  std::optional<std::pair<double, double>> last_;
};

// The mean of the memory in use at updates, in GiB: all that is not available to new programs.
class CpuMemory final : public Cloned<CpuMemory, MeanMetric> {
 public:
  explicit CpuMemory(std::string root = "/") : Cloned("CpuMemory"), root_(std::move(root)) {}
  void update();

 private:
  std::string root_;
};

// The mean over updates of the warmest sensor of the processor, in degrees Celsius.
class CpuTemperature final : public Cloned<CpuTemperature, MeanMetric> {
 public:
  explicit CpuTemperature(std::string root = "/")
      : Cloned("CpuTemperature"), root_(std::move(root)) {}
  void update();

 private:
  std::string root_;
};

}  // namespace kiln::metrics
