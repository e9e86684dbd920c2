// Metric: a number, or several, that is measured over the batches of a pass.
//
//   metrics::Accuracy accuracy({.task = "multiclass", .num_classes = 10});
//   for (const auto& [images, labels] : loader) accuracy.update(model(images), labels);
//   std::cout << accuracy.compute().item();
//   accuracy.reset();
//
// What compute() gives does not depend on how the samples were cut into batches: metrics add up
// counts and sums, not the values of batches. Values are f64 tensors, counts i64.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kiln/nn/state_dict.h"
#include "kiln/tensor/tensor.h"

namespace kiln::metrics {

// How a running value joins the other one in merge(), and what it is after reset().
enum class Join {
  sum,      // added, element by element; zeros. One without elements takes any number of them
  append,   // one after the other; nothing
  maximum,  // the larger one; minus infinity, or the smallest integer
  latest    // the other one, unless that is NaN; NaN
};

// Sees the running values of a metric, each with its name.
class StateVisitor {
 public:
  virtual ~StateVisitor() = default;
  virtual void operator()(const char* name, double& value, Join join) = 0;
  virtual void operator()(const char* name, int64_t& value, Join join) = 0;
  virtual void operator()(const char* name, std::vector<double>& values, Join join) = 0;
  virtual void operator()(const char* name, std::vector<int64_t>& values, Join join) = 0;
};

class Metric {
 public:
  virtual ~Metric() = default;

  // What was measured since the last reset().
  virtual Tensor compute() const = 0;
  // The class with its options, "Accuracy(task=binary, threshold=0.5)".
  virtual std::string description() const = 0;
  virtual std::unique_ptr<Metric> clone() const = 0;
  // As a new one.
  virtual void reset();

  // All running values, with their exact bits: f64 and i64 tensors.
  nn::StateDict state_dict() const;
  // Goes on exactly as the metric that gave the state. Throws KeyError, DTypeError, ShapeError or
  // ValueError for what is no state of this class; the metric is then as before, or reset.
  void load_state_dict(const nn::StateDict& state);
  // As if this metric had also seen what the other one saw. Throws TypeError for another class and
  // ValueError for other options.
  void merge(const Metric& other);

 protected:
  Metric() = default;
  Metric(const Metric&) = default;
  Metric(Metric&&) = default;
  Metric& operator=(const Metric&) = default;
  Metric& operator=(Metric&&) = default;

  virtual void visit_state(StateVisitor& visitor) = 0;
  // merge() with a metric of the same class and options.
  virtual void join(const Metric& other);
  // Throws ValueError when the running values contradict one another.
  virtual void check_state() const {}
};

// What clone() is, for a class D.
template <class D, class Base = Metric>
class Cloned : public Base {
 public:
  using Base::Base;
  std::unique_ptr<Metric> clone() const override {
    return std::make_unique<D>(static_cast<const D&>(*this));
  }
};

// A 0-d f64 tensor, and [n] of them.
Tensor value_tensor(double value);
Tensor value_tensor(const std::vector<double>& values);
// part / whole; `otherwise` where whole is 0.
double ratio(double part, double whole, double otherwise);
// Throws ShapeError unless both have one shape.
void check_same_shape(const char* op, const Tensor& preds, const Tensor& target);

}  // namespace kiln::metrics
