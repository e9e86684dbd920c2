// Optimizers as records.
#include "kiln/core/error.h"
#include "kiln/nn/record.h"
#include "kiln/optim/optimizer.h"

namespace kiln::optim {

nn::Record Optimizer::into_record() const {
  const OptimizerState state = state_dict();
  nn::Record out;
  for (const auto& [name, value] : state.tensors) out.add(name, std::nullopt, value);
  for (const auto& [name, text] : state.scalars) out.set_value(name, text);
  return out;
}

void Optimizer::load_record(const nn::Record& record) {
  OptimizerState state;
  for (const auto& entry : record.entries()) state.tensors.set(entry.path, entry.value);
  for (const auto& [name, value] : record.values()) {
    state.scalars[name] = record.value<std::string>(name);
  }
  load_state_dict(state);
}

void Optimizer::save_file(const std::string& path, const nn::Recorder& recorder) const {
  recorder.record(into_record(), path);
}

void Optimizer::load_file(const std::string& path, const nn::Recorder& recorder) {
  load_record(recorder.load_record(path));
}

}  // namespace kiln::optim
