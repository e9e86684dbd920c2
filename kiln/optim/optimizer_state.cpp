// Saving and loading an optimizer's state.
#include <charconv>
#include <cmath>
#include <set>

#include "kiln/core/error.h"
#include "kiln/core/from_chars.h"
#include "kiln/optim/optimizer.h"
#include "kiln/tensor/autograd/grad_mode.h"

namespace kiln::optim {
namespace {

// The fewest digits that give the value back.
std::string to_text(double value) {
  char text[64];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

std::string param_key(size_t index, const char* what) {
  return "state." + std::to_string(index) + "." + what;
}

std::string group_key(size_t group, const char* what) {
  return "param_groups." + std::to_string(group) + "." + what;
}

// Reads scalars, and remembers which ones nobody asked for.
class ScalarReader {
 public:
  ScalarReader(std::string op, const std::map<std::string, std::string>& scalars)
      : op_(std::move(op)), scalars_(scalars) {}

  bool has(const std::string& key) const { return scalars_.contains(key); }
  const std::string& text(const std::string& key) {
    const auto found = scalars_.find(key);
    if (found == scalars_.end()) {
      throw_error<ValueError>(op_, ": load_state_dict: the state has no '", key, "'");
    }
    read_.insert(key);
    return found->second;
  }
  template <class T>
  T number(const std::string& key) {
    const std::string& value = text(key);
    T out{};
    const char* end = value.data() + value.size();
    const auto result = kiln::detail::from_chars(value.data(), end, out);
    if (result.ec != std::errc() || result.ptr != end) {
      throw_error<ValueError>(op_, ": load_state_dict: '", key, "' is no number; got '", value,
                              "'");
    }
    return out;
  }
  double not_negative(const std::string& key) {
    const auto value = number<double>(key);
    detail::check_not_negative(op_ + ": load_state_dict", key.c_str(), value);
    return value;
  }
  void check_all_read() const {
    for (const auto& [key, value] : scalars_) {
      if (!read_.contains(key)) {
        throw_error<ValueError>(op_, ": load_state_dict: '", key,
                                "' belongs to nothing in this optimizer");
      }
    }
  }

 private:
  std::string op_;
  const std::map<std::string, std::string>& scalars_;
  std::set<std::string> read_;
};

}  // namespace

OptimizerState Optimizer::state_dict() const {
  OptimizerState out;
  out.scalars["optimizer"] = type_name();
  struct Writer final : OptionVisitor {
    explicit Writer(std::map<std::string, std::string>& s) : scalars(s) {}
    void number(const char* name, double& value) override {
      scalars[std::string("options.") + name] = to_text(value);
    }
    void flag(const char* name, bool& value) override {
      scalars[std::string("options.") + name] = value ? "true" : "false";
    }
    std::map<std::string, std::string>& scalars;
  } writer(out.scalars);
  const_cast<Optimizer*>(this)->visit_options(writer);

  size_t index = 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const State& state = states_[g];
    out.scalars[group_key(g, "lr")] = to_text(groups_[g].lr);
    out.scalars[group_key(g, "initial_lr")] = to_text(groups_[g].initial_lr);
    out.scalars[group_key(g, "weight_decay")] = to_text(groups_[g].weight_decay);
    for (const auto& [name, value] : groups_[g].options) {
      out.scalars[group_key(g, name.c_str())] = to_text(value);
    }
    out.scalars[group_key(g, "size")] = std::to_string(groups_[g].params.size());
    for (size_t i = 0; i < groups_[g].params.size(); ++i, ++index) {
      if (state.steps[i] == 0) continue;
      out.scalars[param_key(index, "step")] = std::to_string(state.steps[i]);
      for (size_t k = 0; k < state.numbers.size(); ++k) {
        const std::string key = param_key(index, state.number_infos[k].name);
        out.scalars[key] = to_text(state.numbers[k][i]);
      }
      for (size_t s = 0; s < state.slots.size(); ++s) {
        if (!state.slots[s][i].defined()) continue;
        out.tensors.set(param_key(index, state.slot_infos[s].name), state.slots[s][i]);
      }
    }
  }
  return out;
}

void Optimizer::load_state_dict(const OptimizerState& saved) {
  const std::string op = type_name();
  ScalarReader scalars(op, saved.scalars);
  if (const std::string& other = scalars.text("optimizer"); other != op) {
    throw_error<ValueError>(op, ": load_state_dict: the state is that of another optimizer; got ",
                            other);
  }

  // The settings, tried on this optimizer and taken back when anything below throws.
  struct Exchange final : OptionVisitor {
    void number(const char*, double& value) override { std::swap(value, numbers.at(at_number++)); }
    void flag(const char*, bool& value) override {
      const bool before = value;
      value = flags.at(at_flag);
      flags.at(at_flag++) = before;
    }
    void rewind() { at_number = at_flag = 0; }
    std::vector<double> numbers;
    std::vector<bool> flags;
    size_t at_number = 0;
    size_t at_flag = 0;
  } options;
  struct Reader final : OptionVisitor {
    Reader(ScalarReader& s, Exchange& o) : scalars(s), options(o) {}
    void number(const char* name, double&) override {
      options.numbers.push_back(scalars.number<double>(std::string("options.") + name));
    }
    // Files of earlier versions lack the flags that came later: those stay as they are.
    void flag(const char* name, bool& value) override {
      const std::string key = std::string("options.") + name;
      options.flags.push_back(scalars.has(key) ? scalars.text(key) == "true" : value);
    }
    ScalarReader& scalars;
    Exchange& options;
  } reader(scalars, options);
  visit_options(reader);
  visit_options(options);
  options.rewind();

  try {
    check_options();
    NoGradGuard no_grad;
    const std::vector<std::string> names = option_names();
    std::vector<ParamGroup> groups = groups_;
    std::vector<State> states;
    size_t index = 0;
    size_t tensors_read = 0;
    for (size_t g = 0; g < groups.size(); ++g) {
      groups[g].lr = scalars.not_negative(group_key(g, "lr"));
      groups[g].initial_lr = scalars.not_negative(group_key(g, "initial_lr"));
      groups[g].weight_decay = scalars.not_negative(group_key(g, "weight_decay"));
      groups[g].options.clear();
      for (const std::string& name : names) {
        const std::string key = group_key(g, name.c_str());
        if (scalars.has(key)) groups[g].options[name] = scalars.number<double>(key);
      }
      check_settings(groups[g]);
      const size_t size = groups[g].params.size();
      if (const auto given = scalars.number<size_t>(group_key(g, "size")); given != size) {
        throw_error<ValueError>(op, ": load_state_dict: group ", g, " has another size; got ",
                                given, " parameters; expected ", size);
      }
      State& state = states.emplace_back(new_state(groups[g]));
      for (size_t i = 0; i < size; ++i, ++index) {
        const std::string step_key = param_key(index, "step");
        if (!saved.scalars.contains(step_key)) continue;  // it never had a gradient
        state.steps[i] = scalars.number<int64_t>(step_key);
        if (state.steps[i] < 1) {
          throw_error<ValueError>(op, ": load_state_dict: '", step_key, "' must be at least 1");
        }
        for (size_t k = 0; k < state.numbers.size(); ++k) {
          state.numbers[k][i] =
              scalars.number<double>(param_key(index, state.number_infos[k].name));
        }
        const Tensor& param = groups[g].params[i];
        for (size_t s = 0; s < state.slots.size(); ++s) {
          const StateInfo& info = state.slot_infos[s];
          const auto shape = state_shape(info, param.shape());
          if (!shape) continue;
          ++tensors_read;
          const std::string key = param_key(index, state.slot_infos[s].name);
          const Tensor* value = saved.tensors.find(key);
          if (value == nullptr || !value->defined()) {
            throw_error<ValueError>(op, ": load_state_dict: the state has no tensor '", key, "'");
          }
          if (value->shape() != *shape) {
            throw_error<ValueError>(op, ": load_state_dict: '", key, "' has another shape; got ",
                                    value->shape(), "; expected ", *shape);
          }
          const DType dtype = state_dtype(info, param.dtype());
          state.slots[s][i] = value->detach().to(param.device(), dtype).contiguous().clone();
        }
      }
    }
    scalars.check_all_read();
    if (tensors_read != saved.tensors.size()) {
      throw_error<ValueError>(op, ": load_state_dict: the state has tensors that belong to ",
                              "nothing in this optimizer; got ", saved.tensors.size(),
                              "; expected ", tensors_read);
    }
    groups_ = std::move(groups);
    states_ = std::move(states);
  } catch (...) {
    visit_options(options);
    throw;
  }
}

}  // namespace kiln::optim
