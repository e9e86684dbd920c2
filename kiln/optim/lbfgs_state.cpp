// Saving and loading L-BFGS's state.
#include <charconv>

#include "kiln/core/error.h"
#include "kiln/core/from_chars.h"
#include "kiln/optim/lbfgs.h"

namespace kiln::optim {

namespace {

std::string number_text(double value) {
  char text[64];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

class Reader {
 public:
  explicit Reader(const OptimizerState& state) : state_(state) {}
  template <class T>
  T number(const std::string& key) const {
    const auto found = state_.scalars.find(key);
    if (found == state_.scalars.end()) {
      throw_error<ValueError>("LBFGS: load_state_dict: the state has no '", key, "'");
    }
    T out{};
    const std::string& text = found->second;
    const auto result = kiln::detail::from_chars(text.data(), text.data() + text.size(), out);
    if (result.ec != std::errc() || result.ptr != text.data() + text.size()) {
      throw_error<ValueError>("LBFGS: load_state_dict: '", key, "' is no number; got '", text, "'");
    }
    return out;
  }
  Tensor vector(const std::string& key, const Tensor& param, int64_t size) const {
    const Tensor* found = state_.tensors.find(key);
    if (found == nullptr || !found->defined()) {
      throw_error<ValueError>("LBFGS: load_state_dict: the state has no tensor '", key, "'");
    }
    if (found->shape() != Shape{size}) {
      throw_error<ValueError>("LBFGS: load_state_dict: '", key, "' has another shape; got ",
                              found->shape(), "; expected ", Shape{size});
    }
    return found->detach().to(param.device(), param.dtype()).contiguous().clone();
  }

 private:
  const OptimizerState& state_;
};

}  // namespace

OptimizerState LBFGS::state_dict() const {
  OptimizerState out;
  out.scalars["optimizer"] = "LBFGS";
  out.scalars["options"] = options_.to_json_string();
  out.scalars["func_evals"] = std::to_string(state_.func_evals);
  out.scalars["n_iter"] = std::to_string(state_.n_iter);
  if (state_.n_iter == 0) return out;
  out.scalars["t"] = number_text(state_.t);
  out.scalars["H_diag"] = number_text(state_.H_diag);
  out.scalars["prev_loss"] = number_text(state_.prev_loss);
  out.scalars["history"] = std::to_string(state_.ro.size());
  out.tensors.set("d", state_.d);
  out.tensors.set("prev_flat_grad", state_.prev_flat_grad);
  for (size_t i = 0; i < state_.ro.size(); ++i) {
    const std::string at = "." + std::to_string(i);
    out.scalars["ro" + at] = number_text(state_.ro[i]);
    out.tensors.set("old_dirs" + at, state_.old_dirs[i]);
    out.tensors.set("old_stps" + at, state_.old_stps[i]);
  }
  return out;
}

void LBFGS::load_state_dict(const OptimizerState& saved) {
  const auto name = saved.scalars.find("optimizer");
  if (name == saved.scalars.end() || name->second != "LBFGS") {
    throw_error<ValueError>("LBFGS: load_state_dict: the state is that of another optimizer; got ",
                            name == saved.scalars.end() ? "none" : name->second);
  }
  const auto options = saved.scalars.find("options");
  if (options == saved.scalars.end()) {
    throw_error<ValueError>("LBFGS: load_state_dict: the state has no 'options'");
  }
  const Reader in(saved);
  LBFGSState state;
  LBFGSOptions loaded = LBFGSOptions::from_json_string(options->second);
  state.func_evals = in.number<int64_t>("func_evals");
  state.n_iter = in.number<int64_t>("n_iter");
  if (state.n_iter != 0) {
    int64_t size = 0;
    for (const Tensor& p : params_) size += p.numel();
    state.t = in.number<double>("t");
    state.H_diag = in.number<double>("H_diag");
    state.prev_loss = in.number<double>("prev_loss");
    state.d = in.vector("d", params_[0], size);
    state.prev_flat_grad = in.vector("prev_flat_grad", params_[0], size);
    const auto count = in.number<size_t>("history");
    if (count > saved.tensors.size()) {
      throw_error<ValueError>("LBFGS: load_state_dict: 'history' is ", count, ", but there are ",
                              saved.tensors.size(), " tensors");
    }
    for (size_t i = 0; i < count; ++i) {
      const std::string at = "." + std::to_string(i);
      state.ro.push_back(in.number<double>("ro" + at));
      state.old_dirs.push_back(in.vector("old_dirs" + at, params_[0], size));
      state.old_stps.push_back(in.vector("old_stps" + at, params_[0], size));
    }
  }
  options_ = std::move(loaded);
  state_ = std::move(state);
}

}  // namespace kiln::optim
