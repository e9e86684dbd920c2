// kiln.optim.LBFGS: its step. Options and state are Python dicts, as PyTorch's.
#include "kiln/optim/lbfgs.h"
#include "optim_group.h"

namespace kiln::python {

namespace {

optim::LBFGSOptions options_of(nb::handle group) {
  static const DictKey kLr("lr"), kMaxIter("max_iter"), kMaxEval("max_eval"),
      kGrad("tolerance_grad"), kChange("tolerance_change"), kHistory("history_size"),
      kSearch("line_search_fn");
  const GroupOptions in("LBFGS", group);
  optim::LBFGSOptions out;
  out.lr = in.number(kLr);
  out.max_iter = in.whole(kMaxIter);
  out.max_eval = in.whole(kMaxEval);
  out.tolerance_grad = in.number(kGrad);
  out.tolerance_change = in.number(kChange);
  out.history_size = in.whole(kHistory);
  if (out.history_size < 1) {
    throw_error<ValueError>("LBFGS: history_size must be >= 1; got ", out.history_size);
  }
  const std::optional<std::string> search = in.text(kSearch);
  if (search && *search != "strong_wolfe") {
    throw_error<RuntimeError>("LBFGS: only 'strong_wolfe' is supported as line_search_fn; got '",
                              *search, "'");
  }
  if (search) out.line_search_fn = optim::LineSearch::strong_wolfe;
  return out;
}

double number_of(nb::handle x) {
  const Tensor* tensor = tensor_pointer(x.ptr());
  return tensor != nullptr ? tensor->item_scalar().to_double() : nb::cast<double>(x);
}

// Copies of the state's vectors, which must be as long as all parameters together.
Tensor vector_of(const char* name, nb::handle x, int64_t size) {
  const Tensor& out = tensor_arg("LBFGS", x);
  if (out.shape() != Shape{size}) {
    throw_error<ShapeError>("LBFGS: '", name, "' of the state has another shape; got ", out.shape(),
                            "; expected ", Shape{size});
  }
  return out;
}

optim::LBFGSState state_of(const nb::dict& in, int64_t size) {
  optim::LBFGSState out;
  if (!in.contains("n_iter") || !in.contains("d")) return out;
  out.func_evals = nb::cast<int64_t>(in["func_evals"]);
  out.n_iter = nb::cast<int64_t>(in["n_iter"]);
  if (nb::object(in["d"]).is_none()) return out;
  out.d = vector_of("d", in["d"], size);
  out.t = number_of(in["t"]);
  for (nb::handle x : nb::cast<nb::list>(in["old_dirs"])) {
    out.old_dirs.push_back(vector_of("old_dirs", x, size));
  }
  for (nb::handle x : nb::cast<nb::list>(in["old_stps"])) {
    out.old_stps.push_back(vector_of("old_stps", x, size));
  }
  for (nb::handle x : nb::cast<nb::list>(in["ro"])) out.ro.push_back(number_of(x));
  if (out.ro.size() != out.old_dirs.size() || out.ro.size() != out.old_stps.size()) {
    throw_error<ValueError>("LBFGS: 'old_dirs', 'old_stps' and 'ro' of the state differ in length");
  }
  out.H_diag = number_of(in["H_diag"]);
  out.prev_flat_grad = vector_of("prev_flat_grad", in["prev_flat_grad"], size);
  out.prev_loss = number_of(in["prev_loss"]);
  return out;
}

void keep_state(nb::dict out, const optim::LBFGSState& state) {
  const auto list = [](const auto& values) {
    nb::list items;
    for (const auto& value : values) items.append(value);
    return items;
  };
  out["func_evals"] = state.func_evals;
  out["n_iter"] = state.n_iter;
  if (!state.d.defined()) return;
  out["d"] = state.d;
  out["t"] = state.t;
  out["old_dirs"] = list(state.old_dirs);
  out["old_stps"] = list(state.old_stps);
  out["ro"] = list(state.ro);
  out["H_diag"] = state.H_diag;
  out["prev_flat_grad"] = state.prev_flat_grad;
  out["prev_loss"] = state.prev_loss;
}

nb::object lbfgs_step(nb::handle group, nb::dict state, nb::callable closure) {
  static const DictKey kParams("params");
  const optim::LBFGSOptions options = options_of(group);
  std::vector<Tensor> params;
  int64_t size = 0;
  for (nb::handle item : GroupOptions("LBFGS", group).at(kParams)) {
    params.push_back(tensor_arg("LBFGS", item));
    size += params.back().numel();
  }
  optim::LBFGSState now = state_of(state, size);
  nb::object first;  // what the closure returned at first
  const auto loss = [&](std::vector<Tensor>& gradients) -> Tensor {
    nb::object value = closure();
    for (size_t i = 0; i < params.size(); ++i) gradients[i] = params[i].grad();
    if (!first.is_valid()) first = value;
    const Tensor* tensor = tensor_pointer(value.ptr());
    return tensor != nullptr ? *tensor : scalar_tensor(number_of(value), {.dtype = f64});
  };
  static_cast<void>(optim::detail::lbfgs_step(params, options, now, loss));
  keep_state(state, now);
  return first;
}

}  // namespace

void bind_lbfgs(nb::module_& m) {
  m.def("lbfgs_step", &lbfgs_step, "group"_a, "state"_a, "closure"_a,
        "A step of L-BFGS; what the closure returned at first.");
}

}  // namespace kiln::python
