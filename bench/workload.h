// One side's half of a row: something to run over and over, and the values by which the two sides
// are compared. Shared by the program and the peer module; knows neither library.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kiln::bench {

class Workload {
 public:
  virtual ~Workload() = default;
  virtual void run(int64_t iterations) = 0;
  // Values of the result. Called once, before the first run().
  virtual std::vector<float> check() = 0;
};

using WorkloadFactory = std::function<std::unique_ptr<Workload>()>;
using WorkloadTable = std::map<std::string, WorkloadFactory>;

namespace detail {

template <class Step, class Check>
class StepWorkload final : public Workload {
 public:
  StepWorkload(Step step, Check check) : step_(std::move(step)), check_(std::move(check)) {}

  void run(int64_t iterations) override {
    for (int64_t i = 0; i < iterations; ++i) step_();
  }
  std::vector<float> check() override { return check_(step_); }

 private:
  Step step_;
  Check check_;
};

}  // namespace detail

// A workload that calls step() once for each iteration and drops what it returns; check(step) gives
// the values. The step is inlined into the loop: rows of a hundred nanoseconds have none to spare
// for an indirect call.
template <class Step, class Check>
std::unique_ptr<Workload> make_workload(Step step, Check check) {
  return std::make_unique<detail::StepWorkload<Step, Check>>(std::move(step), std::move(check));
}

// The values of check() for a training row: the loss of its first steps.
template <class Step>
std::vector<float> first_losses(Step& step) {
  constexpr int kSteps = 8;
  std::vector<float> losses;
  for (int i = 0; i < kSteps; ++i) losses.push_back(step().template item<float>());
  return losses;
}

}  // namespace kiln::bench
