// Optimizer: the base of all optimizers: parameter groups, state, and its saving and loading.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kiln/nn/state_dict.h"
#include "kiln/tensor/tensor.h"

namespace kiln::nn {
class Record;
class Recorder;
}  // namespace kiln::nn

namespace kiln::optim {

// One of an optimizer's own options: a number, a flag, or a list: {"momentum", 0.9}, {"nesterov",
// true}, {"betas", {0.9, 0.99}}.
class GroupOption {
 public:
  template <class T>
    requires std::is_arithmetic_v<T>
  GroupOption(T value) : values_{static_cast<double>(value)} {}
  GroupOption(std::initializer_list<double> values) : values_(values), is_list_(true) {}

  const std::vector<double>& values() const { return values_; }
  bool is_list() const { return is_list_; }

 private:
  std::vector<double> values_;
  bool is_list_ = false;
};

// Parameters that are trained with settings of their own; what is left out comes from the
// optimizer's options.
struct ParamGroupOptions {
  std::vector<Tensor> params = {};
  std::optional<double> lr = {};
  std::optional<double> weight_decay = {};
  std::map<std::string, GroupOption> options = {};  // the others, by their names
};

struct ParamGroup {
  std::vector<Tensor> params = {};
  double lr = 0.0;
  double weight_decay = 0.0;
  double initial_lr = 0.0;  // what a scheduler starts from
  // Other options that are not the optimizer's, under the names that a saved state has: "momentum",
  // "beta1". Flags are 0 or 1.
  std::map<std::string, double> options = {};
};

// What a tensor of a parameter's state is like.
enum class StateShape : uint8_t {
  parameter,  // the parameter
  rows,     // the parameter with a last dim of 1, if it has two dims or more; else it is not there
  columns,  // the parameter with a last but one dim of 1, likewise
  vector,   // the parameter, if it has one dim or none; else it is not there
  blocks,   // one number for each `block` elements of the parameter
};

// Part of a parameter's state: a tensor, or a number. It begins as `initial`.
struct StateInfo {
  const char* name;
  double initial = 0.0;
  StateShape like = StateShape::parameter;
  std::optional<DType> dtype = {};  // default: the parameter's
  // It is there for parameters of so many elements; [from, below).
  int64_t from = 0;
  int64_t below = std::numeric_limits<int64_t>::max();
  int64_t block = 1;
};

// The shape of such a tensor for a parameter of this shape; nothing where it is not there.
std::optional<Shape> state_shape(const StateInfo& info, const Shape& parameter);
inline DType state_dtype(const StateInfo& info, DType parameter) {
  return info.dtype.value_or(parameter);
}
// Such a tensor of this shape, full of its initial value. One of the parameter's shape lies in
// memory in the order of the parameter's strides, so that a step goes over both in one order.
Tensor new_slot(const StateInfo& info, const Tensor& param, const Shape& shape);

// An optimizer's state, apart from it: tensors by name ("state.0.exp_avg", by the parameter's
// number over all groups) and numbers as text ("state.0.step", "param_groups.0.lr").
struct OptimizerState {
  nn::StateDict tensors;
  std::map<std::string, std::string> scalars;
};

// Parameters are leaf tensors; the optimizer changes them in place. Throws ValueError for no
// parameters at all, an undefined tensor, one that is no leaf or not floating point, one given
// twice, and a negative lr or weight decay.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  Optimizer(Optimizer&&) = default;
  Optimizer& operator=(Optimizer&&) = default;

  // "Adam".
  virtual std::string type_name() const = 0;

  // One step along each parameter's grad(), or along its gradient in `gradients`. Parameters
  // without one stay as they are, and so does their state. Gradients and state of another dtype
  // than the parameter has by now (after module.to(dtype), say) are converted to its dtype. Throws
  // ShapeError, and changes nothing, when they are of another shape; and ValueError for a group
  // whose lr or weight decay is negative by now, and when none of the parameters has a gradient in
  // `gradients`: they are those of other tensors.
  void step();
  void step(const Gradients& gradients);
  // Forgets the parameters' grad(), or fills it with zeros.
  void zero_grad(bool set_to_none = true);

  std::vector<ParamGroup>& param_groups() { return groups_; }
  const std::vector<ParamGroup>& param_groups() const { return groups_; }
  // What is called momentum, or the first of betas: a setting of the whole optimizer; nothing where
  // there is none. set_momentum() sets it for groups that have their own, too. It throws ValueError
  // where there is none, or for a value that the optimizer does not take.
  std::optional<double> momentum() const;
  void set_momentum(double value);
  // For parameters that are to be trained from now on. Throws ValueError for an option that the
  // optimizer does not have.
  void add_param_group(ParamGroupOptions group);

  // Tensors share memory with the optimizer's.
  OptimizerState state_dict() const;
  // Takes over state and settings, converted to each parameter's dtype and device. Throws
  // ValueError, and changes nothing, unless the state is that of an optimizer of the same class
  // with groups and parameters of the same sizes.
  void load_state_dict(const OptimizerState& state);

  // The same as a record (kiln/nn/record.h), whose values are the numbers as text.
  nn::Record into_record() const;
  void load_record(const nn::Record& record);
  void save_file(const std::string& path, const nn::Recorder& recorder) const;
  void load_file(const std::string& path, const nn::Recorder& recorder);

 protected:
  // One of the optimizer's own settings, shown to who saves or loads them.
  class OptionVisitor {
   public:
    virtual void number(const char* name, double& value) = 0;
    virtual void flag(const char* name, bool& value) = 0;

   protected:
    ~OptionVisitor() = default;
  };

  // Puts a group's own options in the places of the optimizer's.
  class GroupOptionSetter final : public OptionVisitor {
   public:
    explicit GroupOptionSetter(const std::map<std::string, double>& options) : options_(options) {}
    void number(const char* name, double& value) override;
    void flag(const char* name, bool& value) override;

   private:
    const std::map<std::string, double>& options_;
  };

  // What update() works on: parameters of one dtype and device that have seen the same number of
  // steps and have the same numbers in their state.
  struct Batch {
    std::span<Tensor> params;
    std::span<const Tensor> grads;
    // For each of slots() a tensor per parameter.
    std::span<const std::span<Tensor>> slots;
    // One of each of numbers(), for all the parameters; update() may change them.
    std::span<double> numbers;
    const ParamGroup& group;
    int64_t steps_before;
  };

  Optimizer() = default;
  // To be called from constructors, when the options are in place.
  void add_groups(std::vector<ParamGroupOptions> groups);

  // The state of a parameter in this group.
  virtual std::vector<StateInfo> slots(const ParamGroup& group) const = 0;
  virtual std::vector<StateInfo> numbers(const ParamGroup&) const { return {}; }
  virtual void update(const Batch& batch) = 0;
  virtual void visit_options(OptionVisitor& visitor) = 0;
  // Throws ValueError for options that make no sense.
  virtual void check_options() const = 0;
  // The same for a group that has options of its own.
  virtual void check_group_options(const ParamGroup& group) const = 0;
  virtual double default_lr() const = 0;
  virtual double default_weight_decay() const = 0;

 private:
  // A group's state, by parameter.
  struct State {
    std::vector<StateInfo> slot_infos;
    std::vector<std::vector<Tensor>> slots;  // [slot][parameter], undefined before its first step
                                             // and where it is not there
    std::vector<StateInfo> number_infos;
    std::vector<std::vector<double>> numbers;  // [number][parameter]
    std::vector<int64_t> steps;
    bool own_options = false;  // the group had some at the last step
  };

  // Whether any parameter had a gradient.
  template <class GradOf>
  bool step_along(GradOf grad_of);
  State new_state(const ParamGroup& group) const;
  // Has a group's state the tensors that the options ask for by now; those it has are kept.
  void refit_slots(size_t g);
  void fit_group(size_t g, size_t first);
  void step_group(size_t g, std::span<Tensor> grads);
  void run(size_t g, std::span<const size_t> which, std::span<Tensor> grads);
  void check_param(const Tensor& param, const ParamGroup& group) const;
  void check_settings(const ParamGroup& group) const;
  std::vector<std::string> option_names() const;
  [[noreturn]] void throw_unknown_option(const ParamGroup& group) const;
  void set_group_options(ParamGroup& group,
                         const std::map<std::string, GroupOption>& options) const;
  [[noreturn]] void throw_no_gradients(size_t given) const;

  std::vector<ParamGroup> groups_;
  std::vector<State> states_;
  // Kept between steps, for their memory. The gradients are those of all groups, one after another.
  std::vector<Tensor> grads_;
  std::vector<size_t> with_grad_;
};

namespace detail {

// What number i of an array is called in a saved state: betas[0] is "beta1". Empty for what is no
// array, or has no such number.
std::string element_name(std::string_view option, size_t i);

// Throw ValueError "op: name must be >= 0; got value" (or NaN), or in [0, 1).
void check_not_negative(const std::string& op, const char* name, double value);
void check_rate(const std::string& op, const char* name, double value);
void check_betas(const std::string& op, std::span<const double> betas);

std::vector<ParamGroupOptions> one_group(std::vector<Tensor> params);

}  // namespace detail
}  // namespace kiln::optim
